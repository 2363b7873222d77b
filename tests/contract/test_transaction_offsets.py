"""Version 1, offsets and timeouts of transactions on a real server, with the fence of each entry
(metadata/sequencer/lua/transaction_rules.lua)."""

from bucketlog.metadata.sequencer.requests import (
    BatchStatus,
    FactStatus,
    PublishStatus,
    WantedGroupEntry,
)
from bucketlog.metadata.sequencer.transaction_requests import (
    BoundEnd,
    EndedBy,
    OverdueTransaction,
    TransactionLimits,
    WantedForgetting,
    WantedTransactionOffsets,
)
from tests.servers.sequencing import NOW_MS, Sequencing
from tests.servers.transactional_ids import (
    DONE,
    FENCED,
    INVALID_STATE,
    OK,
    TIMEOUT_MS,
    TOO_MANY,
    V1,
    V2,
    WAIT,
    add,
    batch,
    end,
    ended,
    entry,
    initialise,
    offsets,
    raised,
    status_of,
    term,
    write,
)

# Version 1 -------------------------------------------------------------------------------------


async def test_version_1_keeps_its_epoch(sequencing: Sequencing) -> None:
    pair = await initialise(sequencing)
    for serial in range(2):
        await add(sequencing, pair, 0)
        bound = await sequencing.sequencer.bind_end(1, "x", pair, is_commit=True)
        assert bound == BoundEnd(serial)
        await write(sequencing, pair, sequence=serial, version=V1)
        change = await ended(sequencing, end(pair, version=V1, serial=serial))
        assert change.pair == pair


async def test_a_late_end_of_version_1_ends_no_later_transaction(sequencing: Sequencing) -> None:
    pair = await initialise(sequencing)
    await add(sequencing, pair, 0)
    await ended(sequencing, end(pair, version=V1, serial=0))
    await add(sequencing, pair, 0)
    late = await entry(sequencing, sequencing.a, end(pair, version=V1, serial=0))
    assert late == (FactStatus.AGAIN, None)


async def test_an_end_of_version_1_with_nothing_open(sequencing: Sequencing) -> None:
    pair = await initialise(sequencing)
    bind = sequencing.sequencer.bind_end
    assert await bind(1, "x", pair, is_commit=True) is INVALID_STATE
    assert await bind(1, "x", pair, is_commit=False) is DONE
    await add(sequencing, pair, 0)
    await ended(sequencing, end(pair, version=V1))
    assert await bind(1, "x", pair, is_commit=True) is DONE
    assert await bind(1, "y", pair, is_commit=True) is FactStatus.UNKNOWN_TRANSACTIONAL_ID
    assert await bind(1, "x", raised(pair), is_commit=True) is FENCED


async def test_a_repeat_is_bound_to_the_transaction_that_ends(sequencing: Sequencing) -> None:
    pair = await initialise(sequencing)
    await add(sequencing, pair, 0)
    await entry(sequencing, sequencing.a, end(pair, version=V1, serial=0))
    bound = await sequencing.sequencer.bind_end(1, "x", pair, is_commit=True)
    assert bound == BoundEnd(0)


# Offsets ---------------------------------------------------------------------------------------


async def test_offsets_begin_a_transaction_and_its_end_enters_the_group(
    sequencing: Sequencing,
) -> None:
    pair = await initialise(sequencing)
    of_term = await term(sequencing)
    assert (await entry(sequencing, sequencing.a, offsets(pair, of_term)))[0] is OK
    await sequencing.publish(sequencing.a)
    record = (await sequencing.records("txns"))["i:x"]
    assert (record["ongoing"], record["groups"], record["offsets"]) == (True, ["g"], "")
    await entry(sequencing, sequencing.a, end(pair))
    taken = await sequencing.sequencer.take_group(1, "g", "other")
    assert len(taken.open_tickets) == 1


async def test_a_commit_waits_for_its_offsets_at_other_writers(sequencing: Sequencing) -> None:
    pair = await initialise(sequencing)
    assert (await entry(sequencing, sequencing.b, offsets(pair, await term(sequencing))))[0] is OK
    assert await entry(sequencing, sequencing.a, end(pair)) == (WAIT, None)
    await sequencing.void(sequencing.b, 0)
    assert (await sequencing.records("txns"))["i:x"]["offsets"] == ""
    assert (await entry(sequencing, sequencing.a, end(pair)))[0] is OK


async def test_an_aborting_end_depends_on_open_offsets(sequencing: Sequencing) -> None:
    pair = await initialise(sequencing)
    await entry(sequencing, sequencing.b, offsets(pair, await term(sequencing)))
    assert (await entry(sequencing, sequencing.a, end(pair, commit=False)))[0] is OK
    assert await sequencing.publish(sequencing.a) is PublishStatus.DECIDED
    await sequencing.void(sequencing.b, 0)
    assert (await sequencing.records("txns"))["i:x"]["serial"] == 1


async def test_offsets_are_refused(sequencing: Sequencing) -> None:
    pair = await initialise(sequencing)
    of_term = await term(sequencing)

    async def refused(wanted: WantedTransactionOffsets) -> FactStatus:
        return (await entry(sequencing, sequencing.a, wanted))[0]

    assert await refused(offsets(raised(pair), of_term)) is FENCED
    assert await refused(offsets(pair, of_term + 1)) is FactStatus.NOT_COORDINATOR
    assert await refused(offsets(pair, of_term, version=V1)) is INVALID_STATE
    sequencing.sequencer.transaction_limits = TransactionLimits(offset_rows=2, groups=1)
    assert await refused(offsets(pair, of_term, rows=3)) is TOO_MANY
    assert await refused(offsets(pair, of_term, rows=2)) is OK
    assert await refused(offsets(pair, of_term, rows=1)) is TOO_MANY
    other = await term(sequencing, "h")
    assert await refused(offsets(pair, other, rows=0, group="h")) is TOO_MANY


async def test_offsets_of_version_1_follow_an_added_group(sequencing: Sequencing) -> None:
    pair = await initialise(sequencing)
    assert await sequencing.sequencer.add_to_transaction(1, "x", pair, groups=["g"]) is OK
    wanted = offsets(pair, await term(sequencing), version=V1)
    assert (await entry(sequencing, sequencing.a, wanted))[0] is OK


async def test_an_end_of_a_forgotten_group_enters_its_key(sequencing: Sequencing) -> None:
    pair = await initialise(sequencing)
    of_term = await term(sequencing)
    await entry(sequencing, sequencing.a, offsets(pair, of_term))
    await sequencing.publish(sequencing.a)
    assert await sequencing.sequencer.forget_group(1, "g", of_term)
    await entry(sequencing, sequencing.b, end(pair))
    assert (await sequencing.sequencer.take_group(1, "g", "other")).open_tickets
    later = WantedGroupEntry("g", of_term + 1)
    await sequencing.ask(sequencing.a, control=[later])
    assert await sequencing.publish(sequencing.a) is PublishStatus.DECIDED


# Timeouts and expiry ---------------------------------------------------------------------------


async def test_a_transaction_is_overdue_after_its_timeout(sequencing: Sequencing) -> None:
    pair = await initialise(sequencing)

    async def overdue(epoch: int, *, count: int) -> list[OverdueTransaction]:
        return (await sequencing.sequencer.overdue_transactions(epoch, count=count)).overdue

    sequencing.now_ms += TIMEOUT_MS
    await write(sequencing, pair)
    sequencing.now_ms += TIMEOUT_MS - 1
    assert await overdue(1, count=10) == []
    await write(sequencing, pair, sequence=1)
    sequencing.now_ms += 1
    assert await overdue(1, count=10) == [OverdueTransaction("x", pair, V2, 0)]
    assert await overdue(1, count=0) == []
    await entry(sequencing, sequencing.b, end(pair, commit=False, by=EndedBy.SERVER, serial=0))
    assert await overdue(1, count=10) == []
    await sequencing.void(sequencing.b, 0)
    assert await overdue(1, count=10) == [OverdueTransaction("x", pair, V2, 0)]
    await ended(sequencing, end(pair, commit=False, by=EndedBy.SERVER, serial=0))
    sequencing.now_ms += TIMEOUT_MS
    assert await overdue(1, count=10) == []
    assert await sequencing.redis.zrange(sequencing.key("txn_deadlines"), 0, -1) == [b""]


async def test_idle_ids_are_forgotten(sequencing: Sequencing) -> None:
    pair = await initialise(sequencing)
    sequencing.now_ms += 1
    idle = sequencing.sequencer.idle_transactional_ids
    assert await idle(1, "0", count=100, before_ms=NOW_MS) == ("0", [])
    assert await idle(1, "0", count=100, before_ms=NOW_MS + 1) == ("0", ["x"])
    kept = await entry(sequencing, sequencing.a, WantedForgetting("x", NOW_MS))
    assert kept == (INVALID_STATE, None)
    assert (await entry(sequencing, sequencing.b, WantedForgetting("x", NOW_MS + 1)))[0] is OK
    assert await status_of(sequencing, batch(pair, 0)) is BatchStatus.WAIT
    await sequencing.void(sequencing.b, 0)
    assert (await entry(sequencing, sequencing.a, WantedForgetting("x", NOW_MS + 1)))[0] is OK
    await sequencing.publish(sequencing.a)
    assert await sequencing.records("txns") == {}
    assert await status_of(sequencing, batch(pair, 0)) is BatchStatus.UNKNOWN_TRANSACTIONAL_ID


async def test_an_id_with_a_transaction_is_not_forgotten(sequencing: Sequencing) -> None:
    pair = await initialise(sequencing)
    await write(sequencing, pair)
    kept = await entry(sequencing, sequencing.a, WantedForgetting("x", NOW_MS + 10**9))
    assert kept == (INVALID_STATE, None)
