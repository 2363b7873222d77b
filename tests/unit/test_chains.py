"""Chains from listings: what is committed, what is void, in whatever order it is listed."""

import random
from itertools import permutations

import pytest

from bucketlog.log_format.errors import CorruptObjectError, InvalidDataError
from bucketlog.log_format.model import SegmentId, WriterId
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import ObjectInfo
from bucketlog.tiered_storage.chains import Chain, read_chain, read_chains
from bucketlog.tiered_storage.segment import MIN_SEGMENT_LENGTH, SEAL_LENGTH

WRITER, OTHER = WriterId("a" * 32), WriterId("b" * 32)


def listed(shape: str, writer: WriterId = WRITER) -> list[ObjectInfo]:
    """`s` a segment, `x` a seal, `.` nothing, from seq 0 on."""
    sizes = {"s": MIN_SEGMENT_LENGTH, "x": SEAL_LENGTH}
    return [
        ObjectInfo(keys.segment(SegmentId(writer, seq)), sizes[what], 0)
        for seq, what in enumerate(shape)
        if what != "."
    ]


def seqs(infos: tuple[ObjectInfo, ...]) -> list[int]:
    return [keys.parse_segment(info.key).seq for info in infos]


@pytest.mark.parametrize(
    ("shape", "start", "committed", "end", "sealed", "void"),
    [
        ("", 0, [], 0, False, []),
        ("s", 0, [0], 1, False, []),
        ("sss", 0, [0, 1, 2], 3, False, []),
        ("x", 0, [], 0, True, []),
        ("ssx", 0, [0, 1], 2, True, []),
        ("ssxs", 0, [0, 1], 2, True, [3]),
        ("sx.ss", 0, [0], 1, True, [3, 4]),
        ("s.s", 0, [0], 1, False, [2]),
        (".s", 0, [], 0, False, [1]),
        ("sxx", 0, [0], 1, True, [2]),
        ("ssss", 2, [2, 3], 4, False, []),
        ("..ss", 2, [2, 3], 4, False, []),
        ("ssx", 2, [], 2, True, []),
        ("ss", 2, [], 2, False, []),
        ("...s", 2, [], 2, False, [3]),
    ],
)
def test_a_chain_ends_at_its_first_seal_or_hole(
    shape: str, start: int, committed: list[int], end: int, sealed: bool, void: list[int]
) -> None:
    for order in permutations(listed(shape)):
        chain = read_chain(WRITER, order, start)
        assert (chain.writer, chain.start, chain.end, chain.sealed) == (WRITER, start, end, sealed)
        assert seqs(chain.committed) == committed
        assert seqs(chain.void) == void


def test_many_chains_in_one_listing() -> None:
    infos = listed("ssx") + listed("s.s", OTHER)
    random.Random(1).shuffle(infos)
    chains = read_chains(infos)
    assert chains == {
        WRITER: read_chain(WRITER, listed("ssx")),
        OTHER: read_chain(OTHER, listed("s.s", OTHER)),
    }
    assert read_chains([]) == {}
    assert read_chain(OTHER, []) == Chain(OTHER, 0, (), 0, False, ())


def test_numbers_are_not_compared_as_text() -> None:
    infos = [
        ObjectInfo(keys.segment(SegmentId(WRITER, seq)), MIN_SEGMENT_LENGTH, 0)
        for seq in reversed(range(120))
    ]
    assert seqs(read_chain(WRITER, infos).committed) == list(range(120))


def test_an_object_listed_twice_counts_once() -> None:
    assert seqs(read_chain(WRITER, listed("ss") * 2).committed) == [0, 1]


@pytest.mark.parametrize("size", [0, 1, SEAL_LENGTH - 1, SEAL_LENGTH + 1, MIN_SEGMENT_LENGTH - 1])
def test_an_object_that_is_neither_is_damaged(size: int) -> None:
    info = ObjectInfo(keys.segment(SegmentId(WRITER, 1)), size, 0)
    with pytest.raises(CorruptObjectError, match="neither a segment nor a seal") as caught:
        read_chain(WRITER, [*listed("s"), info])
    assert caught.value.key == info.key


@pytest.mark.parametrize(
    "key",
    ["log/", "log/x", "log//0", f"log/{WRITER}/1", f"log/{WRITER}/{'0' * 20}/x", "other/x/1"],
)
def test_other_objects_in_the_log_are_refused(key: str) -> None:
    with pytest.raises(InvalidDataError, match="unexpected key"):
        read_chains([ObjectInfo(key, MIN_SEGMENT_LENGTH, 0)])
