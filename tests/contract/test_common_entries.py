"""Entries about tiers, about security, and about share groups: always accepted, in order among
themselves, in nobody's way."""

import pytest

from bucketlog.metadata.sequencer.requests import (
    FactStatus,
    PublishStatus,
    WantedFact,
    WantedSecurityEntry,
    WantedShareEntry,
    WantedTierEntry,
)
from tests.servers.sequencing import Sequencing, plain

pytestmark = pytest.mark.parametrize(
    "entry", [[WantedTierEntry()], [WantedSecurityEntry()], [WantedShareEntry()]]
)


async def test_they_become_visible_in_order_whoever_writes_them(
    sequencing: Sequencing, entry: list[WantedFact]
) -> None:
    for writer in (sequencing.a, sequencing.b):
        answer = await sequencing.ask(writer, control=entry * 2)
        assert list(answer.fact_statuses) == [FactStatus.OK, FactStatus.OK]
    assert await sequencing.publish(sequencing.b) is PublishStatus.DECIDED
    assert await sequencing.publish(sequencing.a) is PublishStatus.VISIBLE
    assert await sequencing.tickets_shown() == [0, 1, 2]


async def test_what_is_void_is_not_waited_for(
    sequencing: Sequencing, entry: list[WantedFact]
) -> None:
    await sequencing.ask(sequencing.a, control=entry)
    await sequencing.ask(sequencing.b, control=entry)
    await sequencing.void(sequencing.a, 1)
    assert await sequencing.publish(sequencing.b) is PublishStatus.VISIBLE


async def test_batches_do_not_wait_for_them(
    sequencing: Sequencing, entry: list[WantedFact]
) -> None:
    await sequencing.ask(sequencing.a, control=entry)
    await sequencing.ask(sequencing.b, {("t", 0): [plain()]})
    assert await sequencing.publish(sequencing.b) is PublishStatus.VISIBLE


async def test_they_are_no_group(sequencing: Sequencing, entry: list[WantedFact]) -> None:
    await sequencing.ask(sequencing.a, control=entry)
    assert await sequencing.sequencer.list_groups(1) == []
    taken = await sequencing.sequencer.take_group(1, "", "one")
    assert taken.open_tickets == frozenset()
    assert await sequencing.publish(sequencing.a) is PublishStatus.VISIBLE
    await sequencing.ask(sequencing.a, control=entry)
    assert await sequencing.publish(sequencing.a) is PublishStatus.VISIBLE
