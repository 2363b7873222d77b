"""Apache Kafka's own tools, on the shared broker."""

import pytest

from bucketlog.embedded import EmbeddedCluster
from bucketlog.errors import ConfigurationError
from tests.components import Components
from tests.scenarios.kafka_tools import KafkaTools


@pytest.fixture(scope="module")
def tools(broker: EmbeddedCluster, components: Components) -> KafkaTools:
    try:
        tools = KafkaTools(broker.bootstrap)
    except ConfigurationError as error:
        components.missing("Apache Kafka's tools", error.remedy)
        raise
    components.took_part("Apache Kafka's tools", tools.version)
    return tools
