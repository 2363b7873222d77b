"""The table of rejections matches Apache Kafka: each batch is sent to a Kafka broker."""

from pathlib import Path
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_format.wire.api_keys import ApiKey
from localstack.apache_kafka import running_kafka
from tests.models.validation_cases import CASES, Case
from tests.rigs.patience import eventually
from tests.rigs.wire_client import WireClient
from tests.servers.components import Components

pytestmark = pytest.mark.long

Answer = tuple[ErrorCode, tuple[int, ...]]
"""The error, and the rejected records that the response names."""
TOO_NEW = (ErrorCode.unknown_topic_or_partition, ErrorCode.not_leader_or_follower)


def offered(client: WireClient, topic: str, case: Case) -> Answer:
    rows = [{"name": topic, "partition_data": [{"index": 0, "records": case.sent_now()}]}]
    answer = client.call(ApiKey.PRODUCE, 8, acks=-1, timeout=10_000, topic_data=rows)
    (row,) = answer.responses[0].partition_responses
    return ErrorCode(row.error_code), tuple(one.batch_index for one in row.record_errors)


def create(bootstrap: str, topic: str, case: Case) -> None:
    """Create a topic. On a busy machine, Kafka may close the connection instead of answering."""
    configs = [{"name": name, "value": text} for name, text in case.configs.items()]
    wanted: dict[str, Any] = {"name": topic, "num_partitions": 1, "replication_factor": 1}

    def is_created() -> bool:
        try:
            with WireClient(bootstrap) as client:
                topics = [wanted | {"configs": configs}]
                answer = client.call(ApiKey.CREATE_TOPICS, 5, topics=topics)
        except ConnectionError:
            return False
        error = answer.topics[0].error_code
        created = (ErrorCode.none, ErrorCode.topic_already_exists)
        assert error in (*created, ErrorCode.invalid_replication_factor), answer
        return error in created

    eventually(is_created, "Kafka's controller does not create the topic")


def answer_of_leader(client: WireClient, topic: str, case: Case) -> Answer:
    """The first answer after the broker knows the new topic."""
    answers: list[Answer] = []

    def leads() -> bool:
        answers.append(offered(client, topic, case))
        return answers[-1][0] not in TOO_NEW

    eventually(leads)
    return answers[-1]


def test_kafka_answers_as_the_table_says(tmp_path: Path, components: Components) -> None:
    found = {}
    try:
        with running_kafka(tmp_path / "kafka") as kafka, WireClient(kafka.bootstrap) as client:
            components.took_part("Apache Kafka broker", kafka.version)
            for number, (name, case) in enumerate(CASES.items()):
                create(kafka.bootstrap, topic := f"t{number}", case)
                found[name] = answer_of_leader(client, topic, case)
    except ConfigurationError as error:
        components.missing("Apache Kafka", error.remedy)
    wanted = {name: (case.kafka, case.refused) for name, case in CASES.items()}
    assert {name: each for name, each in found.items() if each != wanted[name]} == {}
