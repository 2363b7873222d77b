"""`verify_log` on logs with transactions: sound logs pass, and each contradiction is named."""

import pytest

from bucketlog.inspect.doctor.of_bucket import digest_of_bucket
from bucketlog.inspect.verify import verify_log
from bucketlog.log_format.batch import read_header
from bucketlog.log_format.control_batch import Marker, encode_marker
from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_format.model import FactEntry, Ticket
from bucketlog.log_format.rewriting import left_out_batch
from bucketlog.log_reader.options import parse_options
from bucketlog.log_reader.planning import planned_tasks
from bucketlog.metadata.facts import Fact
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from bucketlog.tiered_storage.floors import Floor, encode_floor
from tests.models.indexes import end, forget_ids, initialise, send_offsets, swap, swapped
from tests.rigs.checkpoints import write_checkpoint
from tests.rigs.transactional_log import TransactionalLog
from tests.rigs.written_log import WrittenLog, some_records
from tests.rigs.written_tier import Batch, WrittenTier, batch_of, batches_in
from tests.unit.test_verify import IDENTITY, found

PRODUCER = 7


def new_log() -> WrittenLog:
    bucket = MemoryBucket()
    assert bucket.create(keys.CLUSTER, [IDENTITY.model_dump_json().encode()])
    log = WrittenLog(bucket)
    log.create_topic("t", 2)
    return log


@pytest.mark.parametrize("seed", range(5))
def test_a_sound_log(seed: int) -> None:
    bucket = MemoryBucket()
    assert bucket.create(keys.CLUSTER, [IDENTITY.model_dump_json().encode()])
    planted = TransactionalLog(bucket, seed)
    assert found(verify_log(bucket)) == []
    write_checkpoint(bucket)
    assert found(verify_log(bucket)) == []
    digest = digest_of_bucket(bucket)
    parts = [each for topic in digest.topics.values() for each in topic.partitions]
    expected = planted.expected(committed_only=True)
    assert [part.records for part in parts] == [len(rows) for rows in expected.values()]
    assert [part.latest for part in parts] == [
        part.stable_end for part in planted.partitions.values()
    ]


def damage_of(log: WrittenLog) -> str:
    (damage,) = verify_log(log.bucket).damage
    return f"{damage.key} {damage.reason}"


def started(log: WrittenLog, *partitions: int) -> None:
    for number in partitions:
        log.append("t", number, some_records(2), producer_id=PRODUCER, transactional=True)
    log.flush()


def plant_marker(log: WrittenLog, number: int, *, commit: bool) -> None:
    key = log.partition("t", number)
    base = log.next_offset[key]
    log.next_offset[key] += 1
    marker = encode_marker(
        Marker(commit, 1),
        base_offset=base,
        producer_id=PRODUCER,
        producer_epoch=0,
        timestamp_ms=0,
    )
    log.append_batch(key, marker)


def test_a_marker_without_its_fact_is_named() -> None:
    log = new_log()
    started(log, 0)
    plant_marker(log, 0, commit=True)
    assert log.flush().key in damage_of(log)
    assert "producer 7 at offset 2: no fact of the segment says" in damage_of(log)


def test_a_marker_that_says_otherwise_is_named() -> None:
    log = new_log()
    started(log, 0)
    plant_marker(log, 0, commit=True)
    log.fact(end("id of 7", PRODUCER, commit=False))
    assert log.flush().key in damage_of(log)
    assert "the fact of its transaction says otherwise" in damage_of(log)


def test_an_end_without_all_its_markers_is_named() -> None:
    log = new_log()
    started(log, 0, 1)
    plant_marker(log, 0, commit=True)
    log.fact(end("id of 7", PRODUCER, commit=True))
    assert log.flush().key in damage_of(log)
    assert "the marker in partition 1" in damage_of(log)


@pytest.mark.parametrize(
    "fact",
    [
        end("never", 1, commit=True),
        end("id of 7", PRODUCER, 5, commit=True),
        send_offsets("never", 1, 0, "g", {}),
        forget_ids("never"),
    ],
    ids=["end", "epoch", "offsets", "forgotten"],
)
def test_a_fact_that_does_not_fit_is_named(fact: Fact) -> None:
    log = new_log()
    log.fact(initialise("id of 7", PRODUCER))
    log.flush()
    log.fact(fact)
    assert log.flush().key in damage_of(log)
    assert "transactional id" in damage_of(log)


def test_a_fact_of_a_newer_release_names_the_remedy() -> None:
    """Brokers, replay, Spark and verify stop at it: there is no skip bit."""
    log = new_log()
    log.entry(FactEntry(99, 1, b"{}"))
    log.flush()
    assert "kind 99 version 1 (a newer bucketlog wrote it: upgrade this one)" in damage_of(log)
    with pytest.raises(InvalidDataError, match=r"kind 99 version 1 .*upgrade"):
        planned_tasks(log.bucket, parse_options({"path": "file:///logs", "subscribe": "t"}))


# Tiers --------------------------------------------------------------------------------------------


def tiered(*, commit: bool) -> tuple[WrittenLog, list[Batch]]:
    """A plain batch, one of a transaction, its marker."""
    log = new_log()
    log.append("t", 0, some_records(1))
    log.append("t", 0, some_records(2), producer_id=PRODUCER, transactional=True)
    first = log.flush()
    log.end_transaction(PRODUCER, commit=commit)
    ended = log.flush()
    return log, [batch for reserved in (first, ended) for _, batch in batches_in(reserved)]


def split(log: WrittenLog, kept: list[Batch], stop: int) -> None:
    tier = WrittenTier(log)
    key = log.partition("t", 0)
    row = tier.write(key, 0, stop, kept)
    log.fact(swapped(swap(key, 0, stop, row), planned=(log.epoch, log.ticket)))
    log.flush()


def emptied(batch: Batch) -> Batch:
    return batch_of(left_out_batch(read_header(batch.data)))


def test_a_tier_without_aborted_batches_is_sound() -> None:
    log, (plain, aborted, marker) = tiered(commit=False)
    split(log, [plain, emptied(marker)], marker.next_offset)
    assert found(verify_log(log.bucket)) == []
    other, (plain, aborted, marker) = tiered(commit=False)
    split(other, [plain, emptied(aborted)], aborted.next_offset)
    assert found(verify_log(other.bucket)) == []
    log, (plain, committed, marker) = tiered(commit=True)
    split(log, [plain, committed, emptied(marker)], marker.next_offset)
    assert found(verify_log(log.bucket)) == []


def test_beside_a_damaged_checkpoint() -> None:
    log, (plain, committed, marker) = tiered(commit=True)
    split(log, [plain, committed, emptied(marker)], marker.next_offset)
    key = keys.checkpoint(Ticket(9, 9))
    assert log.bucket.create(key, [b"x"])
    assert [each.key for each in verify_log(log.bucket).damage] == [key]


@pytest.mark.parametrize("with_checkpoint", [False, True])
def test_aborted_records_in_a_tier_are_named(with_checkpoint: bool) -> None:
    log, (plain, aborted, marker) = tiered(commit=False)
    split(log, [plain, aborted, emptied(marker)], marker.next_offset)
    if with_checkpoint:
        write_checkpoint(log.bucket)
    assert "offset 1 is of an aborted transaction" in damage_of(log)
    log, (plain, aborted, marker) = tiered(commit=False)
    split(log, [plain, marker], marker.next_offset)
    assert "offset 3 is of an aborted transaction, or a marker" in damage_of(log)


def test_committed_records_that_a_tier_lacks_are_named() -> None:
    log, (plain, committed, marker) = tiered(commit=True)
    split(log, [plain, emptied(marker)], marker.next_offset)
    assert "offset 1 is not that of" in damage_of(log)
    log, (plain, committed, marker) = tiered(commit=True)
    split(log, [plain, emptied(committed), emptied(marker)], marker.next_offset)
    assert "offset 1 is not that of" in damage_of(log)


@pytest.mark.parametrize("commit", [True, False])
def test_below_a_floor_nothing_is_guessed(commit: bool) -> None:
    """How a transaction ended is not known there: it may be in the tier or not."""
    log, (plain, batch, marker) = tiered(commit=commit)
    kept = [plain, batch] if commit else [plain]
    split(log, [*kept, emptied(marker)], marker.next_offset)
    log.append("t", 0, some_records(1))
    log.flush()
    made = write_checkpoint(log.bucket)
    assert log.bucket.create(keys.floor(made.ticket), [encode_floor(Floor.of(made, made))])
    assert found(verify_log(log.bucket)) == []
