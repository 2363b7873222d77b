"""isolation.level on crafted segments: what readers of committed transactions are shown."""

from collections.abc import Callable

import pytest

from bucketlog.log_format.control_batch import Marker, encode_marker
from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_reader.fetch import read_pieces
from bucketlog.log_reader.options import parse_options
from bucketlog.log_reader.planning import planned_tasks
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from bucketlog.tiered_storage.bucket import Body, Span, Suffix
from tests.rigs.checkpoints import write_checkpoint
from tests.rigs.written_log import ReservedSegment, WrittenLog, some_records
from tests.rigs.written_tier import WrittenTier, batches_in

BASE = {"path": "file:///logs", "subscribe": "a"}
UNCOMMITTED = {"isolation.level": "read_uncommitted"}


class CountedBucket(MemoryBucket):
    gets = 0

    def get(self, key: str, span: Span | Suffix | None = None) -> Body:
        self.gets += 1
        return super().get(key, span)


def shown(log: WrittenLog, **options: str) -> list[int]:
    parsed = parse_options({**BASE, **options})
    found: list[int] = []
    for task in planned_tasks(log.bucket, parsed):
        for batch in read_pieces(
            log.bucket,
            task,
            ["offset"],
            max_decompressed_bytes=1 << 20,
        ):
            found += batch.column(0).to_pylist()
    return found


@pytest.fixture
def log() -> WrittenLog:
    log = WrittenLog(MemoryBucket())
    log.create_topic("a")
    return log


def in_transaction(log: WrittenLog, producer_id: int, count: int) -> range:
    placed = log.append("a", 0, some_records(count), producer_id=producer_id, transactional=True)
    return range(placed[0].offset, placed[-1].offset + 1)


def test_records_of_aborted_transactions_are_left_out(log: WrittenLog) -> None:
    plain = [record.offset for record in log.append("a", 0, some_records(2))]
    committed = in_transaction(log, 7, 3)
    aborted = in_transaction(log, 8, 4)
    log.flush()
    log.end_transaction(7, commit=True)
    again = in_transaction(log, 8, 1)
    log.end_transaction(8, commit=False)
    log.flush()
    later = in_transaction(log, 8, 2)
    log.end_transaction(8, commit=True)
    log.flush()
    assert shown(log) == [*plain, *committed, *later]
    everything = sorted([*plain, *committed, *aborted, *again, *later])
    assert shown(log, **UNCOMMITTED) == everything


def test_an_open_transaction_ends_what_is_stable(log: WrittenLog) -> None:
    before = log.append("a", 0, some_records(2))
    in_transaction(log, 7, 3)
    log.append("a", 0, some_records(2))
    log.flush()
    assert shown(log) == [record.offset for record in before]
    assert len(shown(log, **UNCOMMITTED)) == 7
    log.end_transaction(7, commit=True)
    log.flush()
    assert len(shown(log)) == 7


def test_a_transaction_that_began_below_the_start_is_known(log: WrittenLog) -> None:
    in_transaction(log, 7, 3)
    log.flush()
    in_transaction(log, 7, 3)
    log.end_transaction(7, commit=False)
    kept = log.append("a", 0, some_records(1))
    log.flush()
    assert shown(log, startingOffsets='{"a":{"0":4}}') == [kept[0].offset]


def test_what_stands_in_a_tier_is_committed(log: WrittenLog) -> None:
    in_transaction(log, 7, 3)
    kept, _ = (batch for _, batch in batches_in(_committed(log)))
    WrittenTier(log).split(log.partition("a", 0), [kept], 0)
    later = in_transaction(log, 7, 2)
    log.flush()
    assert shown(log) == [0, 1, 2]
    assert shown(log, **UNCOMMITTED) == [0, 1, 2, *later]


def _committed(log: WrittenLog) -> ReservedSegment:
    log.end_transaction(7, commit=True)
    return log.flush()


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("flushed", [0, 1, 2, 3])
def test_a_checkpoint_anywhere_in_a_transaction_changes_nothing(
    log: WrittenLog, flushed: int, commit: bool
) -> None:
    """The outcomes of markers below the checkpoint are in it."""
    steps: list[Callable[[], object]] = [
        lambda: in_transaction(log, 7, 3),
        lambda: log.append("a", 0, some_records(2)),
        lambda: log.end_transaction(7, commit=commit),
        lambda: log.append("a", 0, some_records(1)),
    ]
    log.flush()
    for at, step in enumerate(steps):
        step()
        log.flush()
        if at == flushed:
            log.stamp("a", 0)
            log.flush()
            write_checkpoint(log.bucket)
            log.stamp("a", 0)
            log.flush()
    in_it = [0, 1, 2] if commit else []
    assert shown(log) == [*in_it, 3, 4, 6]
    assert shown(log, **UNCOMMITTED) == [0, 1, 2, 3, 4, 6]


def test_a_marker_behind_a_gap_that_is_not_crossed_does_not_count(log: WrittenLog) -> None:
    """Nor is it known, then, that the transaction was committed: offsets below may still change."""
    other = log.register()
    in_transaction(log, 7, 2)
    log.flush()
    log.append("a", 0, some_records(2))
    late = log.reserve(other)
    log.end_transaction(7, commit=True)
    log.flush()
    assert shown(log) == []
    assert shown(log, **UNCOMMITTED) == [0, 1]
    log.land(late)
    assert shown(log) == [0, 1, 2, 3]


def test_a_log_start_beyond_an_open_transaction_is_its_stable_end(log: WrittenLog) -> None:
    """As in Kafka, and in the views of brokers."""
    in_transaction(log, 7, 2)
    log.append("a", 0, some_records(3))
    log.flush()
    WrittenTier(log).begin_at(log.partition("a", 0), 3)
    log.flush()
    assert shown(log) == []
    assert shown(log, **UNCOMMITTED) == [3, 4]
    log.end_transaction(7, commit=False)
    log.flush()
    assert shown(log) == [3, 4]


def test_no_object_is_read_for_an_outcome() -> None:
    """Footers say it: one GET a segment, however many markers there are."""
    bucket = CountedBucket()
    log = WrittenLog(bucket)
    log.create_topic("a", 3)
    for number in range(3):
        log.append("a", number, some_records(1), producer_id=7, transactional=True)
    log.flush()
    log.end_transaction(7, commit=True)
    log.flush()
    bucket.gets = 0
    assert len(planned_tasks(bucket, parse_options(BASE))) == 1
    assert bucket.gets == 2


def test_a_segment_that_does_not_say_how_a_transaction_ended_is_refused(log: WrittenLog) -> None:
    in_transaction(log, 7, 3)
    log.flush()
    marker = encode_marker(
        Marker(True, 1), base_offset=3, producer_id=7, producer_epoch=0, timestamp_ms=0
    )
    log.append_batch(log.partition("a", 0), marker)
    log.flush()
    with pytest.raises(InvalidDataError, match=r"producer 7 at offset 3 .*segment verify"):
        shown(log)
