"""Transactions on a real server: what `reserve` does with transactional ids, and the fence of each
entry (metadata/sequencer/lua/transaction_rules.lua)."""

import pytest

from bucketlog.metadata.sequencer.requests import (
    BatchAnswer,
    BatchStatus,
    PublishStatus,
    WantedBatch,
)
from bucketlog.metadata.sequencer.transaction_requests import (
    EndedBy,
    ProducerPair,
    TransactionChange,
    TransactionLimits,
    TransactionPart,
)
from tests.servers.sequencing import Sequencing
from tests.servers.transactional_ids import (
    ABORTABLE,
    CANDIDATE,
    DONE,
    FENCED,
    INVALID_STATE,
    OK,
    TOO_MANY,
    V1,
    WAIT,
    add,
    batch,
    end,
    ended,
    entry,
    field_of,
    init,
    initialise,
    parts_of,
    raised,
    set_fields,
    status_of,
    write,
)

# Init ------------------------------------------------------------------------------------------


async def test_an_init_gives_the_candidate_then_raises_the_epoch(sequencing: Sequencing) -> None:
    pair = await initialise(sequencing)
    assert pair.epoch == 0
    assert await initialise(sequencing) == raised(pair)
    assert await initialise(sequencing, raised(pair)) == raised(pair, 2)


async def test_an_init_that_names_an_older_pair_is_fenced(sequencing: Sequencing) -> None:
    pair = await initialise(sequencing)
    await initialise(sequencing)
    assert await entry(sequencing, sequencing.a, init(pair)) == (FENCED, None)


async def test_an_init_by_the_owner_may_be_repeated(sequencing: Sequencing) -> None:
    pair = await initialise(sequencing)
    again = await initialise(sequencing, pair)
    found = await entry(sequencing, sequencing.a, init(pair))
    assert found == (DONE, TransactionChange(again))


async def test_an_init_waits_for_an_open_one(sequencing: Sequencing) -> None:
    assert (await entry(sequencing, sequencing.a, init()))[0] is OK
    assert await entry(sequencing, sequencing.b, init()) == (WAIT, None)
    assert await entry(sequencing, sequencing.a, init()) == (WAIT, None)


async def test_a_void_init_leaves_no_id(sequencing: Sequencing) -> None:
    await entry(sequencing, sequencing.b, init())
    await sequencing.void(sequencing.b, 0)
    assert await sequencing.records("txns") == {}
    assert (await entry(sequencing, sequencing.a, init()))[0] is OK


async def test_a_void_init_of_a_known_id_leaves_the_owner(sequencing: Sequencing) -> None:
    pair = await initialise(sequencing)
    before = await sequencing.records("txns")
    await entry(sequencing, sequencing.b, init())
    await sequencing.void(sequencing.b, 0)
    assert await sequencing.records("txns") == before
    assert await status_of(sequencing, batch(pair, 0)) is BatchStatus.OK


async def test_an_init_ends_what_is_ongoing(sequencing: Sequencing) -> None:
    pair = await initialise(sequencing)
    await write(sequencing, pair, partitions=(0, 1))
    change = await ended(sequencing, init())
    assert change.pair == raised(pair)
    assert change.ended == pair
    assert change.last is None
    assert [(row.partition.partition, row.base_offset) for row in change.markers] == [
        (0, 1),
        (1, 1),
    ]
    assert await status_of(sequencing, batch(pair, 1)) is BatchStatus.FENCED
    record = (await sequencing.records("txns"))["i:x"]
    assert (record["ongoing"], record["part_count"], record["serial"]) == (False, 0, 1)
    assert await parts_of(sequencing) is None


async def test_ids_are_limited(sequencing: Sequencing) -> None:
    sequencing.sequencer.transaction_limits = TransactionLimits(ids=1)
    await initialise(sequencing)
    assert await entry(sequencing, sequencing.a, init(each="y")) == (TOO_MANY, None)
    assert (await entry(sequencing, sequencing.a, init()))[0] is OK


async def test_the_last_epoch_is_followed_by_another_producer(sequencing: Sequencing) -> None:
    pair = await initialise(sequencing)
    await set_fields(sequencing, epoch=32_766)
    last = ProducerPair(pair.producer_id, 32_766)
    await write(sequencing, last)
    change = await ended(sequencing, end(last))
    assert (change.pair, change.ended) == (ProducerPair(CANDIDATE, 0), last)
    found = await entry(sequencing, sequencing.a, end(last))
    assert found == (DONE, TransactionChange(ProducerPair(CANDIDATE, 0)))


# Batches ---------------------------------------------------------------------------------------


async def test_only_the_owner_may_write(sequencing: Sequencing) -> None:
    pair = await initialise(sequencing)
    other = ProducerPair(pair.producer_id + 1, 0)
    assert await status_of(sequencing, batch(pair, 0, each="y")) is (
        BatchStatus.UNKNOWN_TRANSACTIONAL_ID
    )
    assert await status_of(sequencing, batch(raised(pair), 0)) is BatchStatus.FENCED
    assert await status_of(sequencing, batch(other, 0)) is BatchStatus.UNKNOWN_TRANSACTIONAL_ID
    assert await status_of(sequencing, batch(pair, 0)) is BatchStatus.OK


async def test_a_duplicate_is_one_after_the_end_too(sequencing: Sequencing) -> None:
    pair = await initialise(sequencing)
    await write(sequencing, pair)
    await ended(sequencing, end(pair))
    answer = await sequencing.batch(sequencing.b, batch(pair, 0))
    assert answer == BatchAnswer(BatchStatus.DUPLICATE, 0)
    assert await status_of(sequencing, batch(pair, 1)) is BatchStatus.FENCED


async def test_a_sequence_of_an_earlier_transaction_is_no_duplicate(sequencing: Sequencing) -> None:
    """librdkafka may give the sequence of a dropped record to another record."""
    pair = await initialise(sequencing)
    for sequence in range(2):
        await add(sequencing, pair, 0)
        await write(sequencing, pair, sequence=sequence, version=V1)
        await ended(sequencing, end(pair, commit=False, version=V1))
    await add(sequencing, pair, 0)
    for reused in (batch(pair, 1, version=V1), batch(pair, 1, version=V1, records=2)):
        assert await status_of(sequencing, reused) is BatchStatus.REUSED_SEQUENCE
    assert await status_of(sequencing, batch(pair, 3, version=V1)) is BatchStatus.OUT_OF_ORDER
    await write(sequencing, pair, sequence=2, version=V1)
    assert await status_of(sequencing, batch(pair, 2, version=V1)) is BatchStatus.DUPLICATE
    assert await status_of(sequencing, batch(pair, 0, version=V1)) is BatchStatus.REUSED_SEQUENCE
    late = batch(pair, 1, version=V1, records=2)
    assert await status_of(sequencing, late) is BatchStatus.OUT_OF_ORDER


async def test_a_forgotten_duplicate_may_be_of_an_earlier_transaction(
    sequencing: Sequencing,
) -> None:
    pair = await initialise(sequencing)
    await add(sequencing, pair, 0)
    for sequence in range(7):
        await write(sequencing, pair, sequence=sequence, version=V1)
    assert await status_of(sequencing, batch(pair, 2, version=V1)) is BatchStatus.DUPLICATE
    assert await status_of(sequencing, batch(pair, 1, version=V1)) is BatchStatus.OUT_OF_ORDER


async def test_nothing_is_accepted_while_an_entry_is_open(sequencing: Sequencing) -> None:
    pair = await initialise(sequencing)
    await write(sequencing, pair)
    await entry(sequencing, sequencing.b, end(pair))
    for writer in (sequencing.a, sequencing.b):
        assert (await sequencing.batch(writer, batch(pair, 1))).status is BatchStatus.WAIT
        assert (await entry(sequencing, writer, end(pair)))[0] is WAIT
        assert (await entry(sequencing, writer, init()))[0] is WAIT
    added = await sequencing.sequencer.add_to_transaction(1, "x", pair)
    assert added is WAIT


async def test_a_version_1_batch_must_be_in_an_added_partition(sequencing: Sequencing) -> None:
    pair = await initialise(sequencing)
    early = batch(pair, 0, version=V1)
    assert await status_of(sequencing, early) is BatchStatus.INVALID_STATE
    await add(sequencing, pair, 1)
    assert await status_of(sequencing, early) is BatchStatus.INVALID_STATE
    await add(sequencing, pair, 0)
    assert await status_of(sequencing, early) is BatchStatus.OK


async def test_partitions_are_limited(sequencing: Sequencing) -> None:
    sequencing.sequencer.transaction_limits = TransactionLimits(partitions=1)
    pair = await initialise(sequencing)
    await write(sequencing, pair)
    refused = await status_of(sequencing, batch(pair, 0), partition=1)
    assert refused is BatchStatus.TOO_MANY_PARTITIONS
    assert await status_of(sequencing, batch(pair, 1)) is BatchStatus.OK
    part = TransactionPart("t", sequencing.topic_ids["t"], 1)
    added = await sequencing.sequencer.add_to_transaction(1, "x", pair, parts=[part])
    assert added is TOO_MANY


async def test_names_in_all_transactions_are_limited(sequencing: Sequencing) -> None:
    sequencing.sequencer.transaction_limits = TransactionLimits(name_bytes=1)
    pair = await initialise(sequencing)
    await write(sequencing, pair)
    other = await initialise(sequencing, each="y")
    part = TransactionPart("t", sequencing.topic_ids["t"], 1)
    add_part = sequencing.sequencer.add_to_transaction
    assert await add_part(1, "y", other, parts=[part]) is TOO_MANY
    assert await add_part(1, "y", other, groups=["g"]) is TOO_MANY
    refused = await status_of(sequencing, batch(other, 0, each="y"), partition=1)
    assert refused is BatchStatus.TOO_MANY_PARTITIONS
    assert await status_of(sequencing, batch(pair, 1)) is BatchStatus.OK
    assert await sequencing.publish(sequencing.a) is PublishStatus.VISIBLE
    await ended(sequencing, end(pair))
    assert await add_part(1, "y", other, parts=[part]) is OK


# End -------------------------------------------------------------------------------------------


async def test_an_end_has_a_marker_in_each_partition(sequencing: Sequencing) -> None:
    pair = await initialise(sequencing)
    await write(sequencing, pair, partitions=(0, 1))
    found = await sequencing.ask(
        sequencing.a, {("t", 1): [WantedBatch(3, "", -1, -1)]}, [end(pair)]
    )
    change = found.changes[0]
    assert (change.pair, change.last, change.ended) == (raised(pair), pair, pair)
    places = [(row.partition.partition, row.base_offset, row.hw_stamp) for row in change.markers]
    assert places == [(0, 1, 1), (1, 1, 1)]
    assert found.batches[0][0] == BatchAnswer(BatchStatus.OK, 2)
    assert list(found.hw_stamps) == [1]
    await sequencing.publish(sequencing.a)
    assert (await sequencing.records("partitions"))[field_of(sequencing, 1)]["visible_end"] == 5
    assert (await sequencing.records("partitions"))[field_of(sequencing, 0)]["visible_end"] == 2


async def test_the_next_transaction_begins_at_sequence_0(sequencing: Sequencing) -> None:
    pair = await initialise(sequencing)
    await write(sequencing, pair)
    change = await ended(sequencing, end(pair))
    await write(sequencing, change.pair)
    assert (await ended(sequencing, end(change.pair, commit=False))).pair == raised(pair, 2)


async def test_a_void_end_changes_nothing(sequencing: Sequencing) -> None:
    pair = await initialise(sequencing)
    await write(sequencing, pair)
    before = await sequencing.records("txns")
    await entry(sequencing, sequencing.b, end(pair))
    await sequencing.void(sequencing.b, 0)
    assert await sequencing.records("txns") == before
    change = await ended(sequencing, end(pair))
    assert [row.base_offset for row in change.markers] == [2]


async def test_a_marker_depends_on_all_that_is_open_before(sequencing: Sequencing) -> None:
    pair = await initialise(sequencing)
    await write(sequencing, pair)
    await sequencing.batch(sequencing.b, WantedBatch(1, "", -1, -1))
    assert (await entry(sequencing, sequencing.a, end(pair)))[0] is OK
    assert await sequencing.publish(sequencing.a) is PublishStatus.DECIDED
    assert await sequencing.publish(sequencing.b) is PublishStatus.VISIBLE
    assert (await sequencing.records("txns"))["i:x"]["ongoing"] is False


async def test_a_commit_waits_for_its_batches_at_other_writers(sequencing: Sequencing) -> None:
    pair = await initialise(sequencing)
    await sequencing.batch(sequencing.b, batch(pair, 0))
    assert await entry(sequencing, sequencing.a, end(pair)) == (WAIT, None)
    assert (await entry(sequencing, sequencing.a, end(pair, commit=False)))[0] is OK


@pytest.mark.parametrize("commit", [True, False])
async def test_a_repeated_end_is_told_what_happened(sequencing: Sequencing, commit: bool) -> None:
    pair = await initialise(sequencing)
    await write(sequencing, pair)
    await ended(sequencing, end(pair, commit=commit))
    again = await entry(sequencing, sequencing.b, end(pair, commit=commit))
    assert again == (DONE, TransactionChange(raised(pair)))
    other = await entry(sequencing, sequencing.b, end(pair, commit=not commit))
    assert other == (INVALID_STATE, None)


async def test_an_end_of_nothing(sequencing: Sequencing) -> None:
    pair = await initialise(sequencing)
    assert await entry(sequencing, sequencing.a, end(pair)) == (INVALID_STATE, None)
    change = await ended(sequencing, end(pair, commit=False))
    assert (change.pair, change.markers) == (raised(pair), ())


async def test_an_end_by_the_server_is_abortable(sequencing: Sequencing) -> None:
    pair = await initialise(sequencing)
    await write(sequencing, pair)
    change = await ended(sequencing, end(pair, commit=False, by=EndedBy.SERVER, serial=0))
    assert change.pair == raised(pair)
    assert await status_of(sequencing, batch(pair, 1)) is BatchStatus.ABORTABLE
    assert await entry(sequencing, sequencing.a, end(pair)) == (ABORTABLE, None)
    aborted = await entry(sequencing, sequencing.a, end(pair, commit=False))
    assert aborted == (DONE, TransactionChange(raised(pair)))
    assert await entry(sequencing, sequencing.a, end(pair, version=V1)) == (ABORTABLE, None)
    of_version_1 = await entry(sequencing, sequencing.a, end(pair, commit=False, version=V1))
    assert of_version_1 == (DONE, TransactionChange(pair))
    assert await entry(sequencing, sequencing.a, init(pair)) == (
        DONE,
        TransactionChange(raised(pair)),
    )


async def test_a_deleted_topic_gets_no_marker(sequencing: Sequencing) -> None:
    pair = await initialise(sequencing)
    await write(sequencing, pair)
    await sequencing.control(sequencing.b, "delete", "t")
    assert await entry(sequencing, sequencing.a, end(pair)) == (WAIT, None)
    await sequencing.publish(sequencing.b)
    change = await ended(sequencing, end(pair))
    assert change.markers == ()


async def test_a_topic_deleted_in_the_same_segment_gets_no_marker(sequencing: Sequencing) -> None:
    pair = await initialise(sequencing)
    await write(sequencing, pair)
    found = await sequencing.ask(
        sequencing.a, control=[end(pair), sequencing.wanted("delete", "t")]
    )
    assert list(found.fact_statuses) == [OK, OK]
    assert found.changes[0].markers == ()
