"""The streaming reader as Spark calls it, without a Spark: progress, limits, losses."""

import json
import random
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from bucketlog.log_format.errors import ConfigurationError, DataLossError
from bucketlog.log_reader.options import check_stream, parse_options
from bucketlog.metadata.facts import LogStartPayload, LogStartsMoved
from bucketlog.spark_jobs import stream
from bucketlog.spark_jobs.progress import StreamProgress
from bucketlog.spark_jobs.schema import source_schema
from bucketlog.spark_jobs.stream import BucketlogStreamReader
from bucketlog.tiered_storage.backends.file import FileBucket
from tests.rigs.written_log import WrittenLog, some_records


class Query:
    """A query and its checkpoint: the calls that Spark 4.1 makes, in its order."""

    def __init__(self, folder: Path, **options: str) -> None:
        if "subscribePattern" not in options:
            options["subscribe"] = "a"
        self._options = parse_options(
            {"path": f"file://{folder}", "startingOffsets": "earliest", **options}
        )
        check_stream(self._options)
        self.slept: list[float] = []
        self.now = 0.0
        self.committed: dict[str, Any] | None = None
        self.read: list[tuple[str, int, int]] = []
        self.reader = self._start()

    def _start(self) -> BucketlogStreamReader:
        return BucketlogStreamReader(
            self._options,
            source_schema(include_headers=False),
            clock=lambda: self.now,
            sleep=self._sleep,
        )

    def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def restart(self) -> None:
        self.reader.stop()
        self.reader = self._start()
        if self.committed is not None:
            self.reader.partitions(self.committed, self.committed)

    def plan(self) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Start and end of the next batch; None where there is nothing."""
        latest = self.reader.latestOffset()
        start = self.committed if self.committed is not None else self.reader.initialOffset()
        return None if json.dumps(latest) == json.dumps(start) else (start, latest)

    def run(self, start: dict[str, Any], end: dict[str, Any]) -> list[tuple[str, int, int]]:
        found: list[tuple[str, int, int]] = []
        for task in self.reader.partitions(start, end):
            for batch in self.reader.read(task):
                rows = batch.select(["topic", "partition", "offset"]).to_pylist()
                found += [(row["topic"], row["partition"], row["offset"]) for row in rows]
        return found

    def trigger(self) -> list[tuple[str, int, int]]:
        planned = self.plan()
        if planned is None:
            return []
        found = self.run(*planned)
        self.committed = planned[1]
        self.read += found
        return found

    def offsets(self, partition: int = 0, topic: str = "a") -> list[int]:
        return [
            offset for name, number, offset in self.read if (name, number) == (topic, partition)
        ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "bucket"


@pytest.fixture
def log(folder: Path) -> WrittenLog:
    log = WrittenLog(FileBucket(folder / "0"))
    log.create_topic("a", 2)
    log.append("a", 0, some_records(10))
    log.append("a", 1, some_records(3))
    log.flush()
    return log


def test_what_comes_is_read_once_and_in_order(folder: Path, log: WrittenLog) -> None:
    query = Query(folder)
    assert len(query.trigger()) == 13
    for count in (5, 1, 7):
        log.append("a", 0, some_records(count))
        log.flush()
        assert len(query.trigger()) == count
        assert query.trigger() == []
    assert query.offsets(0) == list(range(23))
    assert query.offsets(1) == list(range(3))


def test_a_batch_that_is_run_again_reads_the_same(folder: Path, log: WrittenLog) -> None:
    query = Query(folder)
    planned = query.plan()
    assert planned is not None
    before = query.run(*planned)
    log.append("a", 0, some_records(50))
    log.flush()
    query.restart()  # it was not committed
    assert query.run(*planned) == before
    query.committed = planned[1]
    query.restart()
    assert {offset for _, _, offset in query.trigger()} == set(range(10, 60))


@pytest.mark.parametrize("starting", ["latest", "earliest"])
def test_the_first_batch_that_is_run_again_begins_where_it_began(
    folder: Path, log: WrittenLog, starting: str
) -> None:
    """Spark asks for the beginning anew, which may be later by then."""
    query = Query(folder, startingOffsets=starting)
    query.reader.initialOffset()
    log.append("a", 0, some_records(5))
    log.flush()
    query.now += 10
    planned = query.plan()
    assert planned is not None
    before = query.run(*planned)
    assert {offset for _, partition, offset in before if partition == 0} >= set(range(10, 15))
    log.append("a", 0, some_records(50))
    log.flush()
    query.restart()
    query.reader.partitions(planned[1], planned[1])
    assert query.run(query.reader.initialOffset(), planned[1]) == before
    query.committed = planned[1]
    assert [offset for _, _, offset in query.trigger()] == list(range(15, 65))
    assert query.trigger() == []


def test_what_the_first_batch_has_lost_is_told(folder: Path, log: WrittenLog) -> None:
    query = Query(folder)
    planned = query.plan()
    assert planned is not None
    move_start(log, 0, 4)
    query.restart()
    with pytest.raises(DataLossError, match="offsets 0 to 3 of a-0 are gone"):
        query.run(query.reader.initialOffset(), planned[1])


@pytest.mark.parametrize("most", [1, 3, 4, 1000])
def test_a_limit_shares_what_waits(folder: Path, log: WrittenLog, most: int) -> None:
    query = Query(folder, maxOffsetsPerTrigger=str(most))
    while found := query.trigger():
        assert len(found) <= max(most, 2), "each partition at least one"
        if random.Random(most).random() < 0.5:
            query.restart()
    assert query.offsets(0) == list(range(10))
    assert query.offsets(1) == list(range(3))


def test_new_partitions_and_topics_are_picked_up(folder: Path, log: WrittenLog) -> None:
    query = Query(folder, subscribePattern="a.*", startingOffsets="latest")
    assert query.trigger() == []
    log.add_partitions("a", 3)
    log.create_topic("ab")
    log.append("a", 2, some_records(4))
    log.append("ab", 0, some_records(2))
    log.flush()
    query.trigger()
    assert query.offsets(2) == [0, 1, 2, 3]
    assert query.offsets(0, "ab") == [0, 1]
    assert query.offsets(0) == [], "it began at the latest"


def move_start(log: WrittenLog, partition: int, to: int) -> None:
    topic_id, _ = log.topics["a"]
    moved = LogStartPayload(topic_id=UUID(bytes=topic_id), partition=partition, log_start=to)
    log.fact(LogStartsMoved(partitions=(moved,)))
    log.flush()


def test_retention_that_was_faster_is_told(folder: Path, log: WrittenLog) -> None:
    query, lenient = Query(folder), Query(folder, failOnDataLoss="false")
    log.append("a", 0, some_records(10))
    log.flush()
    for each in (query, lenient):
        each.committed = each.reader.initialOffset()
        each.now += 10
    move_start(log, 0, 10)
    with pytest.raises(DataLossError, match="offsets 0 to 9 of a-0 are gone"):
        query.trigger()
    lenient.trigger()
    assert lenient.offsets(0) == list(range(10, 20))


def test_a_topic_that_was_deleted_and_created_again(folder: Path, log: WrittenLog) -> None:
    query, lenient = Query(folder), Query(folder, failOnDataLoss="false")
    for each in (query, lenient):
        each.trigger()
        each.read.clear()
    log.delete_topic("a")
    log.flush()
    with pytest.raises(DataLossError, match="a-0 is not in the log any more"):
        query.trigger()
    assert lenient.trigger() == []
    log.create_topic("a", 2)
    log.append("a", 0, some_records(3))
    log.flush()
    lenient.trigger()
    assert lenient.offsets(0) == [0, 1, 2]


def test_a_log_that_ends_before_the_progress_is_not_read_on(
    folder: Path, log: WrittenLog, tmp_path: Path
) -> None:
    query = Query(folder)
    query.trigger()
    assert query.committed is not None
    ahead = json.loads(json.dumps(query.committed))
    ahead["topics"]["a"]["offsets"]["0"] = 25
    with pytest.raises(DataLossError, match="a-0 ends at 10, but the query has seen it end at 25"):
        query.run(query.committed, ahead)


def test_the_bucket_is_not_asked_all_the_time(folder: Path, log: WrittenLog) -> None:
    query = Query(folder, pollIntervalMs="700", maxOffsetsPerTrigger="5")
    while query.trigger():
        assert query.slept == []
    query.trigger()
    assert query.slept == [0.7, 0.7], "before it was said twice that there is nothing"


class Spark42:
    """What `pyspark.sql.streaming.datasource` has from Spark 4.2 on."""

    class ReadAllAvailable:
        pass

    class ReadMaxRows:
        def __init__(self, max_rows: int) -> None:
            self.max_rows = max_rows


def test_spark_that_tells_start_limit_and_trigger(
    folder: Path, log: WrittenLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "_limits", Spark42)
    query = Query(folder, maxOffsetsPerTrigger="4")
    reader = query.reader
    limit = reader.getDefaultReadLimit()
    assert limit.max_rows == 4
    reader.prepareForTriggerAvailableNow()
    log.append("a", 0, some_records(10))  # after the query began
    log.flush()
    at = reader.initialOffset()
    while (to := reader.latestOffset(at, limit)) != at:
        query.read += query.run(at, to)
        at = to
    assert query.offsets(0) == list(range(10))
    assert query.offsets(1) == list(range(3))
    fresh = Query(folder).reader
    at = fresh.initialOffset()
    everything = fresh.latestOffset(at, fresh.getDefaultReadLimit())
    assert everything["topics"]["a"]["offsets"] == {"0": 20, "1": 3}
    reported = fresh.reportLatestOffset()
    assert reported is not None
    assert reported["topics"] == everything["topics"]
    fresh.prepareForTriggerAvailableNow()
    assert fresh.latestOffset(everything, limit) == everything, "nothing new is no batch"


def test_progress_survives_json_and_strangers_are_refused() -> None:
    topic = {"id": "5f0c2d0e-8a63-4d9c-9d7e-0f6f3a1b2c3d", "offsets": {"0": 5, "10": 1, "2": 3}}
    found = StreamProgress.from_json({"version": 1, "topics": {"a": topic}})
    assert StreamProgress.from_json(found.to_json()) == found
    assert list(found.to_json()["topics"]["a"]["offsets"]) == ["0", "2", "10"]
    strangers: list[Any] = [{"a": {"0": "x"}}, {"version": 2, "topics": {}}, [], "x", None, {}]
    for wrong in strangers:
        with pytest.raises(ConfigurationError, match="checkpointLocation"):
            StreamProgress.from_json(wrong)


def test_small_batches_wait_for_more_records_or_for_the_longest_delay(
    folder: Path, log: WrittenLog
) -> None:
    query = Query(folder, minOffsetsPerTrigger="20", maxTriggerDelay="1min")
    assert len(query.trigger()) == 13, "the first batch has all that is there"
    log.append("a", 0, some_records(19))
    log.flush()
    assert query.trigger() == []
    query.now += 59
    assert query.trigger() == []
    query.now += 1
    assert len(query.trigger()) == 19
    log.append("a", 1, some_records(20))
    log.flush()
    query.now += 1
    assert len(query.trigger()) == 20
    assert query.trigger() == []


def test_available_now_reads_small_rests(
    folder: Path, log: WrittenLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "_limits", Spark42)
    query = Query(folder, maxOffsetsPerTrigger="8", minOffsetsPerTrigger="8")
    reader = query.reader
    reader.prepareForTriggerAvailableNow()
    at, limit = reader.initialOffset(), reader.getDefaultReadLimit()
    while (to := reader.latestOffset(at, limit)) != at:
        query.read += query.run(at, to)
        at = to
    assert len(query.read) == 13


@pytest.mark.parametrize(
    ("delay", "ms"), [("15m", 900_000), ("2min", 120_000), ("500", 500), ("1.5h", 5_400_000)]
)
def test_delays_are_written_as_spark_writes_them(delay: str, ms: int) -> None:
    given = {"path": "/x", "subscribe": "a", "maxTriggerDelay": delay}
    assert parse_options(given).max_trigger_delay_ms == ms


def test_a_least_number_above_the_largest_one_is_refused() -> None:
    given = {"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "8"}
    with pytest.raises(ConfigurationError, match="minOffsetsPerTrigger 9 is above"):
        parse_options({"path": "/x", "subscribe": "a", **given})


def test_a_query_continues_from_the_checkpoint_of_sparks_kafka_source(
    folder: Path, log: WrittenLog
) -> None:
    query = Query(folder)
    query.committed = {"a": {"0": 7, "1": 3}}
    log.append("a", 1, some_records(2))
    log.flush()
    query.restart()
    assert sorted(query.trigger()) == [
        ("a", 0, 7),
        ("a", 0, 8),
        ("a", 0, 9),
        ("a", 1, 3),
        ("a", 1, 4),
    ]
    query.restart()
    assert query.trigger() == []


def test_the_checkpoint_of_another_log_is_refused(folder: Path, log: WrittenLog) -> None:
    query = Query(folder)
    query.committed = {"elsewhere": {"0": 7}}
    with pytest.raises(ConfigurationError, match="elsewhere"):
        query.restart()
    ahead = Query(folder)
    ahead.committed = {"a": {"0": 99}}
    with pytest.raises(DataLossError, match="seen it end at 99"):
        ahead.run({"a": {"0": 9}}, {"a": {"0": 99}})


def test_the_isolation_of_sparks_kafka_source_is_known_and_its_other_options_are_not() -> None:
    given = {"path": "/x", "subscribe": "a", "kafka.isolation.level": "read_uncommitted"}
    options = parse_options({**given, "kafka.bootstrap.servers": "x:1", "groupIdPrefix": "p"})
    assert options.isolation == "read_uncommitted"
    assert options.ignored == ("groupidprefix", "kafka.bootstrap.servers")
    assert parse_options({**given, "isolation.level": "read_committed"}).isolation == (
        "read_committed"
    )


def test_ends_make_no_sense_in_a_stream() -> None:
    options = parse_options({"path": "/x", "subscribe": "a", "endingOffsets": "latest"})
    with pytest.raises(ConfigurationError, match="no end"):
        check_stream(options)


def test_ids_of_topics_are_not_for_a_stream() -> None:
    ids = f'{{"a": "{UUID(int=1)}"}}'
    options = parse_options({"path": "/x", "subscribe": "a", "topicIds": ids})
    with pytest.raises(ConfigurationError, match="topicIds are for a batch read"):
        check_stream(options)
    for wrong in ("a", '{"a": "1"}', '["a"]'):
        with pytest.raises(ConfigurationError, match="topicIds"):
            parse_options({"path": "/x", "subscribe": "a", "topicIds": wrong})
