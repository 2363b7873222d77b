"""Which ListOffsets requests ask the sequencer, and which the view alone answers."""

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.stateless_broker.handlers.list_offsets import (
    EARLIEST,
    EARLIEST_LOCAL,
    LATEST,
    MAX_TIMESTAMP,
)
from tests.models.partition_batches import PARTITION, Planned, made
from tests.rigs.tiered_log import TOPIC, TieredLog


@pytest.fixture
def log() -> TieredLog:
    log = TieredLog()
    log.append(made([Planned(0, 3, 7)]))
    return log


@pytest.mark.parametrize(("timestamp", "offset"), [(EARLIEST, 0), (EARLIEST_LOCAL, 0)])
async def test_the_view_alone_answers(log: TieredLog, timestamp: int, offset: int) -> None:
    assert await log.list_offset(timestamp) == (ErrorCode.none, offset, -1)
    assert log.catch_ups == 0


@pytest.mark.parametrize(("timestamp", "offset"), [(LATEST, 3), (MAX_TIMESTAMP, 2), (7, 2)])
async def test_the_newest_records_are_asked_for(
    log: TieredLog, timestamp: int, offset: int
) -> None:
    assert (await log.list_offset(timestamp))[:2] == (ErrorCode.none, offset)
    assert log.catch_ups == 1


@pytest.mark.parametrize(("name", "number"), [("unknown", 0), (TOPIC, PARTITION.partition + 2)])
async def test_what_is_unknown_here_may_be_new(log: TieredLog, name: str, number: int) -> None:
    """Another broker may have created it."""
    error, _, _ = await log.list_offset(EARLIEST, name=name, number=number)
    assert error is ErrorCode.unknown_topic_or_partition
    assert log.catch_ups == 1
