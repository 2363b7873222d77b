"""Topics made because clients ask for them: not more at once than the cluster can take."""

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast
from uuid import uuid4

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from bucketlog.metadata.facts import TopicFact
from bucketlog.metadata.sequencer.requests import FactStatus, WantedTopicChange
from bucketlog.metadata.topic_defaults import TopicDefaults
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.handlers.metadata import CREATED_AT_ONCE, MetadataHandler
from bucketlog.stateless_broker.handlers.partition_quota import PartitionQuota
from bucketlog.stateless_broker.handlers.topic_changes import TopicChanges
from bucketlog.stateless_broker.network.apis import Request, RequestHeader
from bucketlog.stateless_broker.network.connection import Connection
from bucketlog.stateless_broker.network.turns import Turns
from tests.rigs.access import EVERYTHING

CONNECTION = cast(Connection, SimpleNamespace(listener="PLAINTEXT", principal="User:ann"))
REQUEST = Request(RequestHeader(ApiKey.METADATA, 4, 1, ""), CONNECTION, EVERYTHING)
PARTITIONS_MAX = 20


class Log:
    """Takes topics, and brings none of them to an end."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def commit_fact(self, fact: TopicFact, wanted: WantedTopicChange) -> FactStatus:
        assert fact.by == "User:ann"
        self.asked.append(fact.name)
        await asyncio.Event().wait()
        return FactStatus.OK


class Desk:
    def __init__(self, cluster_partitions_max: int) -> None:
        self.log = Log()
        self.tasks: list[asyncio.Task[None]] = []
        me = SimpleNamespace(node_id=0)
        changes = TopicChanges(
            view=View(),
            committer=self.log,
            new_topic_id=uuid4,
            partitions_default=1,
            partitions_max=10,
            cluster_partitions_max=cluster_partitions_max,
            quota=PartitionQuota(0, lambda: 0.0),
            topic_defaults=TopicDefaults(),
        )
        self._handler = MetadataHandler(
            view=View(),
            membership=cast(
                Any,
                SimpleNamespace(
                    serving_on=lambda _: (),
                    listed_on=lambda _: (),
                    cluster_id="c",
                    controller=lambda _: me,
                    members=(),
                ),
            ),
            changes=changes,
            auto_create_topics=True,
            cache_bytes_max=0,
            turns=Turns(),
            spawn=self._spawn,
        )

    def _spawn(self, work: Any, name: str) -> asyncio.Task[None]:
        self.tasks.append(asyncio.create_task(work, name=name))
        return self.tasks[-1]

    async def ask(self, *names: str) -> set[ErrorCode]:
        topics = tuple(MetadataRequestTopic(name=name) for name in names)
        message = MetadataRequest(topics=topics, allow_auto_topic_creation=True)
        answer = await self._handler(REQUEST, message)
        for _ in range(3):
            await asyncio.sleep(0)
        return set(answer.errors)

    async def stop(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


@pytest.fixture
async def desk(request: pytest.FixtureRequest) -> AsyncIterator[Desk]:
    made = Desk(request.param)
    yield made
    await made.stop()


@pytest.mark.parametrize("desk", [100_000], indirect=True)
async def test_few_topics_are_made_at_once_and_clients_ask_again(desk: Desk) -> None:
    names = [f"t{number}" for number in range(3 * CREATED_AT_ONCE)]
    assert await desk.ask(*names) == {ErrorCode.unknown_topic_or_partition}
    assert desk.log.asked == names[:CREATED_AT_ONCE]
    assert await desk.ask(*names) == {ErrorCode.unknown_topic_or_partition}
    assert len(desk.log.asked) == CREATED_AT_ONCE
    desk.tasks[0].cancel()
    await asyncio.wait(desk.tasks[:1])
    await desk.ask(*names[1:])
    assert desk.log.asked[CREATED_AT_ONCE:] == names[CREATED_AT_ONCE : CREATED_AT_ONCE + 1]


@pytest.mark.parametrize("desk", [PARTITIONS_MAX], indirect=True)
async def test_topics_that_are_being_made_count_for_the_clusters_bound(desk: Desk) -> None:
    await desk.ask(*(f"t{number}" for number in range(2 * PARTITIONS_MAX)))
    assert len(desk.log.asked) == PARTITIONS_MAX
