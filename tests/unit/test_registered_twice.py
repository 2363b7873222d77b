"""Anybody who may create an empty object under `writers/` can register a writer a second time. The
error names the object; no chain is left unsealed because of it, and no segment is deleted."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bucketlog.inspect.verify import verify_log
from bucketlog.log_format.errors import InvalidDataError
from bucketlog.stateless_broker.duties.deletion import Deleter, DeletionSettings
from bucketlog.stateless_broker.epochs.committed_log import CommittedLog
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from bucketlog.tiered_storage.backends.threaded import ThreadedBucket
from bucketlog.tiered_storage.log_cut_reading import read_log
from bucketlog.tiered_storage.tails import all_starts
from tests.rigs.checkpoints import write_checkpoint
from tests.rigs.written_log import WrittenLog, some_records


@pytest.fixture
def log() -> WrittenLog:
    log = WrittenLog(MemoryBucket(), epoch=2)
    log.create_topic("t")
    for _ in range(4):
        log.append("t", 0, some_records(2))
        log.flush()
    return log


def register_again(log: WrittenLog, epoch: int) -> str:
    key = keys.writer_registration(epoch, log.first_writer)
    assert log.bucket.create(key, [b""])
    return key


@pytest.mark.parametrize("epoch", [0, 1, 3, keys.EPOCH_MAX])
def test_every_reader_refuses_it(log: WrittenLog, epoch: int) -> None:
    again = register_again(log, epoch)
    own = keys.writer_registration(log.epoch, log.first_writer)
    with pytest.raises(InvalidDataError) as refused:
        read_log(log.bucket)
    assert again in str(refused.value)
    assert own in str(refused.value)
    with pytest.raises(InvalidDataError):
        all_starts(log.bucket.list(keys.WRITERS))
    named = [each.key for each in verify_log(log.bucket).damage]
    assert own in named or again in named


def test_every_reader_after_a_checkpoint_refuses_it(log: WrittenLog) -> None:
    """Only registrations of later epochs are listed then."""
    write_checkpoint(log.bucket, active_epoch=log.epoch)
    register_again(log, log.epoch + 1)
    with pytest.raises(InvalidDataError, match="one writer in two epochs"):
        read_log(log.bucket)


@pytest.mark.parametrize("epoch", [0, 3])
async def test_nothing_is_deleted(log: WrittenLog, epoch: int) -> None:
    """Of a writer of an earlier epoch than the floor's, all segments go but those that the floor
    names: of a live writer these would be the newest ones."""

    def go_on(*, covered: bool) -> None:
        log.append("t", 0, some_records(2))
        log.flush()
        if covered:
            write_checkpoint(log.bucket, active_epoch=log.epoch)

    bucket = ThreadedBucket(log.bucket)
    counts = SimpleNamespace(count_deleted=lambda kind, count: None)

    async def sweep(*_: object) -> None:
        await asyncio.sleep(0)

    deleter = Deleter(
        bucket=bucket,
        committed=CommittedLog(bucket, footer_reads_in_flight=4),
        context=cast(Any, SimpleNamespace(counts=counts)),
        sweeper=cast(Any, SimpleNamespace(sweep=sweep)),
        settings=DeletionSettings(safety_age_ms=0, keys_per_s=100_000),
    )
    go_on(covered=True)
    go_on(covered=True)
    assert await deleter.round() == 0, "the floor is laid"
    go_on(covered=True)
    go_on(covered=False)
    register_again(log, epoch)
    before = [info.key for info in log.bucket.list(keys.LOG)]
    with pytest.raises(InvalidDataError, match="one writer in two epochs"):
        await deleter.round()
    assert [info.key for info in log.bucket.list(keys.LOG)] == before
