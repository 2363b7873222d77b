"""What clients hear of their rights if they ask for it (KIP-430), at a broker without ACLs.

With ACLs, `test_rights_on_topics.py` and `test_rights_on_groups.py` check the bits.
"""

from typing import Any

from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclOperation

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.rigs.patience import PATIENCE_S, eventually
from tests.rigs.rights import NOT_SAID, create_topics
from tests.rigs.wire_client import WireClient
from tests.servers.broker_process import Start

TOPIC_BITS, GROUP_BITS, CLUSTER_BITS = 3576, 3400, 8096
"""All operations that Kafka's AclEntry.supportedOperations has for the resource."""


def described_group(client: WireClient, *, is_asked: bool) -> Any:
    """Once the broker coordinates the group."""
    found: list[Any] = []

    def answers() -> bool:
        found[:] = client.call(
            ApiKey.DESCRIBE_GROUPS, 5, groups=["g"], include_authorized_operations=is_asked
        ).groups
        return bool(found[0].error_code == 0)

    eventually(answers, lambda: found)
    return found[0]


def test_without_acls_everything_is_allowed(start: Start) -> None:
    broker = start().wait_until_ready()
    with WireClient(broker.bootstrap) as client:
        create_topics(client, "t")
        for is_asked in (False, True):
            found = client.call(
                ApiKey.METADATA,
                8,
                topics=[{"name": "t"}],
                allow_auto_topic_creation=False,
                include_topic_authorized_operations=is_asked,
                include_cluster_authorized_operations=is_asked,
            )
            (topic,) = found.topics
            group = described_group(client, is_asked=is_asked)
            bits = (
                topic.topic_authorized_operations,
                found.cluster_authorized_operations,
                group.authorized_operations,
            )
            wanted = (TOPIC_BITS, CLUSTER_BITS, GROUP_BITS)
            assert bits == (wanted if is_asked else (NOT_SAID,) * 3)

    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    asked = {"include_authorized_operations": True, "request_timeout": PATIENCE_S}
    cluster = admin.describe_cluster(**asked).result(PATIENCE_S)
    topics = admin.describe_topics(TopicCollection(["t"]), **asked)
    assert AclOperation.IDEMPOTENT_WRITE in cluster.authorized_operations
    assert AclOperation.WRITE in topics["t"].result(PATIENCE_S).authorized_operations
