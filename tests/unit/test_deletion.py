"""Floors and what may be deleted below them, one rule at a time."""

import pytest

from bucketlog.log_format.errors import CorruptObjectError, StaleCheckpointError
from bucketlog.log_format.model import SegmentId, Ticket, WriterId
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from bucketlog.tiered_storage.bucket import ObjectInfo
from bucketlog.tiered_storage.deletion import ChainPlan, FloorPlan, plan_chain, plan_floors
from bucketlog.tiered_storage.floors import (
    Floor,
    check_not_below,
    decode_floor,
    encode_floor,
    highest_floor,
)
from bucketlog.tiered_storage.log_cut_reading import read_log
from bucketlog.tiered_storage.segment import SEAL_LENGTH
from tests.rigs.checkpoints import write_checkpoint
from tests.rigs.written_log import WrittenLog, some_records

W = WriterId("0" * 32)
FLOOR = Floor(Ticket(2, 10), {W: 4}, {W: ((1, 2), (6, 8))})


def chain(*seqs: int, seal: int | None = None, sealed_ms: int = 0) -> list[ObjectInfo]:
    listed = [ObjectInfo(keys.segment(SegmentId(W, seq)), 1000, 0) for seq in seqs]
    if seal is not None:
        listed.append(ObjectInfo(keys.segment(SegmentId(W, seal)), SEAL_LENGTH, sealed_ms))
    return listed


def seqs(found: list[str]) -> list[int]:
    return sorted(keys.parse_segment(key).seq for key in found)


def plan(epoch: int, listed: list[ObjectInfo], sealed_before_ms: int = 100) -> ChainPlan:
    return plan_chain(W, epoch, listed, floor=FLOOR, sealed_before_ms=sealed_before_ms)


def test_of_an_earlier_epoch_all_goes_but_what_is_readable() -> None:
    found = plan(1, chain(0, 1, 2, 6, 9, seal=8))
    assert (seqs(found.dead), seqs(found.seals), found.over) == ([0, 2, 9], [8], False)


def test_its_registration_goes_with_the_last_of_it() -> None:
    bare = Floor(Ticket(2, 10), {}, {})
    for listed in (chain(0, 1, seal=2), []):
        assert plan_chain(W, 1, listed, floor=bare, sealed_before_ms=0).over
    assert not plan(1, []).over, "what is readable is missing: keep what names it"


def test_of_the_floors_epoch_only_what_is_below_it_goes() -> None:
    found = plan(2, chain(0, 1, 2, 3, 4, 5, 7, seal=8))
    assert (seqs(found.dead), found.seals, found.over) == ([0, 2, 3], [], False)


def test_of_the_floors_epoch_what_is_void_goes_after_an_old_seal() -> None:
    listed = chain(0, 1, 2, 3, 4, 6, 7, seal=5, sealed_ms=100)
    assert seqs(plan(2, listed, sealed_before_ms=100).void) == [6, 7]
    assert plan(2, listed, sealed_before_ms=99).void == []
    assert plan(2, chain(0, 1, 2, 3, 5, seal=6)).void == [], "a PUT that is on its way"


def test_of_a_later_epoch_nothing_goes() -> None:
    assert plan(3, chain(0, 1, seal=2)) == ChainPlan([], [], [], over=False)


def floors(*laid: tuple[int, int]) -> list[ObjectInfo]:
    return [ObjectInfo(keys.floor(Ticket(2, number)), 1, at) for number, at in laid]


@pytest.mark.parametrize(
    ("laid", "now_ms", "expected"),
    [
        ([], 0, (Ticket(2, 50), None, [])),
        ([(10, 100)], 199, (Ticket(2, 50), None, [])),
        ([(10, 100)], 149, (None, None, [])),
        ([(50, 0)], 99, (None, None, [])),
        ([(50, 0)], 100, (None, Ticket(2, 50), [])),
        ([(10, 0), (20, 10), (30, 60)], 110, (Ticket(2, 50), Ticket(2, 20), [10])),
        ([(60, 0)], 500, (None, None, [])),
    ],
)
def test_when_a_floor_is_laid_and_used(
    laid: list[tuple[int, int]],
    now_ms: int,
    expected: tuple[Ticket | None, Ticket | None, list[int]],
) -> None:
    write, use, drop = expected
    found = plan_floors(
        Ticket(2, 50), floors(*laid), now_ms=now_ms, safety_age_ms=100, interval_ms=50
    )
    assert found == FloorPlan(write, use, [keys.floor(Ticket(2, number)) for number in drop])


def test_a_floor_through_its_bytes() -> None:
    key = keys.floor(FLOOR.ticket)
    assert decode_floor(key, encode_floor(FLOOR)) == FLOOR
    assert FLOOR.readable_of(W) == ((1, 2), (6, 8))
    with pytest.raises(CorruptObjectError, match="it is not a floor"):
        decode_floor(key, encode_floor(FLOOR)[:-1])


@pytest.fixture
def bucket() -> MemoryBucket:
    return MemoryBucket()


@pytest.fixture
def log(bucket: MemoryBucket) -> WrittenLog:
    written = WrittenLog(bucket)
    written.create_topic("t")
    written.create_topic("gone")
    written.flush()
    for name in ("t", "gone", "t"):
        written.append(name, 0, some_records(2))
        written.flush()
    written.delete_topic("gone")
    written.flush()
    written.flush()
    return written


def test_a_floor_is_of_two_checkpoints(bucket: MemoryBucket, log: WrittenLog) -> None:
    older = write_checkpoint(bucket)
    log.delete_topic("t")
    log.create_topic("t")
    log.flush()
    log.append("t", 0, some_records(1))
    log.flush()
    log.flush()
    newer = write_checkpoint(bucket)
    assert Floor.of(older, newer) == Floor(
        older.ticket, {log.first_writer: 5}, {log.first_writer: ((1, 2), (3, 4), (7, 8))}
    )


def test_a_reader_that_began_below_a_floor_begins_again(
    bucket: MemoryBucket, log: WrittenLog
) -> None:
    made = write_checkpoint(bucket)
    assert highest_floor(bucket.list(keys.FLOORS)) is None
    check_not_below(None, bucket.list(keys.FLOORS))
    assert bucket.create(keys.floor(made.ticket), [b"{}"])
    check_not_below(made, bucket.list(keys.FLOORS))
    assert read_log(bucket).checkpoint == made
    with pytest.raises(StaleCheckpointError, match="reading began with no checkpoint"):
        check_not_below(None, bucket.list(keys.FLOORS))


def test_without_a_sound_checkpoint_above_the_floor_nothing_is_read(
    bucket: MemoryBucket, log: WrittenLog
) -> None:
    """What the floor covers may be gone: what is left must not pass for everything."""
    made = write_checkpoint(bucket)
    assert bucket.create(keys.floor(made.ticket), [b"{}"])
    bucket.delete([keys.checkpoint(made.ticket), keys.segment(SegmentId(log.first_writer, 0))])
    with pytest.raises(StaleCheckpointError, match="restore one"):
        read_log(bucket)
