"""Apache Kafka's own tools, on the shared broker."""

import pytest

from bucketlog.embedded.cluster import EmbeddedCluster
from bucketlog.log_format.errors import ConfigurationError
from tests.servers.components import Components
from tests.servers.kafka_tools import KafkaTools


@pytest.fixture(scope="module")
def tools(broker: EmbeddedCluster, components: Components) -> KafkaTools:
    try:
        tools = KafkaTools(broker.bootstrap)
    except ConfigurationError as error:
        components.missing("Apache Kafka's tools", error.remedy)
        raise
    components.took_part("Apache Kafka's tools", tools.version)
    return tools
