"""The APIs that brokers serve, with their versions: the one table of them. The APIs of transactions
are served only if transactions are enabled.

`scripts/messages.py` generates the typed messages from it. The dispatcher refuses everything else.
"""

from collections.abc import Mapping
from typing import NamedTuple

from bucketlog.log_format.wire import fetch, produce
from bucketlog.log_format.wire.api_keys import ApiKey


class Versions(NamedTuple):
    """The first and the last version, both included."""

    first: int
    last: int

    def each(self) -> range:
        return range(self.first, self.last + 1)


SERVED_VERSIONS: Mapping[ApiKey, Versions] = {
    ApiKey.PRODUCE: Versions(produce.MIN_VERSION, produce.MAX_VERSION),
    ApiKey.FETCH: Versions(fetch.MIN_VERSION, fetch.MAX_VERSION),
    ApiKey.LIST_OFFSETS: Versions(1, 11),
    ApiKey.METADATA: Versions(0, 13),
    ApiKey.OFFSET_COMMIT: Versions(2, 10),
    ApiKey.OFFSET_FETCH: Versions(1, 10),
    ApiKey.FIND_COORDINATOR: Versions(0, 6),
    ApiKey.JOIN_GROUP: Versions(0, 9),
    ApiKey.HEARTBEAT: Versions(0, 4),
    ApiKey.LEAVE_GROUP: Versions(0, 5),
    ApiKey.SYNC_GROUP: Versions(0, 5),
    ApiKey.DESCRIBE_GROUPS: Versions(0, 6),
    ApiKey.LIST_GROUPS: Versions(0, 5),
    ApiKey.SASL_HANDSHAKE: Versions(1, 1),
    ApiKey.API_VERSIONS: Versions(0, 4),
    ApiKey.CREATE_TOPICS: Versions(2, 7),
    ApiKey.DELETE_TOPICS: Versions(1, 6),
    ApiKey.DELETE_RECORDS: Versions(0, 2),
    ApiKey.INIT_PRODUCER_ID: Versions(0, 6),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: Versions(2, 4),
    ApiKey.ADD_PARTITIONS_TO_TXN: Versions(0, 5),
    ApiKey.ADD_OFFSETS_TO_TXN: Versions(0, 4),
    ApiKey.END_TXN: Versions(0, 5),
    ApiKey.WRITE_TXN_MARKERS: Versions(1, 1),
    ApiKey.TXN_OFFSET_COMMIT: Versions(0, 5),
    ApiKey.DESCRIBE_ACLS: Versions(1, 3),
    ApiKey.CREATE_ACLS: Versions(1, 3),
    ApiKey.DELETE_ACLS: Versions(1, 3),
    ApiKey.DESCRIBE_CONFIGS: Versions(1, 4),
    ApiKey.ALTER_CONFIGS: Versions(0, 2),
    ApiKey.DESCRIBE_LOG_DIRS: Versions(1, 5),
    ApiKey.SASL_AUTHENTICATE: Versions(0, 2),
    ApiKey.CREATE_PARTITIONS: Versions(0, 3),
    ApiKey.CREATE_DELEGATION_TOKEN: Versions(1, 3),
    ApiKey.RENEW_DELEGATION_TOKEN: Versions(1, 2),
    ApiKey.EXPIRE_DELEGATION_TOKEN: Versions(1, 2),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: Versions(1, 3),
    ApiKey.DELETE_GROUPS: Versions(0, 2),
    ApiKey.ELECT_LEADERS: Versions(0, 2),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: Versions(0, 1),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: Versions(0, 1),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: Versions(0, 0),
    ApiKey.OFFSET_DELETE: Versions(0, 0),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: Versions(0, 1),
    ApiKey.ALTER_CLIENT_QUOTAS: Versions(0, 1),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: Versions(0, 0),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: Versions(0, 0),
    ApiKey.DESCRIBE_QUORUM: Versions(0, 2),
    ApiKey.UPDATE_FEATURES: Versions(0, 2),
    ApiKey.DESCRIBE_CLUSTER: Versions(0, 2),
    ApiKey.DESCRIBE_PRODUCERS: Versions(0, 0),
    ApiKey.DESCRIBE_TRANSACTIONS: Versions(0, 0),
    ApiKey.LIST_TRANSACTIONS: Versions(0, 1),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: Versions(0, 1),
    ApiKey.CONSUMER_GROUP_DESCRIBE: Versions(0, 1),
    ApiKey.LIST_CONFIG_RESOURCES: Versions(0, 1),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: Versions(0, 0),
    ApiKey.SHARE_GROUP_HEARTBEAT: Versions(1, 1),
    ApiKey.SHARE_GROUP_DESCRIBE: Versions(1, 1),
    ApiKey.SHARE_FETCH: Versions(1, 2),
    ApiKey.SHARE_ACKNOWLEDGE: Versions(1, 2),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: Versions(0, 1),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: Versions(0, 0),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: Versions(0, 0),
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: Versions(0, 0),
    ApiKey.PUSH_TELEMETRY: Versions(0, 0),
}
OWN_CODECS = frozenset({ApiKey.PRODUCE, ApiKey.FETCH})
"""Written by hand in this package; all other messages are kio's."""
