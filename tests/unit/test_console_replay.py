"""The page Replay: its figures are those of a real replay, and its code reads the same records."""

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import bucketlog
from bucketlog.console.application import application
from bucketlog.console.copied_code import REPLAYED, ReplayedRanges, replay_code
from bucketlog.console.page_query import PageQuery
from bucketlog.console.pages import Console
from bucketlog.console.replay_page import replay
from bucketlog.console.replay_range import replay_range
from bucketlog.console.settings import ConsoleSettings
from bucketlog.cost.assumptions import Assumptions
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_reader import replay_plan
from bucketlog.log_reader.options import ReadOptions, open_log, parse_options
from bucketlog.replaying.selection import parse_offsets
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.location import open_sync_bucket
from bucketlog.tiered_storage.bucket import SyncBucket
from bucketlog.tiered_storage.counting import CountingSyncBucket
from bucketlog.tiered_storage.encryption.key_service import KeyAccess
from tests.rigs.console_log import SCRIPT
from tests.rigs.written_log import START_MS, WrittenLog, some_records
from tests.unit.test_console_copied_code import HOSTILE, UNSHOWN, shape, spark_options
from tests.unit.test_console_times import answer
from tests.unit.test_verify import IDENTITY

BATCH = 5


@pytest.fixture
def place(tmp_path: Path) -> str:
    return f"file://{tmp_path}/bucket"


@pytest.fixture
def log(place: str) -> Iterator[WrittenLog]:
    """Topics `t` and `empty` of two partitions. `t` has three batches of 5 records in each
    partition, in three log segments."""
    store = open_sync_bucket(place)
    assert store.create(keys.CLUSTER, [IDENTITY.model_dump_json().encode()])
    written = WrittenLog(store)
    written.create_topic("t", 2)
    written.create_topic("empty", 2)
    for _ in range(3):
        for partition in range(2):
            written.append("t", partition, some_records(BATCH, headers=True))
        written.flush()
    yield written
    store.close()


def console_of(bucket: SyncBucket, place: str, **settings: Any) -> Console:
    known = ConsoleSettings.model_validate({"refresh_ms": 0, **settings})
    return Console(bucket, place, known, KeyAccess(), 1, lambda: START_MS, lambda: 0.0)


def planned(log: WrittenLog, place: str, **query: str) -> Mapping[str, Any]:
    return replay(console_of(log.bucket, place), PageQuery({"topic": "t", **query}))


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[CountingSyncBucket]:
    """The buckets that replays open."""
    opened: list[CountingSyncBucket] = []

    def opening(options: ReadOptions) -> SyncBucket:
        opened.append(CountingSyncBucket(open_log(options)))
        return opened[-1]

    monkeypatch.setattr(replay_plan, "open_log", opening)
    return opened


RANGES: Mapping[str, tuple[dict[str, str], dict[str, Any]]] = {
    "all": ({}, {}),
    "a partition": ({"partitions": " 1,1"}, {"partitions": [1]}),
    "offsets": (
        {"seek": "offsets", "offsets": "0:7-12, 1:5-10"},
        {"offsets": {0: (7, 12), 1: (5, 10)}},
    ),
    "since": (
        {"seek": "time", "since": str(START_MS + 2_000)},
        {"options": {"startingTimestamp": str(START_MS + 2_000)}},
    ),
    "until": (
        {"seek": "time", "until": "2023-11-14T22:13:22"},
        {"options": {"endingTimestamp": str(START_MS + 2_000)}},
    ),
}


@pytest.mark.parametrize("name", RANGES)
def test_the_figures_are_those_of_a_replay(
    log: WrittenLog, place: str, counted: list[CountingSyncBucket], name: str
) -> None:
    query, given = RANGES[name]
    values = planned(log, place, **query)
    figures = values["figures"]
    made = bucketlog.replay(place, "t", **given)
    table = made.to_arrow()
    counts = [each.snapshot() for each in counted]
    assert figures.gets + figures.planning_gets == sum(each.gets + each.heads for each in counts)
    assert figures.stored_bytes == made.plan.stored_bytes
    assert table.num_rows <= figures.records
    assert table.num_rows == figures.records or not figures.is_exact
    assert 0 < figures.objects <= 3
    prices = Assumptions()
    assert figures.usd == pytest.approx(
        (figures.gets + figures.planning_gets) / 1000 * prices.s3_standard_get_usd_per_1000
    )
    assert values["offsets"] == {
        each.partition.partition: (each.start, each.end)
        for each in made.plan.ranges
        if each.start < each.end
    }


def test_an_object_may_need_several_requests(
    log: WrittenLog, place: str, counted: list[CountingSyncBucket]
) -> None:
    log.create_topic("wide", 3)
    for partition in range(3):
        log.append("wide", partition, some_records(BATCH))
    log.flush()
    figures = planned(log, place, topic="wide", partitions="0,2")["figures"]
    assert (figures.objects, figures.gets, figures.records) == (1, 2, 10)
    assert bucketlog.replay(place, "wide", partitions=[0, 2]).to_arrow().num_rows == 10
    counts = [each.snapshot() for each in counted]
    assert figures.gets + figures.planning_gets == sum(each.gets + each.heads for each in counts)


def test_a_cut_batch_makes_the_number_inexact(log: WrittenLog, place: str) -> None:
    whole, cut = planned(log, place), planned(log, place, seek="offsets", offsets="0:7-12")
    assert (whole["figures"].is_exact, whole["figures"].records) == (True, 30)
    assert (cut["figures"].is_exact, cut["figures"].records) == (False, 5)


def test_the_command_and_the_spark_code_read_the_plan(log: WrittenLog, place: str) -> None:
    code = planned(log, place, seek="offsets", offsets="0:7-12,1:5-")["code"]
    words = shlex.split(code.command)
    assert words[:2] == ["bucketlog", "replay"]
    assert words[-5:] == ["--to", REPLAYED, "--", place, "t"]
    assert parse_offsets(words[words.index("--offsets") + 1]) == {0: (7, 12), 1: (5, 15)}
    options = parse_options(spark_options(code.spark))
    assert options.starting == {"t": {0: 7, 1: 5}}
    assert options.ending == {"t": {0: 12, 1: 15}}


def test_the_python_code_writes_the_records(
    log: WrittenLog, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow.parquet as pq

    monkeypatch.chdir(tmp_path)
    exec(compile(planned(log, place)["code"].python, "copied", "exec"), {})
    assert pq.read_table(tmp_path / REPLAYED).num_rows == 30


@pytest.mark.parametrize("name", [*HOSTILE, *UNSHOWN])
def test_a_name_stays_one_value_of_the_code(name: str) -> None:
    plain, hostile = (
        replay_code(ReplayedRanges(f"file:///logs/{each}", each, {0: (1, 2)}))
        for each in ("orders", name)
    )
    assert shape(hostile.python) == shape(plain.python)
    assert shape(hostile.spark) == shape(plain.spark)
    if name in UNSHOWN:
        assert hostile.command is None
    else:
        assert hostile.command is not None
        assert shlex.split(hostile.command)[-2:] == [f"file:///logs/{name}", name]


def test_a_range_without_records_has_no_code(log: WrittenLog, place: str) -> None:
    values = replay(console_of(log.bucket, place), PageQuery({"topic": "empty"}))
    assert (values["code"], values["offsets"], values["figures"].records) == (None, {}, 0)


@pytest.mark.parametrize(
    "query",
    [
        {"topic": SCRIPT},
        {"topic": "t,empty"},
        {"partitions": "x"},
        {"partitions": "-1"},
        {"partitions": "0,,1"},
        {"partitions": "2"},
        {"partitions": "9" * 1_000},
        {"seek": "x"},
        {"seek": "offsets"},
        {"seek": "offsets", "offsets": "0:" + "9" * 1_500},
        {"seek": "offsets", "offsets": "0:0-9999999999999999999"},
        {"seek": "offsets", "offsets": "7:0-1"},
        {"seek": "offsets", "offsets": "0:9-1"},
        {"seek": "offsets", "offsets": "0:0-1", "partitions": "1"},
        {"seek": "time", "since": SCRIPT},
        {"seek": "time", "since": "0001-01-01"},
        {"seek": "time", "since": "9999999999999999999w"},
        {"seek": "time", "since": "2026-01-02", "until": "2026-01-01"},
    ],
)
async def test_hostile_values_of_the_form_are_errors(
    log: WrittenLog, place: str, query: dict[str, str]
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        planned(log, place, **query)
    assert caught.value.remedy
    app = application(console_of(log.bucket, place), hosts=["localhost"])
    target = PageQuery({"topic": "t", **query}).changed()
    status, _, body = await answer(app, f"/replay{target}")
    assert status in (400, 404)
    assert "<script>document" not in body


async def test_the_page_shows_the_plan(log: WrittenLog, place: str) -> None:
    app = application(console_of(log.bucket, place), hosts=["localhost"])
    status, _, body = await answer(app, "/replay?topic=t&seek=offsets&offsets=0:7-12")
    assert status == 200
    text = " ".join(re.sub(r"<[^>]*>", " ", body).split())
    assert "Records ≤ 5 in 1 partition " in text
    assert "Objects 2 " in text
    assert "bucketlog replay --offsets 0:7-12 --partition-by partition --to replayed" in text


def test_a_topic_that_was_created_again_is_refused(log: WrittenLog, place: str) -> None:
    """The plan is that of the console's view. A process that replays it sees the new topic."""
    console = console_of(log.bucket, place, refresh_ms=1_000)
    wanted = replay_range(console, console.look(), PageQuery({"topic": "t"}))
    log.delete_topic("t")
    log.create_topic("t", 2)
    log.flush()
    assert replay(console, PageQuery({"topic": "t"}))["topic"] == wanted.topic
    with pytest.raises(ConfigurationError, match="created again"):
        replay_plan.plan_replay(wanted.options(console))
