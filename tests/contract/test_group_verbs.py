"""Groups in the sequencer: who coordinates, what is stored, whose entries are accepted and in which
order they come, on a real server."""

import pytest

from bucketlog.log_format.errors import SequencerError, TooManyGroupsError
from bucketlog.log_format.model import Ticket
from bucketlog.metadata.sequencer.requests import (
    FactStatus,
    PublishStatus,
    WantedGroupEntry,
)
from bucketlog.metadata.sequencer.stored_groups import GroupRow, GroupTakeover
from tests.servers.sequencing import Sequencing, plain, produced

OK, NOT_COORDINATOR = FactStatus.OK, FactStatus.NOT_COORDINATOR
VISIBLE, DECIDED = PublishStatus.VISIBLE, PublishStatus.DECIDED
BYTES = bytes(range(256))
GROUPS = ["g", "", "g:", "ü \0", "x" * 10_000]


async def take(sequencing: Sequencing, group: str = "g", broker: str = "one") -> GroupTakeover:
    return await sequencing.sequencer.take_group(1, group, broker)


async def store(
    sequencing: Sequencing,
    term: int,
    revision: int,
    group: str = "g",
    *,
    state: str = "Stable",
    snapshot: bytes = BYTES,
) -> bool:
    return await sequencing.sequencer.store_group(
        1, group, term, revision, state, "consumer", snapshot
    )


async def stored_terms(sequencing: Sequencing) -> dict[str, int]:
    return {name: record["term"] for name, record in (await sequencing.records("groups")).items()}


# Taking, storing, forgetting -------------------------------------------------------------------


async def test_each_taking_has_a_term_of_its_own(sequencing: Sequencing) -> None:
    """Across groups, after a repeat and after a group was forgotten."""
    terms = [(await take(sequencing, group)).term for group in ("g", "h", "g", "g")]
    assert await sequencing.sequencer.forget_group(1, "g", terms[-1])
    terms.append((await take(sequencing)).term)
    assert terms == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("group", GROUPS)
async def test_what_was_stored_is_what_the_next_coordinator_gets(
    sequencing: Sequencing, group: str
) -> None:
    first = await take(sequencing, group)
    assert first == GroupTakeover(1, 0, None, frozenset())
    assert await store(sequencing, 1, 7, group)
    assert await take(sequencing, group, "two") == GroupTakeover(2, 7, BYTES, frozenset())
    assert await store(sequencing, 2, 8, group, snapshot=b"")
    assert await take(sequencing, group) == GroupTakeover(3, 8, b"", frozenset())
    assert (await take(sequencing, "another")).snapshot is None


async def test_a_new_group_is_refused_at_the_limit(sequencing: Sequencing) -> None:
    """A group that is known, or has offsets (no limit), can still be taken."""
    verbs = sequencing.sequencer
    for group in ("g", "h"):
        await verbs.take_group(1, group, "one", groups_max=2)
    with pytest.raises(TooManyGroupsError, match="it has 2 or more"):
        await verbs.take_group(1, "i", "one", groups_max=2)
    assert set(await stored_terms(sequencing)) == {"g:g", "g:h"}
    again = await verbs.take_group(1, "h", "two", groups_max=2)
    assert await verbs.forget_group(1, "h", again.term)
    assert (await verbs.take_group(1, "i", "one", groups_max=2)).term == again.term + 1
    assert (await verbs.take_group(1, "j", "one")).term == again.term + 2


async def test_an_earlier_coordinator_stores_nothing(sequencing: Sequencing) -> None:
    await take(sequencing)
    assert await store(sequencing, 1, 1)
    await take(sequencing, broker="two")
    for term in (1, 3, 0):
        assert not await store(sequencing, term, 9, snapshot=b"late")
        assert not await sequencing.sequencer.forget_group(1, "g", term)
    assert await take(sequencing) == GroupTakeover(3, 1, BYTES, frozenset())


async def test_a_store_that_was_overtaken_changes_nothing(sequencing: Sequencing) -> None:
    await take(sequencing)
    assert await store(sequencing, 1, 5)
    assert await store(sequencing, 1, 5)
    with pytest.raises(SequencerError, match="revision 4 of group 'g' comes after revision 5"):
        await store(sequencing, 1, 4, state="Dead", snapshot=b"older")
    assert (await take(sequencing))[1:3] == (5, BYTES)
    assert (await sequencing.sequencer.list_groups(1))[0].state == "Stable"


async def test_a_group_that_was_never_taken_cannot_be_stored(sequencing: Sequencing) -> None:
    assert not await store(sequencing, 1, 1)
    assert not await store(sequencing, 0, 1)
    assert await sequencing.records("groups") == {}
    assert await sequencing.records("group_snapshots") == {}


async def test_a_forgotten_group_leaves_nothing(sequencing: Sequencing) -> None:
    await take(sequencing)
    await store(sequencing, 1, 5)
    for _ in range(2):  # a repeat is answered the same
        assert await sequencing.sequencer.forget_group(1, "g", 1)
        assert await sequencing.records("groups") == {}
        assert await sequencing.records("group_snapshots") == {}
    assert not await store(sequencing, 1, 6)
    assert await entered(sequencing, 1) is NOT_COORDINATOR
    assert await take(sequencing) == GroupTakeover(2, 0, None, frozenset())


async def test_groups_are_listed(sequencing: Sequencing) -> None:
    for term, group in enumerate(GROUPS, 1):
        await take(sequencing, group, f"broker {term % 2}")
    await store(sequencing, 1, 1, state="Empty")
    expected = [GroupRow(group, "", "", f"broker {n % 2}") for n, group in enumerate(GROUPS, 1)]
    expected[0] = GroupRow("g", "Empty", "consumer", "broker 1")
    assert await sequencing.sequencer.list_groups(1) == sorted(expected)
    await sequencing.sequencer.forget_group(1, "g", 1)
    assert await sequencing.sequencer.list_groups(1) == sorted(expected[1:])
    await take(sequencing, "", "another")
    expected[1] = GroupRow("", "", "", "another")
    assert await sequencing.sequencer.list_groups(1) == sorted(expected[1:])


async def test_an_activation_forgets_all_groups(sequencing: Sequencing) -> None:
    await take(sequencing)
    await store(sequencing, 1, 1)
    await sequencing.activate(2)
    assert await sequencing.sequencer.list_groups(2) == []
    taken = await sequencing.sequencer.take_group(2, "g", "one")
    assert taken == GroupTakeover(1, 0, None, frozenset())


# Entries ---------------------------------------------------------------------------------------


async def entered(sequencing: Sequencing, term: int, group: str = "g") -> FactStatus:
    """The answer to one entry of writer a."""
    answer = await sequencing.ask(sequencing.a, control=[WantedGroupEntry(group, term)])
    assert (answer.ticket is None) is (answer.fact_statuses[0] is NOT_COORDINATOR)
    return answer.fact_statuses[0]


@pytest.mark.parametrize("group", GROUPS)
async def test_only_the_last_coordinators_entries_are_accepted(
    sequencing: Sequencing, group: str
) -> None:
    for term in (0, 1):
        assert await entered(sequencing, term, group) is NOT_COORDINATOR
    await take(sequencing, group)
    assert await entered(sequencing, 1, group) is OK
    for term in (0, 2):
        assert await entered(sequencing, term, group) is NOT_COORDINATOR
    await take(sequencing, group, "two")
    assert await entered(sequencing, 1, group) is NOT_COORDINATOR
    assert await entered(sequencing, 2, group) is OK


async def test_of_two_coordinators_one_has_its_entries_accepted(sequencing: Sequencing) -> None:
    """Whatever the order in which they take and commit."""
    terms = {"one": (await take(sequencing, broker="one")).term}
    terms["two"] = (await take(sequencing, broker="two")).term
    for last, writer in (("two", sequencing.b), ("one", sequencing.a), ("two", sequencing.a)):
        terms[last] = (await take(sequencing, broker=last)).term
        entries = [WantedGroupEntry("g", terms[broker]) for broker in ("one", "two", "one")]
        answer = await sequencing.ask(writer, control=entries)
        expected = [OK if broker == last else NOT_COORDINATOR for broker in ("one", "two", "one")]
        assert list(answer.fact_statuses) == expected


async def test_answers_stand_in_the_order_of_the_entries(sequencing: Sequencing) -> None:
    for group in ("g", "h"):
        await take(sequencing, group)
    answer = await sequencing.ask(
        sequencing.a,
        {("u", 0): [plain()], ("t", 0): [produced(7, 5)]},
        [
            WantedGroupEntry("h", 1),
            sequencing.wanted("create", "t", 1),
            WantedGroupEntry("g", 1),
            sequencing.wanted("create", "u", 1),
            WantedGroupEntry("h", 2),
        ],
    )
    assert list(answer.fact_statuses) == [NOT_COORDINATOR, FactStatus.EXISTS, OK, OK, OK]
    assert answer.ticket == Ticket(1, 1)
    assert await sequencing.publish(sequencing.a) is VISIBLE


async def test_a_repeat_gets_the_stored_answer_though_the_group_was_taken(
    sequencing: Sequencing,
) -> None:
    """It was accepted in time, and is in the list already."""
    await take(sequencing)
    entry = [WantedGroupEntry("g", 1)]
    first = await sequencing.ask(sequencing.a, control=entry, request="r")
    await take(sequencing, broker="two")
    assert await sequencing.ask(sequencing.a, control=entry, seq=1, request="r") == first
    assert await sequencing.publish(sequencing.a) is VISIBLE
    assert (await take(sequencing)).open_tickets == frozenset()


# Order -----------------------------------------------------------------------------------------


async def test_a_groups_entries_become_visible_in_order(sequencing: Sequencing) -> None:
    """Through two writers, the coordinator having changed between; nobody waits."""
    await take(sequencing)
    assert await entered(sequencing, 1) is OK
    taken = await take(sequencing, broker="two")
    assert taken.open_tickets == frozenset({1})
    entry = [WantedGroupEntry("g", taken.term)]
    assert list((await sequencing.ask(sequencing.b, control=entry)).fact_statuses) == [OK]
    assert await sequencing.publish(sequencing.b) is DECIDED
    assert (await take(sequencing)).open_tickets == frozenset({1, 2})
    assert await sequencing.publish(sequencing.a) is VISIBLE
    assert await sequencing.tickets_shown() == [0, 1, 2]
    assert (await take(sequencing)).open_tickets == frozenset()


async def test_every_open_entry_counts(sequencing: Sequencing) -> None:
    """Three writers in a row, published backwards, several entries of a group in one segment."""
    c = await sequencing.writer()
    await take(sequencing)
    for writer in (sequencing.a, sequencing.b, c):
        await sequencing.ask(writer, control=[WantedGroupEntry("g", 1)] * 3)
    assert await sequencing.publish(c) is DECIDED
    assert await sequencing.publish(sequencing.b) is DECIDED
    assert await sequencing.publish(sequencing.a) is VISIBLE
    assert await sequencing.tickets_shown() == [0, 1, 2, 3]


async def test_groups_do_not_wait_for_each_other(sequencing: Sequencing) -> None:
    for group in ("g", "h"):
        await take(sequencing, group)
    assert await entered(sequencing, 1) is OK
    await sequencing.ask(sequencing.b, control=[WantedGroupEntry("h", 2)])
    assert await sequencing.publish(sequencing.b) is VISIBLE


async def test_a_segment_waits_for_both_its_batches_and_its_groups(sequencing: Sequencing) -> None:
    c = await sequencing.writer()
    await take(sequencing)
    assert await entered(sequencing, 1) is OK
    await sequencing.ask(sequencing.b, {("t", 0): [plain()]})
    await sequencing.ask(c, {("t", 0): [plain()]}, [WantedGroupEntry("g", 1)])
    assert await sequencing.publish(c) is DECIDED
    assert await sequencing.publish(sequencing.a) is VISIBLE
    assert await sequencing.tickets_shown() == [0, 1]
    assert await sequencing.publish(sequencing.b) is VISIBLE
    assert await sequencing.tickets_shown() == [0, 1, 2, 3]


async def test_void_entries_are_waited_for_no_more(sequencing: Sequencing) -> None:
    await take(sequencing)
    assert await entered(sequencing, 1) is OK
    assert await entered(sequencing, 1) is OK
    await sequencing.ask(sequencing.b, control=[WantedGroupEntry("g", 1)])
    assert await sequencing.publish(sequencing.b) is DECIDED
    await sequencing.void(sequencing.a, 1)
    assert await sequencing.tickets_shown() == [0, 3]
    assert (await take(sequencing)).open_tickets == frozenset()
    assert await stored_terms(sequencing) == {"g:g": 2}


async def test_a_group_forgotten_with_open_entries_goes_with_the_last(
    sequencing: Sequencing,
) -> None:
    """Until then nobody coordinates it, and whoever takes it comes after them."""
    await take(sequencing)
    await store(sequencing, 1, 5)
    assert await entered(sequencing, 1) is OK
    assert await sequencing.sequencer.forget_group(1, "g", 1)
    assert await sequencing.sequencer.forget_group(1, "g", 1)
    assert await sequencing.sequencer.list_groups(1) == []
    for term in (0, 1):
        assert await entered(sequencing, term) is NOT_COORDINATOR
        assert not await store(sequencing, term, 9)
    assert await take(sequencing) == GroupTakeover(2, 0, None, frozenset({1}))
    await sequencing.ask(sequencing.b, control=[WantedGroupEntry("g", 2)])
    assert await sequencing.publish(sequencing.b) is DECIDED
    assert await sequencing.sequencer.forget_group(1, "g", 2)
    assert await stored_terms(sequencing) == {"g:g": 0}
    assert await sequencing.publish(sequencing.a) is VISIBLE
    assert await sequencing.tickets_shown() == [0, 1, 2]
    assert await sequencing.records("groups") == {}


async def test_a_request_with_thousands_of_groups(sequencing: Sequencing) -> None:
    """More than Lua's unpack takes at once."""
    count = 3000
    for n in range(count):
        await take(sequencing, f"group {n}")
    entries = [WantedGroupEntry(f"group {n}", n + 1) for n in range(count)]
    answer = await sequencing.ask(sequencing.a, control=entries)
    assert list(answer.fact_statuses) == [OK] * count
    assert await sequencing.publish(sequencing.a) is VISIBLE
    records = await sequencing.records("groups")
    assert {record["open"] for record in records.values()} == {""}
