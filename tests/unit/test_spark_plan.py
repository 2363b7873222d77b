"""Options, ranges and tasks of the Spark source, without a Spark."""

import pickle
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from bucketlog.log_format.errors import ConfigurationError, CorruptObjectError
from bucketlog.log_reader.fetch import READ_AHEAD, read_pieces
from bucketlog.log_reader.options import (
    Assign,
    Subscribe,
    SubscribePattern,
    check_batch,
    parse_options,
)
from bucketlog.log_reader.plan import (
    Piece,
    TaskLimits,
    TaskPiece,
    count_records,
    plan_tasks,
)
from bucketlog.log_reader.ranges import OffsetRange, resolve_ranges, select
from bucketlog.metadata.checkpoint import restored
from bucketlog.metadata.fold import fold
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from bucketlog.tiered_storage.bucket import Body, Span, Suffix, SyncBucket
from bucketlog.tiered_storage.log_cut_reading import read_log
from tests.rigs.checkpoints import write_checkpoint
from tests.rigs.readable_log import readable_in
from tests.rigs.written_log import WrittenLog, some_records

PATH = {"path": "file:///logs"}


def test_options_are_typed() -> None:
    options = parse_options(
        {
            "PATH": "s3://logs/prod",
            "Subscribe": "a, b,a",
            "startingoffsets": '{"a":{"0":5,"1":-2},"b":{"0":0}}',
            "includeHeaders": "TRUE",
            "minPartitions": "7",
            "s3.endpoint_url": "http://127.0.0.1:9000",
            "s3.pathStyle": "true",
        }
    )
    assert options.url == "s3://logs/prod"
    assert options.selection == Subscribe(("a", "b"))
    assert options.starting == {"a": {0: 5, 1: -2}, "b": {0: 0}}
    assert options.ending is None
    assert options.isolation == "read_committed"
    assert options.include_headers
    assert options.min_partitions == 7
    assert options.s3 is not None
    assert options.s3.endpoint_url == "http://127.0.0.1:9000"
    assert options.s3.path_style is True
    assert pickle.loads(pickle.dumps(options)) == options


def test_selections() -> None:
    assert parse_options({**PATH, "subscribePattern": "a.*"}).selection == SubscribePattern("a.*")
    assigned = parse_options({**PATH, "assign": '{"a":[1,0]}'}).selection
    assert assigned == Assign({"a": (1, 0)})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "no path"),
        ({"path": "memory://x", "subscribe": "a"}, "memory of another process"),
        ({"path": "gs://x", "subscribe": "a"}, "unknown scheme"),
        (PATH, "no topic given"),
        ({**PATH, "subscribe": " , "}, "names no topic"),
        ({**PATH, "subscribe": "a", "subscribePattern": "a"}, "exactly one of"),
        ({**PATH, "subscribePattern": "("}, "subscribePattern"),
        ({**PATH, "assign": "a"}, "does not parse"),
        ({**PATH, "assign": '{"a":0}'}, "does not parse"),
        ({**PATH, "assign": '{"a":[0],"a":[1]}'}, "'a' is there twice"),
        ({**PATH, "assign": '{"a":[false]}'}, "does not parse"),
        ({**PATH, "subscribe": "a", "startingOffsets": '{"a":{"0":1},"a":{"0":9}}'}, "'a' .*twice"),
        ({**PATH, "subscribe": "a", "endingOffsets": '{"a":{"0":1,"0":9}}'}, "'0' .*twice"),
        ({**PATH, "subscribe": "a", "startingOffsets": '{"a":{"0":1,"00":9}}'}, "does not parse"),
        ({**PATH, "subscribe": "a", "startingOffsets": '{"a":{"0":true}}'}, "does not parse"),
        ({**PATH, "subscribe": "a", "startingOffsets": '{"a":{"0":"7"}}'}, "does not parse"),
        ({**PATH, "subscribe": "a", "startingOffsets": '{"a":{"0":1.0}}'}, "does not parse"),
        ({**PATH, "subscribe": "a", "startingOffsets": "soon"}, "does not parse"),
        ({**PATH, "subscribe": "a", "startingOffsets": "latest"}, "may not be latest"),
        ({**PATH, "subscribe": "a", "startingOffsets": '{"a":{"0":-1}}'}, "may not be latest"),
        ({**PATH, "subscribe": "a", "endingOffsets": "earliest"}, "may not be earliest"),
        ({**PATH, "subscribe": "a", "endingOffsets": '{"a":{"0":-2}}'}, "may not be earliest"),
        ({**PATH, "subscribe": "a", "endingOffsets": '{"a":{"0":-3}}'}, "below -2"),
        ({**PATH, "subscribe": "a", "includeHeaders": "yes"}, "true or false"),
        ({**PATH, "subscribe": "a", "minPartitions": "0"}, "above 0"),
        ({**PATH, "subscribe": "a", "minPartitions": "x"}, "minPartitions"),
        ({**PATH, "subscribe": "a", "s3.region": "x"}, "s3 options for a file path"),
        ({**PATH, "subscribe": "a", "s3.nothing": "x"}, "unknown option 's3.nothing'"),
        (
            {"path": "s3://b", "subscribe": "a", "s3.max_connections": "none"},
            "bad S3 options",
        ),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message) as told:
        check_batch(parse_options(options))
    assert "\n" not in str(told.value)


@pytest.fixture(params=["no checkpoint", "checkpoint"])
def log(request: pytest.FixtureRequest) -> WrittenLog:
    """`a` has 2 partitions with 30 records in 3 batches each, `b` one with 10, `c` none."""
    log = WrittenLog(MemoryBucket())
    log.create_topic("a", 2)
    log.create_topic("b")
    log.create_topic("c")
    for number in range(3):
        log.append("a", 0, some_records(10))
        log.append("a", 1, some_records(10))
        if number == 1:
            log.append("b", 0, some_records(10))
        log.flush()
    if request.param == "checkpoint":
        assert write_checkpoint(log.bucket).segments == 2
    return log


def ranges(log: WrittenLog, **options: str) -> list[OffsetRange]:
    snapshot = read_log(log.bucket)
    parsed = parse_options({**PATH, **options})
    check_batch(parsed)
    selected = select(parsed.selection, fold(snapshot.segments, onto=restored(snapshot.checkpoint)))
    return resolve_ranges(parsed, selected, readable_in(snapshot), {})


def tasks(log: WrittenLog, wanted: list[OffsetRange], **limits: int) -> list[tuple[Piece, ...]]:
    snapshot = read_log(log.bucket)
    planned = plan_tasks(
        wanted,
        readable_in(snapshot),
        TaskLimits(limits.get("max_partition_bytes", 1 << 30), limits.get("min_partitions")),
        {},
    )
    return [tuple(piece for piece in task if isinstance(piece, Piece)) for task in planned]


def named(found: list[OffsetRange]) -> list[tuple[str, int, int, int]]:
    return [(r.topic, r.partition.partition, r.start, r.end) for r in found]


def test_everything_is_the_default(log: WrittenLog) -> None:
    assert named(ranges(log, subscribe="a,c")) == [("a", 0, 0, 30), ("a", 1, 0, 30), ("c", 0, 0, 0)]


def test_offsets_may_be_names_or_numbers(log: WrittenLog) -> None:
    found = ranges(
        log,
        subscribe="a",
        startingOffsets='{"a":{"0":-2,"1":30}}',
        endingOffsets='{"a":{"0":12,"1":-1}}',
    )
    assert named(found) == [("a", 0, 0, 12), ("a", 1, 30, 30)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subscribe": "d"}, "no topic 'd'.*a, b, c"),
        ({"assign": '{"a":[2]}'}, "no partition 2 in topic 'a' .it has 2"),
        (
            {"subscribe": "a", "startingOffsets": '{"a":{"0":1}}'},
            "starting offsets or timestamps lack a-1",
        ),
        ({"subscribe": "b", "endingOffsets": '{"b":{"0":1,"1":2}}'}, "also name b-1"),
        ({"subscribe": "b", "endingOffsets": '{"b":{"0":11}}'}, "the bucket holds 0 to 10"),
        (
            {
                "subscribe": "b",
                "startingOffsets": '{"b":{"0":5}}',
                "endingOffsets": '{"b":{"0":4}}',
            },
            "starting offset 5 is after ending offset 4",
        ),
    ],
)
def test_ranges_that_cannot_be_read_are_refused(
    log: WrittenLog, options: dict[str, str], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        ranges(log, **options)


def test_a_pattern_matches_whole_names(log: WrittenLog) -> None:
    assert {row[0] for row in named(ranges(log, subscribePattern="[ab]"))} == {"a", "b"}
    assert named(ranges(log, subscribePattern="x")) == []


def test_neighbours_in_a_segment_are_one_get(log: WrittenLog) -> None:
    (task,) = tasks(log, ranges(log, subscribe="a,b"))
    assert [piece.segment.seq for piece in task] == [0, 1, 2]
    assert [len(piece.runs) for piece in task] == [2, 3, 2]
    (task,) = tasks(log, ranges(log, assign='{"a":[1]}'))
    assert [[run.partition for run in piece.runs] for piece in task] == [[1], [1], [1]]


@pytest.mark.parametrize("count", [1, 2, 3, 5, 7])
def test_tasks_are_even_and_whole(log: WrittenLog, count: int) -> None:
    planned = tasks(log, ranges(log, subscribe="a,b"), min_partitions=count)
    assert len(planned) == count
    rows = [row for task in planned for piece in task for run in piece.runs for row in run.rows]
    assert len(rows) == 7
    sizes = [sum(piece.length for piece in task) for task in planned]
    assert max(sizes) - min(sizes) <= max(row.length for row in rows)


def test_bytes_bound_a_task(log: WrittenLog) -> None:
    wanted = ranges(log, subscribe="a")
    (whole,) = tasks(log, wanted)
    total = sum(piece.length for piece in whole)
    assert len(tasks(log, wanted, max_partition_bytes=total // 3 + 1)) == 3
    assert tasks(log, ranges(log, subscribe="c")) == []


def test_footers_count_records_of_whole_batches(log: WrittenLog) -> None:
    found = readable_in(read_log(log.bucket))
    assert count_records(ranges(log, subscribe="a,b"), found, {}) == 70
    cut = ranges(log, subscribe="b", endingOffsets='{"b":{"0":9}}')
    assert count_records(cut, found, {}) is None
    log.marker("b", 0)
    log.marker("b", 0)
    log.flush()
    assert count_records(ranges(log, subscribe="b"), readable_in(read_log(log.bucket)), {}) == 10


def read_all(log: WrittenLog, planned: Sequence[Sequence[TaskPiece]]) -> list[int]:
    return [
        offset
        for task in planned
        for batch in read_pieces(log.bucket, task, ["offset"], max_decompressed_bytes=1 << 20)
        for offset in batch.column(0).to_pylist()
    ]


def test_only_wanted_offsets_come_out(log: WrittenLog) -> None:
    wanted = ranges(
        log,
        assign='{"a":[1]}',
        startingOffsets='{"a":{"1":3}}',
        endingOffsets='{"a":{"1":25}}',
    )
    assert read_all(log, tasks(log, wanted)) == list(range(3, 25))


def test_an_object_lost_after_planning_is_named(log: WrittenLog) -> None:
    planned = tasks(log, ranges(log, subscribe="b"))
    key = next(info.key for info in log.bucket.list("log/") if info.key.endswith("1"))
    log.bucket.delete([key])
    with pytest.raises(CorruptObjectError) as caught:
        read_all(log, planned)
    assert caught.value.key == key
    assert "gone: topic 'b' partition 0 offsets 0 to 9" in str(caught.value)


class CountingBucket(MemoryBucket):
    """Counts the GETs of a bucket that is written already."""

    def __init__(self, inner: SyncBucket) -> None:
        super().__init__()
        self.inner = inner
        self.gets = 0

    def get(self, key: str, span: Span | Suffix | None = None) -> Body:
        self.gets += 1
        return self.inner.get(key, span)


def test_closing_early_stops_reading_ahead(log: WrittenLog) -> None:
    for _ in range(30):
        log.append("b", 0, some_records(1))
        log.flush()
    (task,) = tasks(log, ranges(log, subscribe="b"))
    assert len(task) == 31
    bucket = CountingBucket(log.bucket)
    batches = read_pieces(bucket, task, ["offset"], max_decompressed_bytes=1 << 20)
    next(batches)
    batches.close()
    assert 1 <= bucket.gets <= READ_AHEAD + 1
    threads = {thread.name for thread in threading.enumerate()}
    assert not any(name.startswith("bucketlog-read") for name in threads)


def test_a_task_travels(log: WrittenLog, tmp_path: Path) -> None:
    planned = tasks(log, ranges(log, subscribe="a"))
    assert pickle.loads(pickle.dumps(planned)) == planned
