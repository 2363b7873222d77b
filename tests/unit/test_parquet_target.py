"""The target of a replay: verified, replaced as a whole, and shared with nobody."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from bucketlog.log_format.errors import (
    BucketUnavailableError,
    ConfigurationError,
    CorruptObjectError,
)
from bucketlog.log_reader.parquet_target import (
    CLAIM,
    SUCCESS,
    ReplayTarget,
    parse_target,
    replacing,
)
from bucketlog.log_reader.parquet_writing import (
    FileRecords,
    ParquetSettings,
    TaskName,
    chosen_columns,
    write_task,
)
from bucketlog.log_reader.replay_plan import ReplayPlan, plan_replay, replay_options
from bucketlog.tiered_storage.backends.file import FileBucket
from bucketlog.tiered_storage.bucket import SyncBucket
from tests.rigs.written_log import WrittenLog, some_records

STRANGER = "notes/contract.pdf"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """`orders` (three partitions) and `refunds`, in six segments."""
    folder = tmp_path / "bucket"
    log = WrittenLog(FileBucket(folder / "0"))
    log.create_topic("orders", 3)
    log.create_topic("refunds", 1)
    for _ in range(6):
        for topic, partition in (("orders", 0), ("orders", 1), ("orders", 2), ("refunds", 0)):
            log.append(topic, partition, some_records(10, tag=f"{topic}{partition}"))
        log.flush()
    log.bucket.close()
    return folder


def plan_of(folder: Path, topics: str = "orders,refunds") -> ReplayPlan:
    return plan_replay(replay_options({"path": str(folder), "subscribe": topics}))


def write(plan: ReplayPlan, target: SyncBucket, job: str) -> list[FileRecords]:
    settings = ParquetSettings()
    columns = chosen_columns(None, settings, include_headers=False)
    source = plan.open_source()
    try:
        return [
            row
            for number, pieces in enumerate(plan.tasks)
            for row in write_task(
                source, pieces, target, TaskName(job, number), columns, settings, plan.options
            )
        ]
    finally:
        source.close()


@pytest.fixture
def target(tmp_path: Path) -> ReplayTarget:
    return parse_target(str(tmp_path / "lake"), source=str(tmp_path / "bucket"))


@pytest.fixture
def opened(target: ReplayTarget) -> Iterator[FileBucket]:
    bucket = FileBucket(Path(target.location.path))
    yield bucket
    bucket.close()


def keys_of(bucket: SyncBucket) -> list[str]:
    return sorted(info.key for info in bucket.list(""))


def replayed(
    target: ReplayTarget,
    plan: ReplayPlan,
    *,
    job: str = "job",
    overwrite: bool = False,
    spoil: Any = None,
) -> Sequence[Any]:
    with replacing(target, job, overwrite=overwrite) as replacement:
        written = write(plan, replacement.bucket, job)
        if spoil is not None:
            written = spoil(replacement.bucket, written) or written
        return replacement.verify(written, plan.partitions, plan.records)


def test_success_stands_beside_verified_files(
    folder: Path, target: ReplayTarget, opened: FileBucket
) -> None:
    partitions = replayed(target, plan_of(folder))
    assert [part.records for part in partitions] == [60] * 4
    assert SUCCESS in keys_of(opened)
    assert len(keys_of(opened)) == 5


def lose_one(bucket: SyncBucket, written: list[FileRecords]) -> None:
    bucket.delete([written[0].file])


def truncate(bucket: SyncBucket, written: list[FileRecords]) -> None:
    data = bytes(bucket.get(written[0].file).data)
    bucket.delete([written[0].file])
    assert bucket.create(written[0].file, [data[:-1] + b"x"])


def tell_too_few(bucket: SyncBucket, written: list[FileRecords]) -> list[FileRecords]:
    return [written[0]._replace(records=written[0].records - 1), *written[1:]]


def forget_a_task(bucket: SyncBucket, written: list[FileRecords]) -> list[FileRecords]:
    bucket.delete([written[0].file])
    return written[1:]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lose_one, "it is missing"),
        (truncate, "it is not Parquet"),
        (tell_too_few, "it has 60 records"),
        (forget_a_task, "180 records are there, 240 were to be replayed"),
    ],
)
def test_what_does_not_come_to_what_was_promised_is_no_success(
    folder: Path, target: ReplayTarget, opened: FileBucket, spoil: Any, message: str
) -> None:
    with pytest.raises(CorruptObjectError, match=message):
        replayed(target, plan_of(folder), spoil=spoil)
    assert keys_of(opened) == []


def test_old_files_go_once_the_new_ones_are_complete(
    folder: Path, target: ReplayTarget, opened: FileBucket
) -> None:
    replayed(target, plan_of(folder, "orders"))
    before = keys_of(opened)
    with pytest.raises(ConfigurationError, match="holds files already"):
        replayed(target, plan_of(folder, "refunds"))
    assert keys_of(opened) == before

    def look(bucket: SyncBucket, _: list[FileRecords]) -> None:
        assert set(before) - {SUCCESS} <= set(keys_of(bucket))  # nothing old has gone yet

    replayed(target, plan_of(folder, "refunds"), job="new", overwrite=True, spoil=look)
    assert keys_of(opened) == [SUCCESS, "topic=refunds/partition=0/part-00000-00000-new.parquet"]


def test_a_replay_that_fails_leaves_the_old_files(
    folder: Path, target: ReplayTarget, opened: FileBucket
) -> None:
    replayed(target, plan_of(folder, "refunds"))
    before = keys_of(opened)
    with pytest.raises(CorruptObjectError):
        replayed(target, plan_of(folder, "orders"), job="new", overwrite=True, spoil=lose_one)
    assert keys_of(opened) == [key for key in before if key != SUCCESS]


def test_what_is_no_parquet_is_never_overwritten(
    folder: Path, target: ReplayTarget, opened: FileBucket
) -> None:
    assert opened.create("letters/to-keep.txt", [b"dear"])
    with pytest.raises(ConfigurationError, match=r"to-keep\.txt', which is not Parquet"):
        replayed(target, plan_of(folder), overwrite=True)
    assert keys_of(opened) == ["letters/to-keep.txt"]


@pytest.mark.parametrize("stray", ["topic=orders/partition=0/part-stray.parquet", STRANGER])
def test_what_somebody_else_puts_there_fails_the_replay_and_stays(
    folder: Path, target: ReplayTarget, opened: FileBucket, stray: str
) -> None:
    def add_one(bucket: SyncBucket, _: list[FileRecords]) -> None:
        assert bucket.create(stray, [b"precious"])

    with pytest.raises(CorruptObjectError, match="no task wrote it"):
        replayed(target, plan_of(folder), spoil=add_one)
    assert keys_of(opened) == [stray]


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_second_replay_is_refused_while_one_writes(
    folder: Path, target: ReplayTarget, opened: FileBucket, overwrite: bool
) -> None:
    def begin_another(_: SyncBucket, __: list[FileRecords]) -> None:
        before = keys_of(opened)
        with pytest.raises(ConfigurationError, match=f"another replay writes.*remove {CLAIM}"):
            replayed(target, plan_of(folder, "refunds"), job="second", overwrite=overwrite)
        assert keys_of(opened) == before

    replayed(target, plan_of(folder), job="first", spoil=begin_another)
    assert len(keys_of(opened)) == 5
    assert CLAIM not in keys_of(opened)


def test_of_two_that_list_an_empty_target_at_once_one_writes(
    folder: Path, target: ReplayTarget, opened: FileBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other has its claim in between the second one's listing and claim."""
    create = FileBucket.create
    first = replacing(target, "first", overwrite=False)

    def begin_first(self: FileBucket, key: str, parts: Any) -> bool:
        monkeypatch.setattr(FileBucket, "create", create)
        first.__enter__()
        return create(self, key, parts)

    monkeypatch.setattr(FileBucket, "create", begin_first)
    with pytest.raises(ConfigurationError, match="another replay writes"):
        replayed(target, plan_of(folder), job="second")
    assert keys_of(opened) == [CLAIM]
    with pytest.raises(KeyboardInterrupt):
        first.gen.throw(KeyboardInterrupt())
    assert keys_of(opened) == []


def test_two_whose_claim_was_removed_do_each_other_no_harm(
    folder: Path, target: ReplayTarget, opened: FileBucket
) -> None:
    """The second lists nothing, the first writes and ends; the second finds files of another."""
    plan = plan_of(folder)

    def first_ends(bucket: SyncBucket, _: list[FileRecords]) -> None:
        bucket.delete([CLAIM, *[key for key in keys_of(bucket) if "-second." in key]])
        replayed(target, plan, job="first")

    with pytest.raises(CorruptObjectError, match="no task wrote it"):
        replayed(target, plan, job="second", spoil=first_ends)
    keys = keys_of(opened)
    assert keys[0] == SUCCESS
    assert len(keys) == 5
    assert all("-first." in key for key in keys[1:])


@pytest.mark.parametrize("failure", [BucketUnavailableError("503 SlowDown"), KeyboardInterrupt()])
def test_where_removing_the_old_files_fails_the_new_ones_stay(
    folder: Path,
    target: ReplayTarget,
    opened: FileBucket,
    monkeypatch: pytest.MonkeyPatch,
    failure: BaseException,
) -> None:
    replayed(target, plan_of(folder))
    old = [key for key in keys_of(opened) if key != SUCCESS]
    delete = FileBucket.delete

    def half(self: FileBucket, keys: Sequence[str]) -> None:
        if any(key in old for key in keys):
            delete(self, keys[:2])
            raise failure
        delete(self, keys)

    monkeypatch.setattr(FileBucket, "delete", half)
    with pytest.raises(type(failure)) as failed:
        replayed(target, plan_of(folder), job="new", overwrite=True)
    new = [key.replace("-job.", "-new.") for key in old]
    assert keys_of(opened) == sorted([*new, *old[2:]])
    (note,) = failed.value.__notes__
    assert f"remove the 2 old files, from {old[2]} to {old[3]}, then put an empty _SUCCESS" in note


def test_where_success_cannot_be_put_the_new_files_stay(
    folder: Path, target: ReplayTarget, opened: FileBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    replayed(target, plan_of(folder))
    old = [key for key in keys_of(opened) if key != SUCCESS]
    create = FileBucket.create

    def no_success(self: FileBucket, key: str, parts: Any) -> bool:
        if key == SUCCESS:
            raise BucketUnavailableError("503 SlowDown")
        return create(self, key, parts)

    monkeypatch.setattr(FileBucket, "create", no_success)
    with pytest.raises(BucketUnavailableError) as failed:
        replayed(target, plan_of(folder), job="new", overwrite=True)
    assert keys_of(opened) == [key.replace("-job.", "-new.") for key in old]
    (note,) = failed.value.__notes__
    assert note.endswith("what is left to do: put an empty _SUCCESS there")


def test_a_kill_anywhere_leaves_all_of_the_old_or_all_of_the_new(
    folder: Path, target: ReplayTarget, opened: FileBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is there is looked at after every step, each of which may be the last."""
    replayed(target, plan_of(folder))
    old = {key for key in keys_of(opened) if key != SUCCESS}
    new = {key.replace("-job.", "-new.") for key in old}
    create, delete = FileBucket.create, FileBucket.delete
    seen: list[set[str]] = []

    def create_and_look(self: FileBucket, key: str, parts: Any) -> bool:
        created = create(self, key, parts)
        seen.append(set(keys_of(opened)))
        return created

    def delete_and_look(self: FileBucket, keys: Sequence[str]) -> None:
        for key in keys:
            delete(self, [key])
            seen.append(set(keys_of(opened)))

    monkeypatch.setattr(FileBucket, "create", create_and_look)
    monkeypatch.setattr(FileBucket, "delete", delete_and_look)
    replayed(target, plan_of(folder), job="new", overwrite=True)
    assert len(seen) == 1 + 1 + 4 + 4 + 1 + 1
    assert all(old <= keys or new <= keys for keys in seen)
    assert all(new <= keys and not keys & old for keys in seen if SUCCESS in keys and keys & new)
