"""isolation.level on crafted segments: what readers of committed transactions are shown."""

import pytest

from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_reader.fetch import read_pieces
from bucketlog.log_reader.options import parse_options
from bucketlog.log_reader.planning import planned_tasks
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from tests.rigs.written_log import WrittenLog, some_records
from tests.rigs.written_tier import WrittenTier, batches_in

BASE = {"path": "file:///logs", "subscribe": "a"}


def shown(log: WrittenLog, **options: str) -> list[int]:
    parsed = parse_options({**BASE, **options})
    found: list[int] = []
    for task in planned_tasks(log.bucket, parsed):
        for batch in read_pieces(
            log.bucket,
            task,
            ["offset"],
            max_decompressed_bytes=1 << 20,
            isolation=parsed.isolation,
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
    log.end_transaction("a", 0, 7, commit=True)
    again = in_transaction(log, 8, 1)
    log.end_transaction("a", 0, 8, commit=False)
    later = in_transaction(log, 8, 2)
    log.end_transaction("a", 0, 8, commit=True)
    log.flush()
    assert shown(log) == [*plain, *committed, *later]
    everything = sorted([*plain, *committed, *aborted, *again, *later])
    assert shown(log, **{"isolation.level": "read_uncommitted"}) == everything


def test_an_open_transaction_ends_what_is_stable(log: WrittenLog) -> None:
    before = log.append("a", 0, some_records(2))
    in_transaction(log, 7, 3)
    log.append("a", 0, some_records(2))
    log.flush()
    assert shown(log) == [record.offset for record in before]
    assert len(shown(log, **{"isolation.level": "read_uncommitted"})) == 7
    log.end_transaction("a", 0, 7, commit=True)
    log.flush()
    assert len(shown(log)) == 7


def test_a_transaction_that_began_below_the_start_is_known(log: WrittenLog) -> None:
    in_transaction(log, 7, 3)
    log.flush()
    in_transaction(log, 7, 3)
    log.end_transaction("a", 0, 7, commit=False)
    kept = log.append("a", 0, some_records(1))
    log.flush()
    assert shown(log, startingOffsets='{"a":{"0":4}}') == [kept[0].offset]


def test_a_transaction_in_a_tier_is_refused_and_not_guessed(log: WrittenLog) -> None:
    in_transaction(log, 7, 3)
    log.end_transaction("a", 0, 7, commit=False)
    batches = [batch for _, batch in batches_in(log.flush())]
    WrittenTier(log).split(log.partition("a", 0), batches, 0)
    log.flush()
    with pytest.raises(InvalidDataError, match="offset 0 of topic 'a' partition 0"):
        shown(log)
    assert shown(log, **{"isolation.level": "read_uncommitted"}) == [0, 1, 2]
