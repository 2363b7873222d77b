"""Two-phase commit (KIP-939) on a real server: transactions without timeout, and inits that keep a
transaction (metadata/sequencer/lua/transaction_rules.lua)."""

from typing import NamedTuple

import pytest

from bucketlog.log_format.model import SegmentIndex
from bucketlog.metadata.fold import LogState, fold
from bucketlog.metadata.sequencer.requests import (
    BatchAnswer,
    BatchStatus,
    FactStatus,
    PublishStatus,
)
from bucketlog.metadata.sequencer.transaction_listing import ListedTransaction
from bucketlog.metadata.sequencer.transaction_requests import (
    EndedBy,
    OverdueTransaction,
    ProducerPair,
    TransactionChange,
    WantedForgetting,
)
from tests.models import indexes
from tests.models.indexes import create, in_transaction, partition, segment, send_offsets, topic_id
from tests.servers.sequencing import NOW_MS, Sequencing
from tests.servers.transactional_ids import (
    ABORTABLE,
    CANDIDATE,
    DONE,
    FENCED,
    INVALID_STATE,
    OK,
    TIMEOUT_MS,
    V1,
    V2,
    WAIT,
    add,
    batch,
    end,
    ended,
    entry,
    init,
    initialise,
    offsets,
    parts_of,
    raised,
    set_fields,
    status_of,
    term,
    write,
)

PREPARED = FactStatus.PREPARED
COMMIT, ABORT = True, False


async def keep(sequencing: Sequencing, *, two_phase: bool = True) -> TransactionChange:
    """A visible init by writer `a` that keeps the ongoing transaction."""
    return await ended(sequencing, init(two_phase=two_phase, keeps=True))


async def prepared(sequencing: Sequencing, *, two_phase: bool = True) -> ProducerPair:
    """The pair of an ongoing transaction with a batch in each of two partitions."""
    pair = await initialise(sequencing, two_phase=two_phase)
    await write(sequencing, pair, partitions=(0, 1))
    return pair


async def record_of(sequencing: Sequencing) -> dict[str, object]:
    return dict((await sequencing.records("txns"))["i:x"])


# Timeouts --------------------------------------------------------------------------------------


async def test_a_transaction_with_two_phase_commit_is_never_overdue(sequencing: Sequencing) -> None:
    ages = sequencing.sequencer.overdue_transactions
    usual = await initialise(sequencing, each="y")
    assert await status_of(sequencing, batch(usual, 0, each="y")) is BatchStatus.OK
    await sequencing.publish(sequencing.a)
    assert (await ages(1, count=10)).two_phase_ms == 0
    await prepared(sequencing)
    sequencing.now_ms += 1_000 * TIMEOUT_MS
    found = await ages(1, count=10)
    assert found.overdue == [OverdueTransaction("y", usual, V2, 0)]
    assert found.two_phase_ms == 1_000 * TIMEOUT_MS


async def test_the_age_is_that_of_the_oldest(sequencing: Sequencing) -> None:
    pair = await prepared(sequencing)
    sequencing.now_ms += 5
    other = await initialise(sequencing, each="y", two_phase=True)
    assert await status_of(sequencing, batch(other, 0, each="y")) is BatchStatus.OK
    await sequencing.publish(sequencing.a)
    sequencing.now_ms += 2
    assert await sequencing.sequencer.overdue_transactions(1, count=10) == ([], 7)
    await ended(sequencing, end(pair))
    assert await sequencing.sequencer.overdue_transactions(1, count=10) == ([], 2)


async def test_a_kept_transaction_with_a_timeout_keeps_its_deadline(sequencing: Sequencing) -> None:
    await prepared(sequencing, two_phase=False)
    sequencing.now_ms += TIMEOUT_MS - 1
    change = await keep(sequencing, two_phase=False)
    ages = sequencing.sequencer.overdue_transactions
    assert (await ages(1, count=10)).overdue == []
    sequencing.now_ms += 1
    assert (await ages(1, count=10)).overdue == [OverdueTransaction("x", change.pair, V2, 0)]


async def test_a_kept_transaction_may_lose_its_timeout(sequencing: Sequencing) -> None:
    """A late end, requested because of the timeout, is also refused."""
    pair = await prepared(sequencing, two_phase=False)
    sequencing.now_ms += TIMEOUT_MS
    (overdue,) = (await sequencing.sequencer.overdue_transactions(1, count=10)).overdue
    assert overdue.pair == pair
    await keep(sequencing)
    late = end(overdue.pair, commit=False, by=EndedBy.SERVER, serial=overdue.serial)
    assert await entry(sequencing, sequencing.a, late) == (FENCED, None)
    assert await sequencing.sequencer.overdue_transactions(1, count=10) == ([], TIMEOUT_MS)


async def test_a_transaction_without_timeout_is_kept_only_without_one(
    sequencing: Sequencing,
) -> None:
    pair = await prepared(sequencing)
    before = await record_of(sequencing)
    refused = await entry(sequencing, sequencing.a, init(keeps=True))
    assert refused == (INVALID_STATE, None)
    assert await record_of(sequencing) == before
    assert (await keep(sequencing)).kept == pair


# Inits that keep -------------------------------------------------------------------------------


async def test_an_init_keeps_the_transaction_and_raises_the_epoch(sequencing: Sequencing) -> None:
    pair = await prepared(sequencing)
    parts = await parts_of(sequencing)
    sequencing.now_ms += 9
    change = await keep(sequencing)
    assert change == TransactionChange(raised(pair), kept=pair)
    again = await keep(sequencing)
    assert again == TransactionChange(raised(pair, 2), kept=pair)
    record = await record_of(sequencing)
    assert (record["ongoing"], record["since"], record["part_count"]) == (True, NOW_MS, 2)
    assert (record["serial"], await parts_of(sequencing)) == (0, parts)


async def test_without_a_transaction_nothing_is_kept(sequencing: Sequencing) -> None:
    status, change = await entry(sequencing, sequencing.a, init(two_phase=True, keeps=True))
    assert (status, change) == (OK, TransactionChange(ProducerPair(CANDIDATE, 0)))
    await sequencing.publish(sequencing.a)
    change = await keep(sequencing)
    assert change == TransactionChange(ProducerPair(CANDIDATE, 1))


async def test_an_init_that_keeps_waits_for_an_open_entry(sequencing: Sequencing) -> None:
    pair = await prepared(sequencing)
    await entry(sequencing, sequencing.b, end(pair))
    wanted = init(two_phase=True, keeps=True)
    assert await entry(sequencing, sequencing.a, wanted) == (WAIT, None)


async def test_a_void_init_keeps_nothing(sequencing: Sequencing) -> None:
    pair = await prepared(sequencing)
    before = await record_of(sequencing)
    assert (await entry(sequencing, sequencing.b, init(two_phase=True, keeps=True)))[0] is OK
    assert await status_of(sequencing, batch(pair, 1)) is BatchStatus.WAIT
    await sequencing.void(sequencing.b, 0)
    assert await record_of(sequencing) == before
    assert await status_of(sequencing, batch(pair, 1)) is BatchStatus.OK


async def test_the_last_epoch_is_followed_by_another_producer(sequencing: Sequencing) -> None:
    """The markers carry the producer id that began the transaction."""
    pair = await prepared(sequencing)
    await set_fields(sequencing, epoch=32_766)
    last = ProducerPair(pair.producer_id, 32_766)
    change = await keep(sequencing)
    assert change == TransactionChange(ProducerPair(CANDIDATE, 0), kept=last)
    found = await ended(sequencing, end(change.pair))
    assert (found.pair, found.last) == (ProducerPair(CANDIDATE, 1), change.pair)
    assert (found.ended, len(found.markers)) == (last, 2)
    repeated = await entry(sequencing, sequencing.a, end(change.pair))
    assert repeated == (DONE, TransactionChange(found.pair))


# What is accepted of whom ----------------------------------------------------------------------


class Answers(NamedTuple):
    """The answer that each pair gets while the transaction is kept."""

    batch: BatchStatus
    offsets: FactStatus
    added: FactStatus
    end: FactStatus


OF_THE_OWNER = Answers(BatchStatus.PREPARED, PREPARED, PREPARED, OK)
OF_OTHERS = Answers(BatchStatus.FENCED, FENCED, FENCED, FENCED)


@pytest.mark.parametrize(("by", "answers"), [(0, OF_OTHERS), (1, OF_THE_OWNER), (2, OF_OTHERS)])
@pytest.mark.parametrize("version", [V1, V2])
async def test_a_kept_transaction_can_only_be_ended_by_its_owner(
    sequencing: Sequencing, by: int, answers: Answers, version: int
) -> None:
    pair = await prepared(sequencing)
    await keep(sequencing)
    named = raised(pair, by)
    sequence = 2 if by == 0 else 0
    assert await status_of(sequencing, batch(named, sequence, version=version)) is answers.batch
    wanted = offsets(named, await term(sequencing), version=version)
    assert (await entry(sequencing, sequencing.a, wanted))[0] is answers.offsets
    added = await sequencing.sequencer.add_to_transaction(1, "x", named, groups=["g"])
    assert added is answers.added
    assert (await entry(sequencing, sequencing.a, end(named, version=version)))[0] is answers.end


async def test_a_zombie_is_still_told_of_its_duplicates(sequencing: Sequencing) -> None:
    pair = await prepared(sequencing)
    await keep(sequencing)
    answer = await sequencing.batch(sequencing.a, batch(pair, 0))
    assert answer == BatchAnswer(BatchStatus.DUPLICATE, 0)


async def test_a_zombie_does_not_go_on_after_an_error(sequencing: Sequencing) -> None:
    pair = await prepared(sequencing)
    await keep(sequencing)
    assert await entry(sequencing, sequencing.a, init(pair)) == (FENCED, None)


# Ends ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("commit", [COMMIT, ABORT])
async def test_an_end_has_the_markers_of_the_kept_pair(
    sequencing: Sequencing, commit: bool
) -> None:
    """The epoch rises again, so that a late end cannot end the next transaction."""
    pair = await prepared(sequencing)
    owner = (await keep(sequencing)).pair
    change = await ended(sequencing, end(owner, commit=commit))
    assert (change.pair, change.last, change.ended) == (raised(pair, 2), owner, pair)
    assert [row.base_offset for row in change.markers] == [1, 1]
    repeated = await entry(sequencing, sequencing.a, end(owner, commit=commit))
    assert repeated == (DONE, TransactionChange(change.pair))
    other = await entry(sequencing, sequencing.a, end(owner, commit=not commit))
    assert other == (INVALID_STATE, None)
    assert await entry(sequencing, sequencing.a, end(pair, commit=commit)) == (FENCED, None)
    record = await record_of(sequencing)
    assert (record["txn_producer"], record["ongoing"], record["serial"]) == ("", False, 1)
    await write(sequencing, change.pair)
    assert (await ended(sequencing, end(change.pair))).ended == change.pair


async def test_a_commit_waits_for_batches_of_the_kept_pair(sequencing: Sequencing) -> None:
    """The producer id of the transaction differs from the owner's."""
    pair = await prepared(sequencing)
    await set_fields(sequencing, epoch=32_766)
    last = ProducerPair(pair.producer_id, 32_766)
    await sequencing.batch(sequencing.b, batch(last, 0))
    owner = (await keep(sequencing)).pair
    assert owner.producer_id == CANDIDATE
    assert await entry(sequencing, sequencing.a, end(owner)) == (WAIT, None)
    assert await sequencing.publish(sequencing.b) is PublishStatus.VISIBLE
    assert (await ended(sequencing, end(owner))).ended == last


async def test_an_end_of_version_1_is_bound_to_the_kept_transaction(sequencing: Sequencing) -> None:
    pair = await initialise(sequencing)
    await add(sequencing, pair, 0)
    await write(sequencing, pair, version=V1)
    owner = (await keep(sequencing)).pair
    bound = await sequencing.sequencer.bind_end(1, "x", owner, is_commit=True)
    assert bound == (0,)
    change = await ended(sequencing, end(owner, version=V1, serial=0))
    assert (change.pair, change.ended) == (owner, pair)
    assert await sequencing.sequencer.bind_end(1, "x", owner, is_commit=True) is DONE
    assert await sequencing.sequencer.bind_end(1, "x", pair, is_commit=True) is FENCED


async def test_the_server_may_end_a_kept_transaction(sequencing: Sequencing) -> None:
    pair = await prepared(sequencing)
    owner = (await keep(sequencing)).pair
    change = await ended(sequencing, end(owner, commit=False, by=EndedBy.SERVER, serial=0))
    assert (change.ended, change.pair) == (pair, raised(owner))
    assert await entry(sequencing, sequencing.a, end(owner)) == (ABORTABLE, None)
    assert await sequencing.sequencer.overdue_transactions(1, count=1) == ([], 0)


async def test_an_init_that_does_not_keep_ends_a_kept_transaction(sequencing: Sequencing) -> None:
    pair = await prepared(sequencing)
    owner = (await keep(sequencing)).pair
    change = await ended(sequencing, init())
    assert (change.pair, change.ended, change.kept) == (raised(owner), pair, None)
    assert len(change.markers) == 2
    assert (await record_of(sequencing))["txn_producer"] == ""


async def test_an_id_with_a_kept_transaction_is_not_forgotten(sequencing: Sequencing) -> None:
    await prepared(sequencing)
    await keep(sequencing)
    wanted = WantedForgetting("x", NOW_MS + 10**9)
    assert await entry(sequencing, sequencing.a, wanted) == (INVALID_STATE, None)


# What is shown ---------------------------------------------------------------------------------


async def test_a_kept_transaction_is_shown_with_its_own_pair(sequencing: Sequencing) -> None:
    pair = await prepared(sequencing)
    await set_fields(sequencing, epoch=32_766)
    last = ProducerPair(pair.producer_id, 32_766)
    await entry(sequencing, sequencing.a, init(two_phase=True, keeps=True))
    found = (await sequencing.sequencer.describe_transactions(1, ["x"]))["x"]
    assert found.listed == ListedTransaction("x", last, "Ongoing", NOW_MS, 0, V2, last)
    await sequencing.publish(sequencing.a)
    found = (await sequencing.sequencer.describe_transactions(1, ["x"]))["x"]
    owner = ProducerPair(CANDIDATE, 0)
    assert found.listed == ListedTransaction("x", last, "Ongoing", NOW_MS, 0, V2, owner)
    assert (found.two_phase, sorted(found.parts)) == (True, [("t", 0), ("t", 1)])
    for producer, count in ((pair.producer_id, 1), (CANDIDATE, 0)):
        parts = sequencing.sequencer.list_transactions(1, [producer])
        assert sum([len(part) async for part in parts]) == count


# A new epoch -----------------------------------------------------------------------------------

HERE = partition(1)


def folded(*segments: SegmentIndex) -> LogState:
    begun = segment(0, {}, create(1, 2, "t"), indexes.initialise("x", 7))
    return fold([begun, *segments])


async def test_an_activation_carries_both_pairs(fresh: Sequencing) -> None:
    state = folded(
        segment(1, {HERE: [in_transaction(0, 7)]}, send_offsets("x", 7, 0, "g", {HERE: 5})),
        segment(2, {}, indexes.keep("x", (9, 4), (7, 0))),
    )
    fresh.topic_ids["t"] = topic_id(1)
    await fresh.activate(2, state)
    fresh.a = await fresh.writer()
    fresh.now_ms += 1_000 * TIMEOUT_MS
    assert await fresh.sequencer.overdue_transactions(2, count=9) == ([], 1_000 * TIMEOUT_MS)
    record = await record_of(fresh)
    assert (record["groups"], record["part_count"]) == (["g"], 1)
    zombie = batch(ProducerPair(7, 0), 1)
    assert await status_of(fresh, zombie) is BatchStatus.FENCED
    owner = ProducerPair(9, 4)
    assert await status_of(fresh, batch(owner, 0)) is BatchStatus.PREPARED
    change = await ended(fresh, end(owner))
    assert (change.pair, change.ended) == (ProducerPair(9, 5), ProducerPair(7, 0))
    assert [(row.partition, row.base_offset) for row in change.markers] == [(HERE, 1)]


async def test_an_activation_keeps_a_transaction_that_has_nothing_in_the_log(
    fresh: Sequencing,
) -> None:
    """Its partitions were added without batches, or its batches are void."""
    await fresh.activate(2, folded(segment(1, {}, indexes.keep("x", (7, 1), (7, 0)))))
    fresh.a = await fresh.writer()
    change = await ended(fresh, end(ProducerPair(7, 1)))
    assert (change.ended, change.markers) == (ProducerPair(7, 0), ())
