"""Transactions of many partitions with long names: scripts read a limited part of their lists."""

from collections.abc import Sequence

from bucketlog.log_format.model import TopicId
from bucketlog.metadata.sequencer.requests import BatchStatus, WantedBatch
from bucketlog.metadata.sequencer.transaction_requests import ProducerPair, TransactionPart
from tests.servers.sequencing import Sequencing
from tests.servers.transactional_ids import OK, V1, batch, initialise, parts_of

PARTITIONS = 1_000
NAME = "n" * 249


async def begin(sequencing: Sequencing, each: str) -> ProducerPair:
    """Begin a transaction of the largest number of partitions. The first is partition 0 of `t`."""
    pair = await initialise(sequencing, each=each)
    topic_id = TopicId(bytes(16))
    parts = [TransactionPart("t", sequencing.topic_ids["t"], 0)]
    parts += [TransactionPart(NAME, topic_id, number) for number in range(PARTITIONS - 1)]
    for _ in range(2):
        assert await sequencing.sequencer.add_to_transaction(1, each, pair, parts=parts) is OK
    return pair


async def statuses(sequencing: Sequencing, batches: Sequence[WantedBatch]) -> list[BatchStatus]:
    found = await sequencing.ask(sequencing.a, {("t", 0): batches})
    return [answer.status for answer in found.batches[0]]


async def test_partitions_are_in_a_list_of_their_own(sequencing: Sequencing) -> None:
    """Scripts that do not need the list then read small records."""
    await begin(sequencing, "x")
    record = (await sequencing.records("txns"))["i:x"]
    assert record["part_count"] == PARTITIONS
    assert len(str(record)) < 500
    listed = await parts_of(sequencing)
    assert listed is not None
    assert len(set(listed.split(";")[:-1])) == listed.count(";") == PARTITIONS


async def test_a_reservation_reads_few_long_lists(sequencing: Sequencing) -> None:
    """Batches that need more lists wait, and are the first of the next reservation."""
    batches = [batch(await begin(sequencing, each), 0, version=V1, each=each) for each in "vwxyz"]
    ok, wait = BatchStatus.OK, BatchStatus.WAIT
    assert await statuses(sequencing, batches) == [ok] * 4 + [wait]
    assert await statuses(sequencing, batches[4:]) == [ok]
