"""A broker's default for a topic config applies to what is written, and clients see it."""

from kio.schema.errors import ErrorCode

import bucketlog
from bucketlog.log_format.wire.api_keys import ApiKey
from tests.integration.kafka_requests import produce
from tests.rigs.wire_client import WireClient, build_batch
from tests.servers.broker_process import Start

NAME = "max.message.bytes"
SMALL, LARGE = build_batch([(None, bytes(1000))]), build_batch([(None, bytes(3000))])


def test_the_largest_batch(start: Start) -> None:
    broker = start(message_max_bytes="2000").wait_until_ready()
    with WireClient(broker.bootstrap) as client:
        topics = [
            {"name": "plain", "num_partitions": 1, "replication_factor": 1, "configs": []},
            {
                "name": "own",
                "num_partitions": 1,
                "replication_factor": 1,
                "configs": [{"name": NAME, "value": "4000"}],
            },
        ]
        created = client.call(ApiKey.CREATE_TOPICS, 5, topics=topics)
        assert [topic.error_code for topic in created.topics] == [ErrorCode.none] * 2
        assert produce(client, "plain", SMALL).error == ErrorCode.none
        assert produce(client, "plain", LARGE).error == ErrorCode.message_too_large
        assert produce(client, "own", LARGE).error == ErrorCode.none
        rows = [
            {"resource_type": 2, "resource_name": name, "configuration_keys": [NAME]}
            for name in ("plain", "own")
        ]
        answer = client.call(ApiKey.DESCRIBE_CONFIGS, 4, resources=rows, include_synonyms=True)
        shown = [
            [(each.name, each.value, each.source) for each in result.configs[0].synonyms]
            for result in answer.results
        ]
        name = "message.max.bytes"
        broker_and_kafka = [(name, "2000", 4), (name, "1048588", 5)]
        assert shown == [broker_and_kafka, [(NAME, "4000", 1), *broker_and_kafka]]
    with bucketlog.connect(broker.bootstrap) as log:
        assert log.topics.describe("plain").overrides == set()
        assert log.topics.describe("own").overrides == {NAME}
    broker.terminate()
