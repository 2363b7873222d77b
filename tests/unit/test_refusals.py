"""What clients are told about a batch that the sequencer refuses."""

from typing import cast

import pytest

from bucketlog.log_format.batch import BatchHeader
from bucketlog.log_format.model import TopicId, TopicIdPartition
from bucketlog.metadata.sequencer.requests import BatchAnswer, BatchStatus
from bucketlog.stateless_broker.produce.intake import PendingBatch, ProduceCall
from bucketlog.stateless_broker.produce.refusals import refused
from bucketlog.stateless_broker.produce.refused_batches import RefusedBatches

BATCH = PendingBatch(
    "orders",
    TopicIdPartition(TopicId(bytes(16)), 3),
    memoryview(b""),
    cast(BatchHeader, None),
    cast(ProduceCall, None),
    0,
)


@pytest.mark.parametrize("is_newest", [True, False])
@pytest.mark.parametrize(
    "status",
    [BatchStatus.FENCED, BatchStatus.TOO_MANY_PRODUCERS, BatchStatus.UNKNOWN_TOPIC],
)
def test_a_refusal_names_topic_and_partition(status: BatchStatus, is_newest: bool) -> None:
    outcome = refused(BATCH, BatchAnswer(status, -1), RefusedBatches(), is_newest=is_newest)
    assert (outcome.message or "").startswith("orders-3: ")
