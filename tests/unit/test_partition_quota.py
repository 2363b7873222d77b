"""The quota of partition changes: what is refused, what waits, and for how long."""

import asyncio
from datetime import timedelta
from types import SimpleNamespace
from typing import cast
from unittest.mock import Mock
from uuid import uuid4

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.log_format.model import TopicId
from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from bucketlog.metadata.facts import TopicFact
from bucketlog.metadata.fold import TopicState
from bucketlog.metadata.sequencer.requests import FactStatus, WantedTopicChange
from bucketlog.metadata.topic_defaults import TopicDefaults
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.handlers.partition_quota import BURST_S, PartitionQuota
from bucketlog.stateless_broker.handlers.topic_changes import ChangeTerms, TopicChanges
from bucketlog.stateless_broker.handlers.topics import TopicsHandler
from bucketlog.stateless_broker.network.apis import Request, RequestHeader
from bucketlog.stateless_broker.network.connection import Connection
from bucketlog.stateless_broker.network.headers import response_header
from bucketlog.stateless_broker.network.turns import Turns
from tests.rigs.access import EVERYTHING
from tests.rigs.wire_client import decode_response

CONNECTION = cast(Connection, SimpleNamespace(principal="User:ANONYMOUS"))
STRICT = ChangeTerms(is_strict=True)


class Clock:
    def __init__(self) -> None:
        self.s = 0.0

    def now_s(self) -> float:
        return self.s


class Log:
    """Accepts every change."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def commit_fact(self, fact: TopicFact, wanted: WantedTopicChange) -> FactStatus:
        self.asked.append(f"{wanted.verb} {fact.name}")
        return FactStatus.OK


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
def changes(clock: Clock, log: Log) -> TopicChanges:
    return TopicChanges(
        view=View(),
        committer=log,
        new_topic_id=uuid4,
        partitions_default=1,
        partitions_max=10_000,
        cluster_partitions_max=50_000,
        quota=PartitionQuota(10, clock.now_s),
        topic_defaults=TopicDefaults(),
    )


def topic(partitions: int) -> TopicState:
    return TopicState(TopicId(uuid4().bytes), "t", partitions, {})


def test_the_burst_then_the_rate(clock: Clock) -> None:
    quota = PartitionQuota(10, clock.now_s)
    quota.take(10 * BURST_S)
    assert quota.wait_s() == 0
    quota.take(50)
    assert quota.wait_s() == 5
    clock.s = 4.5
    assert quota.wait_s() == pytest.approx(0.5)
    clock.s = 1000
    quota.take(10 * BURST_S + 1)
    assert quota.wait_s() == pytest.approx(0.1)


def test_without_a_limit_nothing_waits(clock: Clock) -> None:
    quota = PartitionQuota(0, clock.now_s)
    quota.take(1_000_000)
    assert quota.wait_s() == 0


async def test_creations_and_deletions_beyond_the_quota_are_refused(
    clock: Clock, log: Log, changes: TopicChanges
) -> None:
    created = await changes.create("wide", partitions=1000, terms=STRICT)
    assert (created.error, created.throttle_s) == (ErrorCode.none, 0)
    for refused in (
        await changes.create("more", partitions=1, terms=STRICT),
        await changes.delete(topic(1), terms=STRICT),
    ):
        assert refused.error is ErrorCode.throttling_quota_exceeded
        assert (refused.message or "").startswith("The throttling quota has been exceeded")
        assert refused.throttle_s == pytest.approx((1000 - 10 * BURST_S) / 10)
        assert "BUCKETLOG_PARTITION_CHANGES_PER_S" in (refused.message or "")
    assert (await changes.create("m", validate_only=True, terms=STRICT)).error is ErrorCode.none
    clock.s = 89
    assert (await changes.delete(topic(500), terms=STRICT)).error is ErrorCode.none
    refused = await changes.create("more", partitions=1, terms=STRICT)
    assert refused.error is ErrorCode.throttling_quota_exceeded
    assert log.asked == ["create wide", "delete t"]


async def test_clients_that_do_not_know_the_error_wait(
    clock: Clock, log: Log, changes: TopicChanges
) -> None:
    await changes.create("wide", partitions=1000)
    clock.s = 88.99999
    waiting = asyncio.create_task(changes.create("waits", partitions=1))
    await asyncio.sleep(0)
    assert log.asked == ["create wide"]
    clock.s = 89
    assert (await waiting).error is ErrorCode.none
    assert log.asked == ["create wide", "create waits"]


@pytest.mark.parametrize(
    ("version", "error"),
    [(5, ErrorCode.request_timed_out), (6, ErrorCode.throttling_quota_exceeded)],
)
async def test_the_answer_depends_on_what_the_client_knows(
    log: Log, changes: TopicChanges, version: int, error: ErrorCode
) -> None:
    """CreateTopics knows the error from version 6 on. An older request has 30 s to wait."""
    await changes.create("wide", partitions=1000)
    handler = TopicsHandler(
        view=View(),
        changes=changes,
        membership=Mock(members=()),
        topic_defaults=TopicDefaults({}),
        turns=Turns(),
    )
    new = CreatableTopic(
        name="late", num_partitions=1, replication_factor=1, assignments=(), configs=()
    )
    message = CreateTopicsRequest(topics=(new,), timeout=timedelta(seconds=30), validate_only=False)
    header = RequestHeader(ApiKey.CREATE_TOPICS, version, 1, "")
    request = Request(header, CONNECTION, EVERYTHING)
    written = await handler.create_topics(request, message)
    assert written.errors == [error]
    body = response_header(header) + written.body
    _, answer = decode_response(ApiKey.CREATE_TOPICS, version, body)
    assert [row.error_code for row in answer.topics] == [error]
    assert answer.throttle_time == timedelta(seconds=89)
    assert log.asked == ["create wide"]
