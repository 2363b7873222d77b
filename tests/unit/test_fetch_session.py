"""Requests of a fetch session: epochs, long polls, and what an idle one examines."""

import asyncio
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.log_format.model import TopicIdPartition
from bucketlog.log_format.wire import fetch
from bucketlog.metadata.facts import TopicCreated, TopicDeleted
from bucketlog.metadata.topic_checks import NAME_LENGTH_MAX
from bucketlog.stateless_broker.fetch.watching import TimerWheel
from bucketlog.stateless_broker.handlers.fetch_lookup import FetchLookup
from tests.models.partition_batches import PARTITION, Planned, made
from tests.rigs.broker_rig import until
from tests.rigs.session_client import SessionClient
from tests.rigs.tiered_log import TOPIC, TieredLog

WAIT_MS = 60_000
PARTITIONS = 50


def nth(number: int) -> TopicIdPartition:
    return TopicIdPartition(PARTITION.topic_id, PARTITION.partition + number)


class Rig:
    """A session over many empty partitions."""

    def __init__(self) -> None:
        self.log = TieredLog(partitions=PARTITIONS)
        self.client = SessionClient(self.log)
        self.client.offsets = {
            (TOPIC, PARTITION.partition + number): 0 for number in range(PARTITIONS)
        }
        self.ends = [0] * PARTITIONS

    def grow(self, number: int) -> None:
        (batch,) = made([Planned(0, 1, 1)], self.ends[number])
        self.ends[number] += 1
        self.log.append([batch], nth(number))

    def session(self) -> Any:
        return self.log.sessions.find(self.client.session_id, self.client.connection.payer)

    async def answer(self, message: fetch.FetchRequest, **more: Any) -> Any:
        return await self.log.exchange(message, client=self.client.connection, **more)


@pytest.fixture
async def rig() -> Rig:
    rig = Rig()
    told = await rig.client.poll()
    assert told is not None
    assert len(told) == PARTITIONS
    assert rig.client.session_id > 0
    return rig


async def test_an_idle_poll_examines_no_partition(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up: list[int] = []
    look_up = FetchLookup._look_up

    def counting(self: FetchLookup, wanted: fetch.FetchedPartition, request: Any) -> Any:
        looked_up.append(wanted.partition)
        return look_up(self, wanted, request)

    monkeypatch.setattr(FetchLookup, "_look_up", counting)
    for _ in range(3):
        assert await rig.client.poll() == {}
    assert looked_up == []
    rig.grow(7)
    told = await rig.client.poll()
    assert told is not None
    assert [number for _, number in told] == looked_up == [PARTITION.partition + 7]


async def test_a_long_poll_ends_with_the_first_change(rig: Rig) -> None:
    task = asyncio.create_task(rig.client.poll(wait_ms=WAIT_MS))
    await until(lambda: rig.session().changes._waiter is not None)
    rig.grow(3)
    told = await task
    assert told is not None
    assert [(number, found.high_watermark) for (_, number), found in told.items()] == [
        (PARTITION.partition + 3, 1)
    ]
    assert told[TOPIC, PARTITION.partition + 3].records


@pytest.mark.parametrize("is_planned", [True, False])
async def test_a_deletion_ends_a_long_poll(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, is_planned: bool
) -> None:
    """Partitions of another topic exist still. `is_planned`: whether the request has examined the
    deleted partition before it waits."""
    monkeypatch.setattr(TimerWheel, "add", lambda *_: 0)  # no deadline ends it
    topic_id, place = UUID(int=7), ("other", 0)
    rig.log.tell(TopicCreated(topic_id=topic_id, name="other", partitions=1))
    rig.client.offsets[place] = 0
    assert await rig.client.poll() is not None
    if is_planned:
        del rig.client.sent[place]
    task = asyncio.create_task(rig.client.poll(wait_ms=WAIT_MS))
    await until(lambda: rig.session().changes._waiter is not None)
    rig.log.tell(TopicDeleted(topic_id=topic_id, name="other"))
    told = await task
    assert told is not None
    unknown = ErrorCode.unknown_topic_or_partition
    assert {key: found.error for key, found in told.items()} == {place: unknown}
    waiting = asyncio.create_task(rig.client.poll(wait_ms=WAIT_MS))
    await until(lambda: rig.session().changes._waiter is not None)
    rig.grow(3)
    told = await waiting
    assert told is not None
    assert told.keys() == {place, (TOPIC, PARTITION.partition + 3)}, "an unknown one ends no wait"


async def test_records_come_again_until_the_offset_advances(rig: Rig) -> None:
    rig.grow(3)
    place = TOPIC, PARTITION.partition + 3
    for _ in range(2):
        told = await rig.client.poll()
        assert told is not None
        assert list(told) == [place]
    rig.client.offsets[place] = 1
    assert await rig.client.poll() == {}


async def test_each_partition_gets_its_turn(rig: Rig) -> None:
    """A response of one batch at a time; nobody consumes."""
    for number in (0, 1, 2):
        rig.grow(number)
    seen = []
    for _ in range(6):
        told = await rig.client.poll(max_bytes=1)
        assert told is not None
        seen += [number - PARTITION.partition for (_, number), one in told.items() if one.records]
    assert seen == [0, 1, 2, 0, 1, 2]


async def test_a_partition_that_is_forgotten_says_no_more(rig: Rig) -> None:
    place = TOPIC, PARTITION.partition + 4
    del rig.client.offsets[place]
    assert await rig.client.poll() == {}
    rig.grow(4)
    assert await rig.client.poll() == {}
    rig.client.offsets[place] = 1
    told = await rig.client.poll()
    assert told is not None
    assert told[place].high_watermark == 1


async def test_a_session_without_partitions_ends(rig: Rig) -> None:
    rig.client.offsets.clear()
    assert await rig.client.poll() == {}
    assert rig.client.session_id == 0
    assert len(rig.log.sessions) == 0
    assert rig.log.watchers.watched == 0


async def test_wrong_ids_and_epochs_are_refused(rig: Rig) -> None:
    message = rig.client.message()
    for wrong, error in (
        (replace(message, session_id=message.session_id + 1), "fetch_session_id_not_found"),
        (replace(message, session_epoch=message.session_epoch + 1), "invalid_fetch_session_epoch"),
        (replace(message, session_epoch=-2), "invalid_fetch_session_epoch"),
    ):
        answer = await rig.answer(wrong)
        assert (answer.error_code, answer.session_id) == (ErrorCode[error], 0)
        assert answer.responses == ()
    answer = await rig.answer(message, version=13)
    assert answer.error_code is ErrorCode.fetch_session_topic_id_error
    assert await rig.client.poll() == {}, "the session is as it was"


async def test_a_later_request_ends_one_that_waits(rig: Rig) -> None:
    first = rig.client.message(wait_ms=WAIT_MS)
    task = asyncio.create_task(rig.answer(first))
    await until(lambda: rig.session().changes._waiter is not None)
    later = await rig.answer(replace(first, session_epoch=first.session_epoch + 1, max_wait_ms=0))
    assert later.error_code is ErrorCode.none
    answer = await task
    assert answer.error_code is ErrorCode.invalid_fetch_session_epoch
    assert answer.session_id == first.session_id


async def test_a_full_request_closes_the_session(rig: Rig) -> None:
    first = rig.client.session_id
    waiting = asyncio.create_task(rig.answer(rig.client.message(wait_ms=WAIT_MS)))
    await until(lambda: rig.session().changes._waiter is not None)
    rig.client.epoch = 0
    assert await rig.client.poll() is not None
    assert rig.client.session_id != first
    assert len(rig.log.sessions) == 1
    assert (await waiting).error_code is ErrorCode.fetch_session_id_not_found
    last = replace(rig.client.message(), session_epoch=-1)
    assert (await rig.answer(last)).session_id == 0
    assert len(rig.log.sessions) == 0


async def test_the_epoch_wraps_to_one(rig: Rig) -> None:
    rig.session().epoch = rig.client.epoch = 2**31 - 1
    assert await rig.client.poll() == {}
    rig.client.epoch = 1
    assert await rig.client.poll() == {}


async def test_a_session_keeps_no_name_that_no_topic_can_have(rig: Rig) -> None:
    rig.client.offsets["x" * NAME_LENGTH_MAX, 0] = 0
    assert await rig.client.poll() is not None
    assert len(rig.log.sessions) == 1
    rig.client.offsets["x" * (NAME_LENGTH_MAX + 1), 0] = 0
    assert await rig.client.poll() is None
    assert rig.client.errors == [ErrorCode.fetch_session_id_not_found]
    told = await rig.client.poll()
    assert told is not None
    assert len(told) == PARTITIONS + 2, "a request without a session gets all answers"
    assert rig.client.session_id == fetch.NO_SESSION
    assert (len(rig.log.sessions), rig.log.watchers.watched) == (0, 0)
