"""Which APIs the audit log has.

Invariant: an API without a rule for the audit log, and without a reason here, fails these tests.
Whoever serves a new API writes a rule, or says here why the API needs none.
"""

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.served_versions import OWN_CODECS
from bucketlog.metadata.acl_bindings import AclOperation
from bucketlog.stateless_broker.authorization.needs import NeedsCluster
from tests.models.administration import ADMINISTRATIVE_OPERATIONS
from tests.rigs.offered_apis import offered

READS = "changes nothing"
MEMBER = "a member of a group, or a consumer, sends it"
PRODUCER = "a producer sends it"
WITHOUT_RULE = {
    ApiKey.LIST_OFFSETS: READS,
    ApiKey.METADATA: "its handler audits the topics that it creates, after the response",
    ApiKey.OFFSET_COMMIT: MEMBER,
    ApiKey.OFFSET_FETCH: READS,
    ApiKey.FIND_COORDINATOR: READS,
    ApiKey.JOIN_GROUP: MEMBER,
    ApiKey.HEARTBEAT: MEMBER,
    ApiKey.LEAVE_GROUP: MEMBER,
    ApiKey.SYNC_GROUP: MEMBER,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: MEMBER,
    ApiKey.CONSUMER_GROUP_DESCRIBE: READS,
    ApiKey.SHARE_GROUP_HEARTBEAT: MEMBER,
    ApiKey.SHARE_GROUP_DESCRIBE: READS,
    ApiKey.SHARE_FETCH: MEMBER,
    ApiKey.SHARE_ACKNOWLEDGE: MEMBER,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: READS,
    ApiKey.DESCRIBE_GROUPS: READS,
    ApiKey.LIST_GROUPS: READS,
    ApiKey.SASL_HANDSHAKE: "a login has lines of its own",
    ApiKey.SASL_AUTHENTICATE: "a login has lines of its own",
    ApiKey.API_VERSIONS: READS,
    ApiKey.INIT_PRODUCER_ID: PRODUCER,
    ApiKey.ADD_PARTITIONS_TO_TXN: PRODUCER,
    ApiKey.ADD_OFFSETS_TO_TXN: PRODUCER,
    ApiKey.END_TXN: PRODUCER,
    ApiKey.TXN_OFFSET_COMMIT: PRODUCER,
    ApiKey.DESCRIBE_ACLS: READS,
    ApiKey.DESCRIBE_CONFIGS: READS,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: READS,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: READS,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: READS,
    ApiKey.DESCRIBE_PRODUCERS: READS,
    ApiKey.DESCRIBE_TRANSACTIONS: READS,
    ApiKey.LIST_TRANSACTIONS: READS,
    ApiKey.DESCRIBE_CLUSTER: READS,
    ApiKey.DESCRIBE_QUORUM: READS,
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: READS,
    ApiKey.PUSH_TELEMETRY: "metrics of a client: nothing of the log",
    ApiKey.DESCRIBE_LOG_DIRS: READS,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: READS,
    ApiKey.LIST_CONFIG_RESOURCES: READS,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: READS,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: READS,
}
APIS = offered().apis


def test_each_api_has_a_rule_or_a_reason() -> None:
    without = {key for key, api in APIS.items() if api.audit is None}
    assert without == WITHOUT_RULE.keys()
    assert {ApiKey.PRODUCE, ApiKey.FETCH} == OWN_CODECS, "records are not audited"


def test_each_right_of_administrators_on_the_cluster_has_a_rule() -> None:
    """`tests/integration/test_access_rules.py` checks the rights that handlers ask for."""
    found = {
        key: api.audit
        for key, api in APIS.items()
        if isinstance(api.needs, NeedsCluster)
        and ADMINISTRATIVE_OPERATIONS.intersection(api.needs.operations)
    }
    assert AclOperation.CLUSTER_ACTION in ADMINISTRATIVE_OPERATIONS
    assert found.keys() >= {ApiKey.CREATE_ACLS, ApiKey.WRITE_TXN_MARKERS}
    assert all(found.values())
