"""The progress of a replay of dead letters, compared with a set of offsets."""

import base64
import zlib
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bucketlog.client.replayed_offsets import METADATA_BYTES_MAX, ReplayedOffsets
from bucketlog.log_format.errors import ConfigurationError, InvalidDataError

OFFSETS = 60
SPANS = st.lists(st.tuples(st.integers(0, OFFSETS), st.integers(0, 9)), max_size=30)


def offsets_of(done: ReplayedOffsets) -> set[int]:
    return {offset for offset in range(OFFSETS + 10) if offset in done}


@given(st.integers(0, 20), SPANS)
def test_it_is_a_set_of_offsets(first: int, added: list[tuple[int, int]]) -> None:
    done, model = ReplayedOffsets(first), set(range(first))
    for at, length in added:
        done.add(at, at + length)
        model |= set(range(at, at + length))
    assert offsets_of(done) == model
    assert done.next_offset == min(set(range(OFFSETS + 11)) - model)
    edges = [edge for span in done.ranges for edge in span]
    assert edges == sorted(set(edges)), "ranges that touch are one"
    again = ReplayedOffsets.committed(done.next_offset, done.metadata())
    assert (again.next_offset, again.ranges) == (done.next_offset, done.ranges)


def test_a_copy_is_its_own() -> None:
    done = ReplayedOffsets(0, [(3, 5)])
    copied = done.copy()
    copied.add(0, 3)
    assert (done.next_offset, copied.next_offset) == (0, 5)


def test_metadata_of_another_program_counts_as_none() -> None:
    assert ReplayedOffsets.committed(7, "mine").ranges == []


def packed(text: bytes) -> str:
    return "bucketlog-deadletter-1:" + base64.b64encode(zlib.compress(text)).decode()


@pytest.mark.parametrize(
    "metadata",
    [
        "bucketlog-deadletter-1:?",
        "bucketlog-deadletter-1:AAAA",
        packed(b""),
        packed(b"1,2,3"),
        packed(b"1,0"),
        packed(b"-1,2"),
        packed(b"a,b"),
        packed(b"1" * 5000),
        packed(b"1,1," * 500_000),
        packed(b"1,1," * 50_000 + b"1,1"),
        packed(b"1,1")[:-6],
    ],
)
def test_metadata_that_is_damaged_is_refused(metadata: str) -> None:
    with pytest.raises(InvalidDataError, match="committed offset 7"):
        ReplayedOffsets.committed(7, metadata)


def test_what_does_not_fit_is_refused() -> None:
    random = Random(1)
    at, ranges = 0, []
    for _ in range(20_000):
        at += random.randint(2, 500)
        ranges.append((at, at + 1))
    fits = ReplayedOffsets(0, ranges[:1000])
    assert 0 < len(fits.metadata()) <= METADATA_BYTES_MAX
    with pytest.raises(ConfigurationError, match="too many gaps"):
        ReplayedOffsets(0, ranges).metadata()
    with pytest.raises(ConfigurationError, match="too many gaps"):
        ReplayedOffsets(0, ((2 * at + 1, 2 * at + 2) for at in range(60_000)))
