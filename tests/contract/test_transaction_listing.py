"""The sequencer's lists of transactional ids and producers for administrators, on a real server."""

from collections.abc import AsyncIterator
from typing import TypeVar

import pytest

from bucketlog.log_format.model import TopicIdPartition
from bucketlog.metadata.sequencer import transaction_listing
from bucketlog.metadata.sequencer.requests import PublishStatus
from bucketlog.metadata.sequencer.transaction_listing import (
    ListedProducer,
    ListedTransaction,
    TransactionDescription,
)
from tests.servers.sequencing import NOW_MS, Sequencing
from tests.servers.transactional_ids import (
    OK,
    TIMEOUT_MS,
    V2,
    batch,
    end,
    ended,
    entry,
    init,
    initialise,
    raised,
    write,
)

T = TypeVar("T")


async def everything(parts: AsyncIterator[list[T]]) -> list[T]:
    return [each async for part in parts for each in part]


async def state(sequencing: Sequencing) -> str:
    found = await sequencing.sequencer.describe_transactions(1, ["x"])
    (listed,) = await everything(sequencing.sequencer.list_transactions(1))
    assert listed == found["x"].listed
    return listed.state


@pytest.mark.parametrize("commit", [True, False])
async def test_the_states_of_an_id(sequencing: Sequencing, commit: bool) -> None:
    done = "Commit" if commit else "Abort"
    pair = await initialise(sequencing)
    assert await state(sequencing) == "Empty"
    await write(sequencing, pair)
    assert await state(sequencing) == "Ongoing"
    assert (await entry(sequencing, sequencing.a, end(pair, commit=commit)))[0] is OK
    assert await state(sequencing) == f"Prepare{done}"
    assert await sequencing.publish(sequencing.a) is PublishStatus.VISIBLE
    assert await state(sequencing) == f"Complete{done}"
    await initialise(sequencing)
    assert await state(sequencing) == "Empty"


async def test_an_init_that_ends_a_transaction_prepares_its_abort(sequencing: Sequencing) -> None:
    await write(sequencing, await initialise(sequencing))
    assert (await entry(sequencing, sequencing.a, init()))[0] is OK
    assert await state(sequencing) == "PrepareAbort"


async def test_an_id_is_shown_once_its_first_init_is_visible(sequencing: Sequencing) -> None:
    await entry(sequencing, sequencing.a, init())
    assert await everything(sequencing.sequencer.list_transactions(1)) == []
    assert await sequencing.sequencer.describe_transactions(1, ["x", "y"]) == {}


async def test_all_about_an_ongoing_transaction(sequencing: Sequencing) -> None:
    pair = await initialise(sequencing)
    await write(sequencing, pair)
    change = await ended(sequencing, end(pair))
    await write(sequencing, change.pair, partitions=(1, 0))
    found = await sequencing.sequencer.describe_transactions(1, ["x"])
    listed = ListedTransaction("x", raised(pair), "Ongoing", NOW_MS, 1, V2)
    parts = found["x"].parts
    assert found == {"x": TransactionDescription(listed, TIMEOUT_MS, parts, pair, "committed")}
    assert sorted(parts) == [("t", 0), ("t", 1)]


async def test_ids_come_in_parts_or_by_producer(
    sequencing: Sequencing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction_listing, "CHECKED_A_CALL", 10)
    names = [f"{number:03}-" + "x" * 100 for number in range(200)]  # no compact hash, hence parts
    pairs = {each: await initialise(sequencing, each=each) for each in names}
    parts = [part async for part in sequencing.sequencer.list_transactions(1)]
    assert len(parts) > 10
    assert max(map(len, parts)) < 30
    assert {each.transactional_id: each.pair for part in parts for each in part} == pairs
    wanted = [pairs[each].producer_id for each in names[:2]]
    some = await everything(sequencing.sequencer.list_transactions(1, wanted))
    assert {each.transactional_id for each in some} == set(names[:2])


async def test_the_producers_of_partitions(sequencing: Sequencing) -> None:
    pair = await initialise(sequencing)
    await write(sequencing, pair, partitions=(0, 1))
    await write(sequencing, pair, partitions=(0,), sequence=1)
    await sequencing.ask(sequencing.a, {("t", 0): [batch(pair, 2)]})  # not visible yet
    topic_id = sequencing.topic_ids["t"]
    partitions = [TopicIdPartition(topic_id, number) for number in range(3)]
    found = await everything(sequencing.sequencer.list_producers(1, partitions))
    assert {each.partition.partition: each for each in found} == {
        0: ListedProducer(pair.producer_id, partitions[0], pair.epoch, 1, NOW_MS),
        1: ListedProducer(pair.producer_id, partitions[1], pair.epoch, 0, NOW_MS),
    }
    assert await everything(sequencing.sequencer.list_producers(1, partitions[2:])) == []
