"""Changes of settings are answered as Apache Kafka answers them."""

from pathlib import Path

import pytest

from bucketlog.log_format.errors import ConfigurationError
from localstack.apache_kafka import running_kafka
from tests.rigs.wire_client import WireClient
from tests.scenarios.settings_comparison import Answer, answers, problems
from tests.servers.components import Components
from tests.servers.lone_broker import lone_broker

pytestmark = pytest.mark.long


def test_the_answers_are_kafkas(tmp_path: Path, components: Components) -> None:
    theirs: dict[str, Answer] = {}
    try:
        with running_kafka(tmp_path / "kafka") as kafka, WireClient(kafka.bootstrap) as client:
            components.took_part("Apache Kafka broker", kafka.version)
            theirs = answers(client)
    except ConfigurationError as error:
        components.missing("Apache Kafka", error.remedy)
    with lone_broker(tmp_path, node_id="1") as broker, WireClient(broker.bootstrap) as client:
        assert problems(theirs, answers(client)) == []
