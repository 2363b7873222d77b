"""Clients with some rights: two brokers of a cluster, and rules that a test grants.

At one broker, everybody is a super user; at the other, ACLs decide.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.metadata.acl_bindings import AclOperation, PatternType, Permission, ResourceType
from tests.rigs.patience import eventually
from tests.rigs.wire_client import WireClient
from tests.servers.broker_process import Start

TOPIC, GROUP, ID, CLUSTER = (
    ResourceType.TOPIC,
    ResourceType.GROUP,
    ResourceType.TRANSACTIONAL_ID,
    ResourceType.CLUSTER,
)
OK = ErrorCode.none
TOPIC_DENIED = ErrorCode.topic_authorization_failed
GROUP_DENIED = ErrorCode.group_authorization_failed
CLUSTER_DENIED = ErrorCode.cluster_authorization_failed
ID_DENIED = ErrorCode.transactional_id_authorization_failed
EVERYTHING = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}
NOT_SAID = -(2**31)
Rule = tuple[ResourceType, str, AclOperation]


class TwoBrokers:
    """`client` asks the broker at which ACLs decide."""

    def __init__(self, admin: WireClient, client: WireClient, node_id: int) -> None:
        self.admin, self.client = admin, client
        self.call = client.call
        self._node_id = node_id
        self._markers = count()

    def names(self, kind: int) -> list[str]:
        """Two groups (0) or transactional ids (1) that the broker of `client` coordinates."""
        found: list[str] = []
        for number in count():
            key = f"key-{number}"
            answer = self.admin.call(ApiKey.FIND_COORDINATOR, 3, key=key, key_type=kind)
            if answer.node_id == self._node_id:
                found.append(key)
            if len(found) == 2:
                break
        return found

    def grant(self, *rules: Rule) -> None:
        """From now on, everybody has these rights and no others."""
        self.admin.call(ApiKey.DELETE_ACLS, 3, filters=[EVERYTHING])
        marker = f"marker-{next(self._markers)}"
        creations = [
            {
                "resource_type": kind,
                "resource_name": name,
                "resource_pattern_type": PatternType.LITERAL,
                "principal": "User:ANONYMOUS",
                "host": "127.0.0.1",
                "operation": operation,
                "permission_type": Permission.ALLOW,
            }
            for kind, name, operation in (*rules, (TOPIC, marker, AclOperation.DESCRIBE))
        ]
        created = self.admin.call(ApiKey.CREATE_ACLS, 3, creations=creations)
        assert {each.error_code for each in created.results} == {OK}

        def is_here() -> bool:
            found = self.call(
                ApiKey.METADATA, 7, topics=[{"name": marker}], allow_auto_topic_creation=False
            )
            return bool(found.topics[0].error_code != TOPIC_DENIED)

        eventually(is_here, "the rules do not reach the other broker")


@contextmanager
def two_brokers(start: Start) -> Iterator[TwoBrokers]:
    """With the topic `t`."""
    more = {"transactions": "true", "transaction_two_phase_commit": "true"}
    first = start(authorization="true", super_users="User:ANONYMOUS", **more).wait_until_ready()
    second = start(authorization="true", **more).wait_until_ready()
    with WireClient(first.bootstrap) as admin, WireClient(second.bootstrap) as client:
        create_topics(admin, "t")
        yield TwoBrokers(admin, client, second.ready["node_id"])


def create_topics(client: WireClient, *names: str) -> Any:
    """The rows of the answer."""
    wanted = {"num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
    topics = [wanted | {"name": name} for name in names]
    return client.call(
        ApiKey.CREATE_TOPICS, 7, topics=topics, timeout=20_000, validate_only=False
    ).topics


def commit_values(group: str) -> dict[str, Any]:
    partition = {"partition_index": 0, "committed_offset": 0, "committed_metadata": ""}
    return {
        "group_id": group,
        "generation_id_or_member_epoch": -1,
        "member_id": "",
        "topics": [{"name": "t", "partitions": [partition]}],
    }


def code(rows: Any) -> ErrorCode:
    """Of the only partition of the only topic."""
    return ErrorCode(rows[0].partitions[0].error_code)
