"""Apache Kafka's own tools, on the shared broker."""

import pytest

from bucketlog.embedded.cluster import EmbeddedCluster
from tests.servers.components import Components
from tests.servers.kafka_tools import KafkaTools, participating_tools


@pytest.fixture(scope="module")
def tools(broker: EmbeddedCluster, components: Components) -> KafkaTools:
    return participating_tools(broker.bootstrap, components)
