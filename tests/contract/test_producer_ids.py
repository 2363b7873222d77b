"""Which producer ids `reserve` accepts, on a real server."""

from bucketlog.log_format.model import TopicId, TopicIdPartition
from bucketlog.metadata.fold import LogState, PartitionState, TopicState
from bucketlog.metadata.producers import ProducedBatch, ProducerTable
from bucketlog.metadata.sequencer.requests import BatchAnswer, BatchStatus
from bucketlog.tiered_storage.keys import EPOCH_MAX
from tests.servers.sequencing import Sequencing, produced

UNASSIGNED = BatchAnswer(BatchStatus.UNASSIGNED_PRODUCER, -1)


def ok(base_offset: int) -> BatchAnswer:
    return BatchAnswer(BatchStatus.OK, base_offset)


async def test_producer_ids_beyond_a_double_are_told_apart(fresh: Sequencing) -> None:
    await fresh.activate(EPOCH_MAX)
    writer = await fresh.writer()
    await fresh.control(writer, "create", "t", 1)
    await fresh.publish(writer)
    last = await fresh.sequencer.producer_ids(EPOCH_MAX, 100) + 99
    assert last > 2**60
    assert await fresh.batch(writer, produced(last, 0)) == ok(0)
    assert await fresh.batch(writer, produced(last - 1, 0)) == ok(1)
    assert (await fresh.batch(writer, produced(last, 0))).base_offset == 0
    assert await fresh.batch(writer, produced(last + 1, 0)) == UNASSIGNED
    assert await fresh.batch(writer, produced(last - (1 << 40), 0)) == ok(2), "an earlier epoch's"


async def test_a_producer_id_is_accepted_once_it_was_handed_out(sequencing: Sequencing) -> None:
    first = 1 << 40
    assert await sequencing.batch(sequencing.a, produced(first, 0)) == UNASSIGNED
    assert await sequencing.sequencer.producer_ids(1, 10) == first
    for number in range(10):
        assert await sequencing.batch(sequencing.a, produced(first + number, 0)) == ok(number)
    for absurd in (first + 10, 2 * first - 1, 2 * first, 2**53, 2**63 - 1):
        assert await sequencing.batch(sequencing.a, produced(absurd, 0)) == UNASSIGNED
        assert await sequencing.batch(sequencing.a, produced(absurd, 1)) == UNASSIGNED


async def test_producer_ids_of_earlier_epochs_are_accepted(sequencing: Sequencing) -> None:
    """A client may have got an id just before the epoch changed, and its counter is unknown."""
    before = await sequencing.sequencer.producer_ids(1, 1)
    await sequencing.activate(2)
    writer = await sequencing.writer()
    await sequencing.control(writer, "create", "t", 1)
    await sequencing.publish(writer)
    assert await sequencing.batch(writer, produced(before, 0)) == ok(0)
    assert await sequencing.batch(writer, produced(2 << 40, 0)) == UNASSIGNED


async def test_a_producer_whose_batches_are_in_the_log_is_known(sequencing: Sequencing) -> None:
    """Any id is accepted that was accepted before."""
    known, topic_id = 7 << 40, TopicId(b"t" * 16)
    partition = TopicIdPartition(topic_id, 0)
    rows = ProducerTable({known: [ProducedBatch(0, 0, 0, 0, 0)]})
    state = LogState()
    state.topics[topic_id] = TopicState(topic_id, "t", 1, {})
    state.partitions[partition] = PartitionState(1, producers=rows)
    await sequencing.activate(2, state)
    sequencing.topic_ids["t"] = topic_id
    writer = await sequencing.writer()
    assert await sequencing.batch(writer, produced(known, 1)) == ok(1)
    assert await sequencing.batch(writer, produced(known + 1, 0)) == UNASSIGNED
