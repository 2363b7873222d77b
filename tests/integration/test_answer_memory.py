"""Responses wait for memory, and are cancelled with their clients; a real node, a real Valkey."""

import asyncio
from typing import Any

from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.rigs.broker_rig import Rig, create_topic, produce, until
from tests.rigs.wire_client import fetch_values


def fetch(rig: Rig) -> "asyncio.Task[Any]":
    return rig.send(ApiKey.FETCH, 11, **fetch_values("t", {0: 0}))


async def occupied(rig: Rig) -> int:
    """Other responses hold all the memory."""
    size = rig.settings.response_memory_bytes_max
    assert rig.node.answers.acquire(size, "others", lambda: None, address="192.0.2.1")
    return size


async def test_a_fetch_reads_nothing_before_it_has_memory(rig: Rig) -> None:
    assert (await produce(rig, b"x" * 1_000))[0] is ErrorCode.none
    size = await occupied(rig)
    before = rig.node.parts.storage.reader.counts.bytes_from_memory
    waiting = fetch(rig)
    await until(lambda: rig.node.answers.needed_bytes > 0)
    assert rig.node.parts.storage.reader.counts.bytes_from_memory == before
    assert (await rig.call(ApiKey.API_VERSIONS, 0)).error_code is ErrorCode.none
    rig.node.answers.release(size, address="192.0.2.1")
    answer = await waiting
    assert len(answer.responses[0].partitions[0].records) > 1_000
    assert rig.node.answers.held_bytes == 0


async def test_what_waits_for_memory_is_given_up_with_its_client(rig: Rig) -> None:
    assert (await produce(rig, b"x" * 1_000))[0] is ErrorCode.none
    await create_topic(rig, "many", 2_000)
    size = await occupied(rig)
    waiting = [fetch(rig), rig.send(ApiKey.METADATA, 1, topics=None), fetch(rig)]
    await until(lambda: rig.node.answers.needed_bytes > 0)
    rig.client.go()
    await until(lambda: rig.node.answers.needed_bytes == 0)
    rig.node.answers.release(size, address="192.0.2.1")
    assert rig.node.answers.held_bytes == 0
    for task in waiting:
        task.cancel()


async def test_a_fetch_of_nothing_needs_no_memory(rig: Rig) -> None:
    size = await occupied(rig)
    answer = await rig.call(ApiKey.FETCH, 11, **fetch_values("t", {0: 0}))
    assert answer.responses[0].partitions[0].error_code is ErrorCode.none
    rig.node.answers.release(size, address="192.0.2.1")


async def test_a_long_answer_without_records_waits_for_memory(rig: Rig) -> None:
    """Each unknown partition is in the answer, with its error."""
    size = await occupied(rig)
    values = fetch_values("unknown", dict.fromkeys(range(1_000), 0))
    waiting = rig.send(ApiKey.FETCH, 11, **values)
    await until(lambda: rig.node.answers.needed_bytes > 0)
    rig.node.answers.release(size, address="192.0.2.1")
    answer = await waiting
    assert len(answer.responses[0].partitions) == 1_000
    assert rig.node.answers.held_bytes == 0
