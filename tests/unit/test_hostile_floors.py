"""Floors of a bucket that somebody else may have written: bounded, and never spelled out."""

import json

import pytest

from bucketlog.log_format.errors import CorruptObjectError, InvalidDataError
from bucketlog.log_format.model import Ticket, WriterId
from bucketlog.tiered_storage import floors, keys
from bucketlog.tiered_storage.bucket import ObjectInfo
from bucketlog.tiered_storage.deletion import plan_chain
from bucketlog.tiered_storage.floors import FLOOR_BYTES_MAX, Floor, decode_floor, encode_floor
from tests.rigs.traced_memory import MIB, TracedMemory

FLOOR_KEY = keys.floor(Ticket(1, 5))
W = WriterId("a" * 32)


def floor_of(*ranges: object, position: object = 1) -> bytes:
    return json.dumps({"positions": {W: position}, "readable": {W: ranges}}).encode()


def test_a_range_of_a_floor_is_never_spelled_out(traced_memory: TracedMemory) -> None:
    with traced_memory.below(MIB):
        floor = decode_floor(FLOOR_KEY, floor_of((3, 1 << 60), position=1 << 60))
        listed = [ObjectInfo(f"{keys.chain(W)}{keys.number(seq)}", 100, 0) for seq in (1, 2, 3, 4)]
        plan = plan_chain(W, 1, listed, floor=floor, sealed_before_ms=0)
    assert plan.dead == [listed[0].key, listed[1].key]


def test_small_floors_are_read() -> None:
    for positions, readable in (
        ({}, {}),
        ({W: 1}, {}),
        ({}, {W: ((0, 1),)}),
        ({W: 1, WriterId("b" * 32): 0}, {W: ((0, 1), (2, 3))}),
    ):
        floor = Floor(Ticket(1, 5), positions, readable)
        assert decode_floor(FLOOR_KEY, encode_floor(floor)) == floor


@pytest.mark.parametrize(
    "data",
    [
        floor_of((3, 3)),
        floor_of((4, 3)),
        floor_of((3, 5), (4, 6)),
        floor_of((5, 6), (3, 4)),
        floor_of((3, 5), (5, 6)),
        floor_of((-1, 5)),
        floor_of((1, 2**63)),
        floor_of(position=-1),
        floor_of((1, 2, 3)),
        floor_of(7),
    ],
)
def test_floors_that_are_impossible(data: bytes) -> None:
    with pytest.raises(CorruptObjectError, match="it is not a floor"):
        decode_floor(FLOOR_KEY, data)


def test_a_floor_beyond_its_limit_is_refused_and_not_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(CorruptObjectError, match="more bytes than the limit") as caught:
        decode_floor(FLOOR_KEY, b" " * (FLOOR_BYTES_MAX + 1))
    assert caught.value.remedy
    monkeypatch.setattr(floors, "FLOOR_BYTES_MAX", 21_000)
    ranges = tuple((10**7 + 2 * at, 10**7 + 2 * at + 1) for at in range(1_000))
    large = Floor(Ticket(1, 5), {W: 1}, {W: ranges})
    assert decode_floor(FLOOR_KEY, encode_floor(large)) == large
    with pytest.raises(InvalidDataError, match="more than the limit"):
        encode_floor(Floor(Ticket(1, 5), {W: 1}, {W: ranges, WriterId("b" * 32): ranges}))
