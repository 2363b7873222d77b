"""The console's metrics equal its pages, and are bounded in number, whatever names groups have."""

from collections.abc import Iterator, Mapping
from uuid import UUID

import pytest
from prometheus_client.parser import text_string_to_metric_families

from bucketlog.console.application import application
from bucketlog.console.cost_page import cost
from bucketlog.console.metrics import metrics_text
from bucketlog.console.page_query import PageQuery
from bucketlog.console.pages import Console
from bucketlog.console.settings import ConsoleSettings
from bucketlog.cost.pricing import System
from bucketlog.log_format.errors import BucketError
from bucketlog.metadata.facts import OffsetRow, OffsetsCommitted
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from bucketlog.tiered_storage.bucket import ObjectInfo
from bucketlog.tiered_storage.encryption.key_service import KeyAccess
from tests.rigs.written_log import START_MS, WrittenLog, some_records
from tests.unit.test_console_times import answer
from tests.unit.test_verify import IDENTITY

HOSTILE = 'a"} 1\nbucketlog_group_lag_seconds{group="b'
NOW_MS = START_MS + 3_600_000
Series = dict[tuple[str, ...], float]


@pytest.fixture
def log() -> WrittenLog:
    """Topic t has 6 records in two partitions, and topic u has 1 record. Group g has read 2 records
    of t, the hostile group has read no record, and the last group has read all records of u."""
    store = MemoryBucket()
    assert store.create(keys.CLUSTER, [IDENTITY.model_dump_json().encode()])
    log = WrittenLog(store)
    log.create_topic("t", 2)
    log.create_topic("u")
    for number in range(2):
        log.append("t", number, some_records(3))
    log.append("u", 0, some_records(1))
    t, u = (UUID(bytes=log.topics[name][0]) for name in ("t", "u"))
    for group, offsets in (
        ("g", [(t, 0, 2), (t, 1, 0)]),
        (HOSTILE, [(t, 0, 0), (t, 1, 0), (u, 0, 0)]),
        ("done", [(u, 0, 1)]),
    ):
        rows = tuple(OffsetRow(*row, -1, "") for row in offsets)
        log.fact(OffsetsCommitted(group=group, committed_ms=START_MS, offsets=rows))
    log.flush()
    return log


def console_of(log: WrittenLog, **settings: int) -> Console:
    known = ConsoleSettings.model_validate(settings)
    return Console(log.bucket, "memory://b", known, KeyAccess(), 1, lambda: NOW_MS, lambda: 0.0)


def read(text: str) -> Mapping[str, Series]:
    return {
        family.name: {tuple(row.labels.values()): row.value for row in family.samples}
        for family in text_string_to_metric_families(text)
    }


def test_they_say_what_the_pages_say(log: WrittenLog) -> None:
    console = console_of(log, stuck_after_ms=1_000)
    found = read(metrics_text(console).decode())
    view = console.look()
    topics = {row.name: row for row in console.topics(view)}
    assert found["bucketlog_topic_partitions"] == {("t",): 2, ("u",): 1}
    assert found["bucketlog_topic_offsets"] == {("t",): 6, ("u",): 1}
    assert found["bucketlog_topic_log_bytes"] == {
        (name,): row.log_bytes for name, row in topics.items()
    }
    assert found["bucketlog_topic_last_record_timestamp_seconds"] == {
        (name,): row.last_ms / 1000 for name, row in topics.items()
    }
    assert found["bucketlog_group_lag_records"] == {
        ("g", "t"): 4,
        (HOSTILE, "t"): 6,
        (HOSTILE, "u"): 1,
        ("done", "u"): 0,
    }
    seconds = found["bucketlog_group_lag_seconds"]
    assert seconds["done",] == 0
    assert seconds["g",] == pytest.approx((NOW_MS - topics["t"].last_ms) / 1000)
    assert found["bucketlog_group_stuck_partitions"] == {("g",): 2, (HOSTILE,): 3, ("done",): 0}
    assert found["bucketlog_log_read_timestamp_seconds"] == {(): NOW_MS / 1000}


def test_costs_are_those_of_the_page(log: WrittenLog) -> None:
    assert "usd" not in metrics_text(console_of(log)).decode()
    console = console_of(log, metrics_cost=1)
    found = read(metrics_text(console).decode())
    shown = cost(console, PageQuery({}))
    rows = {row.topic: row.usd for row in shown["page"].rows}
    assert found["bucketlog_topic_cost_usd"] == {
        (system.value, name): pytest.approx(rows[name][system])
        for name in ("t", "u")
        for system in System
    }
    assert found["bucketlog_cost_usd"] == {
        (system.value,): pytest.approx(usd) for system, usd in shown["sums"].items()
    }


class UnlistedBucket(MemoryBucket):
    """Refuses to list manifests, which only the reading of costs lists."""

    def list(self, prefix: str, *, start_after: str = "") -> Iterator[ObjectInfo]:
        if prefix == keys.MANIFESTS:
            raise BucketError("no right to list")
        return super().list(prefix, start_after=start_after)


def test_without_costs_the_other_metrics_stay() -> None:
    store = UnlistedBucket()
    assert store.create(keys.CLUSTER, [IDENTITY.model_dump_json().encode()])
    log = WrittenLog(store)
    log.create_topic("t")
    log.flush()
    found = read(metrics_text(console_of(log, metrics_cost=1)).decode())
    assert found["bucketlog_topic_partitions"] == {("t",): 1}
    assert "bucketlog_topic_cost_usd" not in found


def test_their_number_is_bounded(log: WrittenLog) -> None:
    console = console_of(log, metrics_topics_max=1, metrics_groups_max=1)
    found = read(metrics_text(console).decode())
    assert found["bucketlog_topic_log_bytes"].keys() == {("t",)}
    assert found["bucketlog_group_lag_seconds"].keys() == {(HOSTILE,)}
    assert found["bucketlog_topics_without_metrics"] == {(): 1}
    assert found["bucketlog_groups_without_metrics"] == {(): 2}


async def test_a_scrape_gets_text(log: WrittenLog) -> None:
    app = application(console_of(log), hosts=["localhost"])
    status, headers, body = await answer(app, "/metrics")
    assert (status, headers["content-type"].startswith("text/plain")) == (200, True)
    assert read(body)["bucketlog_topic_partitions"] == {("t",): 2, ("u",): 1}


async def test_a_scrape_of_a_bucket_without_a_log_is_an_error() -> None:
    log = WrittenLog(MemoryBucket())
    status, _, body = await answer(application(console_of(log), hosts=["localhost"]), "/metrics")
    assert status >= 400
    assert all(line.startswith("#") for line in body.splitlines())
