"""What a Fetch keeps of its partitions while it waits."""

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.log_format.model import TopicIdPartition
from bucketlog.log_format.wire.fetch import (
    TOPIC_IDS_FROM,
    FetchedPartition,
    FetchPartitions,
    write_response,
)
from bucketlog.metadata.partition_log import PartitionLog
from bucketlog.stateless_broker.handlers.fetch_plan import (
    NOTHING,
    LogOffsets,
    PlannedPartitions,
    result_of,
)
from tests.models.indexes import topic_id
from tests.rigs.traced_memory import TracedMemory

ROWS = 10_000
BYTES_EACH_MAX = 60


def wanted(number: int) -> FetchedPartition:
    return FetchedPartition("t", topic_id(1), number, 0, 1000 * number, 10_000 + number)


def test_each_row_is_as_it_was_added() -> None:
    planned = PlannedPartitions(FetchPartitions(map(wanted, range(3))), committed_only=True)
    log = PartitionLog(TopicIdPartition(topic_id(1), 1))
    planned.add(ErrorCode.unknown_topic_or_partition)
    planned.add(ErrorCode.none, log)
    planned.add(ErrorCode.none, log)
    planned.fail(2, ErrorCode.offset_not_available)
    assert planned.has_logs
    assert planned.has_failed_reads
    assert list(planned.with_logs()) == [(1, log.partition), (2, log.partition)]
    rows = list(planned)
    assert len(planned) == len(rows) == 3
    assert [(row.topic, row.topic_id, row.number) for row in rows] == [
        ("t", topic_id(1), number) for number in range(3)
    ]
    assert [(row.fetch_offset, row.max_bytes) for row in rows] == [
        (1000 * number, 10_000 + number) for number in range(3)
    ]
    assert [(row.error, row.log, row.committed_only) for row in rows] == [
        (ErrorCode.unknown_topic_or_partition, None, False),
        (ErrorCode.none, log, True),
        (ErrorCode.offset_not_available, log, True),
    ]


def test_a_waiting_request_keeps_little_of_each_partition(traced_memory: TracedMemory) -> None:
    log = PartitionLog(TopicIdPartition(topic_id(1), 0))
    with traced_memory.measured() as found:
        partitions = FetchPartitions(map(wanted, range(ROWS))).each_once()
        planned = PlannedPartitions(partitions, committed_only=False)
        for _ in partitions:
            planned.add(ErrorCode.none, log)
    assert len(planned) == ROWS
    assert found.held < BYTES_EACH_MAX * ROWS


def test_a_partition_that_is_named_twice_has_its_first_place_and_its_last_values() -> None:
    rows = [wanted(0), wanted(1), wanted(0)._replace(fetch_offset=7), wanted(2)]
    assert list(FetchPartitions(rows).each_once()) == [rows[2], rows[1], rows[3]]


@pytest.mark.parametrize("version", [12, 18])
@pytest.mark.parametrize("name", ["t", "x" * 300, "\N{GRINNING FACE}" * 300])
def test_the_size_of_a_response_is_not_underestimated(version: int, name: str) -> None:
    """Each partition is in another topic than the one before."""
    topics = [name + "1", name + "2"]
    planned = PlannedPartitions(
        FetchPartitions(
            FetchedPartition(topics[number % 2], topic_id(number), number, -1, 0, 1)
            if version < TOPIC_IDS_FROM
            else FetchedPartition("", topic_id(number), number, -1, 0, 1)
            for number in range(100)
        ),
        committed_only=True,
    )
    for _ in planned.wanted:
        planned.add(ErrorCode.unknown_topic_or_partition)
    offsets = LogOffsets(-1, -1, -1)
    results = [result_of(part, offsets, NOTHING) for part in planned]
    size = sum(len(part) for part in write_response(version, ErrorCode.none, results))
    assert size <= planned.answer_bytes
