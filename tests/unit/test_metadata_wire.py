"""The hand-written Metadata encoder matches kio's in every version."""

from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire import metadata
from bucketlog.log_format.wire.messages.metadata import (
    METADATA,
    MetadataResponse,
    MetadataResponsePartition,
)
from bucketlog.log_format.wire.served_versions import SERVED_VERSIONS
from bucketlog.stateless_broker.network.messages import write_message

VERSIONS = list(SERVED_VERSIONS[METADATA.key].each())
TOPIC_ID = UUID(int=77)


def row(partition: int, leader: int) -> MetadataResponsePartition:
    return {
        "error_code": ErrorCode.none,
        "partition_index": partition,
        "leader_id": leader,
        "leader_epoch": 0,
        "replica_nodes": (leader,),
        "isr_nodes": (leader,),
        "offline_replicas": (),
    }


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("partitions", [0, 1, metadata.PARTITIONS_A_STEP, 1_201])
def test_the_bytes_are_kios(version: int, partitions: int) -> None:
    leaders = [partition % 3 for partition in range(partitions)]
    missing = None if version >= 12 else ""
    expected: MetadataResponse = {
        "brokers": [
            {"node_id": 1, "host": "one", "port": 9092, "rack": "zone"},
            {"node_id": 2, "host": "two", "port": 9093, "rack": None},
        ],
        "cluster_id": "cluster",
        "controller_id": 2,
        "topics": [
            {
                "error_code": ErrorCode.none,
                "name": "topic",
                "topic_id": TOPIC_ID,
                "is_internal": False,
                "partitions": [row(*each) for each in enumerate(leaders)],
                "topic_authorized_operations": metadata.NO_OPERATIONS_KNOWN,
            },
            {
                "error_code": ErrorCode.unknown_topic_id,
                "name": missing,
                "topic_id": None,
                "is_internal": False,
                "partitions": [],
                "topic_authorized_operations": metadata.NO_OPERATIONS_KNOWN,
            },
        ],
        "cluster_authorized_operations": metadata.NO_OPERATIONS_KNOWN,
        "error_code": ErrorCode.none,
    }
    brokers = [
        metadata.BrokerRow(1, "one", 9092, "zone"),
        metadata.BrokerRow(2, "two", 9093, None),
    ]
    unknown = ErrorCode.unknown_topic_id.value
    written = b"".join(
        [
            metadata.response_start(version, brokers, "cluster", 2, 2),
            metadata.topic_start(version, 0, "topic", TOPIC_ID.bytes, partitions),
            *metadata.partition_steps(version, iter(leaders)),
            metadata.topic_end(version),
            metadata.topic_start(version, unknown, None, None, 0),
            metadata.topic_end(version),
            metadata.response_end(version),
        ]
    )
    assert written == write_message(METADATA, version, expected)
