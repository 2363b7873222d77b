"""What an ingest reads of the log, without a Spark."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from bucketlog.log_format.errors import BucketUnavailableError, ConfigurationError
from bucketlog.log_reader.options import parse_options
from bucketlog.log_reader.planning import planned_tasks
from bucketlog.log_reader.tables.ingested_log import IngestedLog
from bucketlog.tiered_storage.backends.file import FileBucket
from tests.rigs.written_log import WrittenLog, some_records

START = {("orders", 0): 0}
END = {("orders", 0): 10}


@pytest.fixture
def url(tmp_path: Path) -> str:
    log = WrittenLog(FileBucket(tmp_path / "0"))
    log.create_topic("orders")
    log.append("orders", 0, some_records(10))
    log.flush()
    return f"file://{tmp_path}"


def finds_records(log: IngestedLog, reading: Mapping[str, str]) -> bool:
    """Plans the stretch, and reads until the first record."""
    options = parse_options(reading)
    return log.has_records(options, log.plan(options, cores=lambda: 1))


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("failOnDataLoss", "--fail-on-data-loss"),
        ("FAILONDATALOSS", "--fail-on-data-loss"),
        ("Subscribe", "--topics"),
        ("subscribePattern", "--topics"),
        ("assign", "--topics"),
        ("topicIds", "--topics"),
        ("Path", "--bucket"),
    ],
)
def test_what_the_ingest_says_itself_is_refused(url: str, name: str, remedy: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{name}.*give {remedy}"):
        IngestedLog(url, ["orders"], {name: "false"})


def test_what_is_planned_is_read_whole_or_fails(url: str) -> None:
    log = IngestedLog(url, ["orders"], {"maxPartitionBytes": "100000"})
    parts = log.now(is_first=True, fail_on_data_loss=False)
    assert parse_options(log.reading(START, END, parts)).fail_on_data_loss


def test_a_topic_that_is_created_again_during_a_run_is_refused(tmp_path: Path) -> None:
    """It has as many records, so that no offset tells the two apart."""
    written = WrittenLog(FileBucket(tmp_path / "0"))
    written.create_topic("orders")
    written.append("orders", 0, some_records(10))
    written.flush()
    log = IngestedLog(f"file://{tmp_path}", ["orders"], {})
    reading = log.reading(START, END, log.now(is_first=True, fail_on_data_loss=True))
    assert finds_records(log, reading)
    written.delete_topic("orders")
    written.create_topic("orders")
    written.append("orders", 0, some_records(10))
    written.flush()
    again = "'orders' has the id .*, not .*: the topic was deleted and created again"
    with pytest.raises(ConfigurationError, match=again):
        finds_records(log, reading)
    with pytest.raises(ConfigurationError, match=again):
        planned_tasks(written.bucket, parse_options(reading))  # as Spark plans it
    assert finds_records(
        log, log.reading(START, END, log.now(is_first=True, fail_on_data_loss=True))
    )


def failing_once(call: Callable[..., object]) -> Callable[..., object]:
    failed: list[bool] = []

    def flaky(*arguments: object, **named: object) -> object:
        if not failed:
            failed.append(True)
            raise BucketUnavailableError("503 Slow Down")
        return call(*arguments, **named)

    return flaky


@pytest.mark.parametrize("request_", ["list", "get"])
def test_a_request_that_is_refused_once_is_made_again(
    url: str, monkeypatch: pytest.MonkeyPatch, request_: str
) -> None:
    flaky = failing_once(getattr(FileBucket, request_))
    log = IngestedLog(url, ["orders"], {})
    with monkeypatch.context() as patch:
        patch.setattr(FileBucket, request_, flaky)
        (part,) = log.now(is_first=True, fail_on_data_loss=True)
    assert (part.start, part.end) == (0, 10)
    flaky = failing_once(getattr(FileBucket, request_))
    monkeypatch.setattr(FileBucket, request_, flaky)
    assert finds_records(log, log.reading(START, END, [part]))


def test_no_patience_is_given_up_soon(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def down(*arguments: object, **named: object) -> object:
        raise BucketUnavailableError("503 Slow Down")

    monkeypatch.setattr(FileBucket, "list", down)
    with pytest.raises(BucketUnavailableError, match="503"):
        IngestedLog(url, ["orders"], {"giveUpAfterMs": "1"}).now(
            is_first=True, fail_on_data_loss=True
        )


def test_each_footer_is_read_once(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gets: list[str] = []
    get = FileBucket.get

    def counted(bucket: FileBucket, key: str, *arguments: Any, **named: Any) -> Any:
        gets.append(key)
        return get(bucket, key, *arguments, **named)

    monkeypatch.setattr(FileBucket, "get", counted)
    log = IngestedLog(url, ["orders"], {})
    for _ in range(3):
        (part,) = log.now(is_first=True, fail_on_data_loss=True)
        assert log.plan(parse_options(log.reading(START, END, [part])), cores=lambda: 1)
    assert len(gets) == len(set(gets)) > 0
    seen = len(gets)
    log.close()
    log.now(is_first=True, fail_on_data_loss=True)
    assert len(gets) > seen
