"""The broker takes a plain Produce request, with one small valid batch, in a single step."""

from typing import Any, cast
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.log_format.batch import Codec
from bucketlog.log_format.compression import compress
from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.stateless_broker.network.apis import PlainProduceHandler
from tests.models.produced_batches import NOW_MS, batch, record
from tests.rigs.broker_rig import Rig, create_topic, fetched, outcome, produce

PLAIN = batch(record(0), 1)
TAKEN, LEFT = True, False
ON_CLOCK = {"message.timestamp.after.max.ms": str(NOW_MS * 2)}


class Taken(list[bool]):
    """For each plain request, whether the single step took the request."""

    def __init__(self, rig: Rig) -> None:
        self._dispatcher: Any = rig.node.dispatcher
        self._take = cast(PlainProduceHandler, self._dispatcher._plain_handler)
        self._dispatcher._plain_handler = self._note

    def _note(self, *given: Any) -> bool:
        self.append(self._take(*given))
        return self[-1]


@pytest.fixture
async def taken(rig: Rig) -> Taken:
    assert await create_topic(rig, "plain", 2, configs=ON_CLOCK) is ErrorCode.none
    return Taken(rig)


async def sent(
    rig: Rig, data: bytes = PLAIN, *, topic: str = "plain", version: int = 9, acks: int = -1
) -> tuple[ErrorCode, int]:
    rows = [{"index": 1, "records": data}]
    data_of = [{"name": topic, "partition_data": rows}]
    values: dict[str, Any] = {"acks": acks, "timeout": 20_000, "topic_data": data_of}
    return await outcome(rig.send(ApiKey.PRODUCE, version, **values))


@pytest.mark.parametrize("version", range(3, 13))
@pytest.mark.parametrize("acks", [1, -1])
async def test_it_is_taken_in_every_version(
    rig: Rig, taken: Taken, version: int, acks: int
) -> None:
    assert await sent(rig, version=version, acks=acks) == (ErrorCode.none, 0)
    assert taken == [TAKEN]


async def test_it_is_taken_by_the_topic_s_id(rig: Rig, taken: Taken) -> None:
    topic = rig.view.topic("plain")
    assert topic is not None
    rows = [{"index": 1, "records": PLAIN}]
    data = [{"topic_id": UUID(bytes=topic.topic_id), "partition_data": rows}]
    values = {"acks": -1, "timeout": 20_000, "topic_data": data}
    assert await outcome(rig.send(ApiKey.PRODUCE, 13, **values)) == (ErrorCode.none, 0)
    assert taken == [TAKEN]


async def test_its_batch_is_stored_as_it_came(rig: Rig, taken: Taken) -> None:
    rig.clock_ms = 1_700_000_100_000  # after the record
    assert await produce(rig, b"value") == (ErrorCode.none, 0)
    assert taken == [TAKEN]
    assert b"value" in await fetched(rig)


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (batch(compress(Codec.GZIP, record(0)), 1, attributes=Codec.GZIP), ErrorCode.none),
        (batch(record(0), 1, max_timestamp=NOW_MS + 1), ErrorCode.none),
        (PLAIN[:-1] + b"\1", ErrorCode.corrupt_message),
        (batch(b"\xff" * 40, 1), ErrorCode.invalid_record),
        (batch(record(0), 1, base_offset=1), ErrorCode.invalid_record),
    ],
)
async def test_others_are_not_scanned_as_plain(
    rig: Rig, taken: Taken, data: bytes, wanted: ErrorCode
) -> None:
    assert (await sent(rig, data))[0] is wanted
    assert taken == []


async def test_rules_of_the_topic_leave_it_to_the_other_way(rig: Rig, taken: Taken) -> None:
    await create_topic(rig, "compacted", 2, configs={**ON_CLOCK, "cleanup.policy": "compact"})
    assert await sent(rig, topic="compacted") == (ErrorCode.none, 0)
    assert (await sent(rig, topic="nowhere"))[0] is ErrorCode.unknown_topic_or_partition
    await create_topic(rig, "single", 1, configs=ON_CLOCK)
    assert (await sent(rig, topic="single"))[0] is ErrorCode.unknown_topic_or_partition
    assert taken == [LEFT, LEFT, LEFT]


async def test_a_broker_that_has_handed_over_refuses_it(rig: Rig, taken: Taken) -> None:
    rig.membership.has_handed_over = True
    assert (await sent(rig))[0] is ErrorCode.not_leader_or_follower
    assert taken == [LEFT]
