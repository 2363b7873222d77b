"""`compression.type`: Apache Kafka stores the same codecs, and refuses the same batches."""

from itertools import product
from pathlib import Path

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.log_format.batch import Codec, read_header
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.stateless_broker.handlers.recompression import AS_SENT, CODECS
from localstack.apache_kafka import running_kafka
from tests.rigs.patience import eventually
from tests.rigs.wire_client import WireClient, build_batch, fetch_values
from tests.servers.components import Components
from tests.servers.lone_broker import lone_broker

pytestmark = pytest.mark.long

RECORDS = [(b"key %d" % number, b"value " * 100) for number in range(50)]
NOT_YET = (
    ErrorCode.unknown_topic_or_partition,
    ErrorCode.not_leader_or_follower,
    ErrorCode.invalid_replication_factor,
)
Stored = dict[tuple[str, str, int], str]


def stored_codecs(client: WireClient) -> Stored:
    """The stored codec, or the error, by topic codec, sent codec and `max.message.bytes`."""
    found: Stored = {}
    for name, sent, limit in product((AS_SENT, *CODECS), Codec, (5_000, 1_000_000)):
        topic = f"{name}-{sent}-{limit}"
        configs = {"compression.type": name, "max.message.bytes": str(limit)}
        create(client, topic, configs)
        found[name, sent.name, limit] = offered(client, topic, build_batch(RECORDS, codec=sent))
    return found


def create(client: WireClient, topic: str, configs: dict[str, str]) -> None:
    wanted = {
        "name": topic,
        "num_partitions": 1,
        "replication_factor": 1,
        "configs": [{"name": name, "value": value} for name, value in configs.items()],
    }

    def is_created() -> bool:
        answer = client.call(ApiKey.CREATE_TOPICS, 5, topics=[wanted], timeout=30_000)
        return answer.topics[0].error_code not in NOT_YET

    eventually(is_created, "the topic is not created")


def offered(client: WireClient, topic: str, batch: bytes) -> str:
    answers: list[ErrorCode] = []

    def is_answered() -> bool:
        rows = [{"name": topic, "partition_data": [{"index": 0, "records": batch}]}]
        answer = client.call(ApiKey.PRODUCE, 8, acks=-1, timeout=30_000, topic_data=rows)
        answers.append(ErrorCode(answer.responses[0].partition_responses[0].error_code))
        return answers[-1] not in NOT_YET

    eventually(is_answered, "no broker leads the partition")
    if answers[-1] is not ErrorCode.none:
        return answers[-1].name
    answer = client.call(ApiKey.FETCH, 11, **fetch_values(topic, {0: 0}))
    header = read_header(answer.responses[0].partitions[0].records)
    return Codec(header.codec).name


def test_kafka_stores_the_same(tmp_path: Path, components: Components) -> None:
    theirs: Stored = {}
    try:
        with running_kafka(tmp_path / "kafka") as kafka, WireClient(kafka.bootstrap) as client:
            components.took_part("Apache Kafka broker", kafka.version)
            theirs = stored_codecs(client)
    except ConfigurationError as error:
        components.missing("Apache Kafka", error.remedy)
    with lone_broker(tmp_path) as broker, WireClient(broker.bootstrap) as client:
        assert stored_codecs(client) == theirs
    assert {"message_too_large", *(codec.name for codec in Codec)} == set(theirs.values())
