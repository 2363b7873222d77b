"""Every API and version, for a client without rights and for a super user.

Invariant: an API without a row in `EXPECTED` fails these tests. Whoever serves a new API says here
what a client without rights gets.
"""

import json
from dataclasses import fields, is_dataclass
from enum import Enum, auto
from pathlib import Path
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.served_versions import SERVED_VERSIONS
from tests.models.administration import ADMINISTRATIVE_OPERATIONS
from tests.models.sample_requests import Named
from tests.rigs.offered_apis import offered
from tests.rigs.wire_client import WireClient
from tests.scenarios.api_walk import leaf_codes, walk
from tests.servers.broker_process import Start

pytestmark = pytest.mark.long

NAME = "t"
"""Of the topic, the group, the transactional id and the user in all requests."""
AUTHORIZATION_ERRORS = {
    ErrorCode.topic_authorization_failed,
    ErrorCode.group_authorization_failed,
    ErrorCode.cluster_authorization_failed,
    ErrorCode.transactional_id_authorization_failed,
}


class Expected(Enum):
    """What a client without rights gets: an authorization error for everything that it names, a
    list without rows, such a list or an authorization error (if the version has a field for it), or
    an ordinary answer."""

    DENIED = auto()
    EMPTY = auto()
    EMPTY_OR_DENIED = auto()
    OPEN = auto()


EXPECTED = {
    ApiKey.PRODUCE: Expected.DENIED,
    ApiKey.FETCH: Expected.DENIED,
    ApiKey.LIST_OFFSETS: Expected.DENIED,
    ApiKey.METADATA: Expected.DENIED,
    ApiKey.OFFSET_COMMIT: Expected.DENIED,
    ApiKey.OFFSET_FETCH: Expected.DENIED,
    ApiKey.FIND_COORDINATOR: Expected.DENIED,
    ApiKey.JOIN_GROUP: Expected.DENIED,
    ApiKey.HEARTBEAT: Expected.DENIED,
    ApiKey.LEAVE_GROUP: Expected.DENIED,
    ApiKey.SYNC_GROUP: Expected.DENIED,
    ApiKey.DESCRIBE_GROUPS: Expected.DENIED,
    ApiKey.LIST_GROUPS: Expected.EMPTY,
    ApiKey.SASL_HANDSHAKE: Expected.OPEN,
    ApiKey.API_VERSIONS: Expected.OPEN,
    ApiKey.CREATE_TOPICS: Expected.DENIED,
    ApiKey.DELETE_TOPICS: Expected.DENIED,
    ApiKey.DELETE_RECORDS: Expected.DENIED,
    ApiKey.INIT_PRODUCER_ID: Expected.DENIED,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: Expected.DENIED,
    ApiKey.ADD_PARTITIONS_TO_TXN: Expected.DENIED,
    ApiKey.ADD_OFFSETS_TO_TXN: Expected.DENIED,
    ApiKey.END_TXN: Expected.DENIED,
    ApiKey.WRITE_TXN_MARKERS: Expected.DENIED,
    ApiKey.TXN_OFFSET_COMMIT: Expected.DENIED,
    ApiKey.DESCRIBE_ACLS: Expected.DENIED,
    ApiKey.CREATE_ACLS: Expected.DENIED,
    ApiKey.DELETE_ACLS: Expected.DENIED,
    ApiKey.DESCRIBE_CONFIGS: Expected.DENIED,
    ApiKey.ALTER_CONFIGS: Expected.DENIED,
    ApiKey.DESCRIBE_LOG_DIRS: Expected.EMPTY_OR_DENIED,
    ApiKey.SASL_AUTHENTICATE: Expected.OPEN,
    ApiKey.CREATE_PARTITIONS: Expected.DENIED,
    ApiKey.DELETE_GROUPS: Expected.DENIED,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: Expected.DENIED,
    ApiKey.ELECT_LEADERS: Expected.DENIED,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: Expected.DENIED,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: Expected.DENIED,
    ApiKey.OFFSET_DELETE: Expected.DENIED,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: Expected.DENIED,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: Expected.DENIED,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: Expected.DENIED,
    ApiKey.ALTER_CLIENT_QUOTAS: Expected.DENIED,
    # nobody without a login may ask: tests/integration/test_delegation_tokens.py
    ApiKey.CREATE_DELEGATION_TOKEN: Expected.OPEN,
    ApiKey.RENEW_DELEGATION_TOKEN: Expected.OPEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN: Expected.OPEN,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: Expected.OPEN,
    ApiKey.DESCRIBE_PRODUCERS: Expected.DENIED,
    ApiKey.DESCRIBE_TRANSACTIONS: Expected.DENIED,
    ApiKey.LIST_TRANSACTIONS: Expected.EMPTY,
    ApiKey.DESCRIBE_CLUSTER: Expected.OPEN,
    ApiKey.DESCRIBE_QUORUM: Expected.DENIED,
    ApiKey.UPDATE_FEATURES: Expected.DENIED,
    # as in Kafka, every client may send its metrics
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: Expected.OPEN,
    ApiKey.PUSH_TELEMETRY: Expected.OPEN,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: Expected.DENIED,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: Expected.DENIED,
    ApiKey.CONSUMER_GROUP_DESCRIBE: Expected.DENIED,
    ApiKey.LIST_CONFIG_RESOURCES: Expected.DENIED,
    ApiKey.SHARE_GROUP_HEARTBEAT: Expected.DENIED,
    ApiKey.SHARE_GROUP_DESCRIBE: Expected.DENIED,
    ApiKey.SHARE_FETCH: Expected.DENIED,
    ApiKey.SHARE_ACKNOWLEDGE: Expected.DENIED,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: Expected.DENIED,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: Expected.DENIED,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: Expected.DENIED,
}


def test_every_api_has_a_rule() -> None:
    assert EXPECTED.keys() == SERVED_VERSIONS.keys()


def rows(answer: Any) -> list[Any]:
    """The items of all lists that have fields."""
    return [
        each
        for field in fields(answer)
        if isinstance(found := getattr(answer, field.name), tuple)
        for each in found
        if is_dataclass(each)
    ]


def prepare(start: Start, transactional_id: str = NAME) -> Named:
    """Make the topic, the group and a transactional id, before there is an authorizer."""
    broker = start(transactions="true").wait_until_ready()
    with WireClient(broker.bootstrap) as client:
        wanted = {"name": NAME, "num_partitions": 1, "replication_factor": 1}
        row = wanted | {"assignments": [], "configs": []}
        made = client.call(
            ApiKey.CREATE_TOPICS, 7, topics=[row], timeout=20_000, validate_only=False
        )
        assert made.topics[0].error_code == ErrorCode.none
        client.call(
            ApiKey.OFFSET_COMMIT,
            7,
            group_id=NAME,
            generation_id_or_member_epoch=-1,
            member_id="",
            topics=[
                {
                    "name": NAME,
                    "partitions": [
                        {"partition_index": 0, "committed_offset": 0, "committed_metadata": ""}
                    ],
                }
            ],
        )
        client.call(
            ApiKey.INIT_PRODUCER_ID,
            4,
            transactional_id=transactional_id,
            transaction_timeout=20_000,
        )
        listed = client.call(ApiKey.LIST_GROUPS, 3)
        assert [each.group_id for each in listed.groups] == [NAME]
        transactions = client.call(ApiKey.LIST_TRANSACTIONS, 0)
        assert len(transactions.transaction_states) == 1
    broker.kill()
    return Named(NAME, made.topics[0].topic_id)


def problem(expected: Expected, answer: Any) -> str | None:
    codes = list(leaf_codes(answer))
    if expected is Expected.DENIED and not (codes and AUTHORIZATION_ERRORS.issuperset(codes)):
        return f"is not denied: {codes}"
    if expected is Expected.EMPTY and (rows(answer) or any(codes)):
        return f"is not empty: {answer}"
    if expected is Expected.EMPTY_OR_DENIED and (
        rows(answer) or not AUTHORIZATION_ERRORS.issuperset(codes)
    ):
        return f"is neither empty nor denied: {answer}"
    return None


def denials(file: Path) -> dict[str, set[str]]:
    """By API, the operations that the audit log says were denied."""
    found: dict[str, set[str]] = {}
    for line in file.read_text().splitlines():
        row = json.loads(line)
        if row["api"].endswith("DelegationToken"):
            continue  # refused without a login, before any right is asked for
        assert row["event"] == "denied", row
        assert row["principal"] == "User:ANONYMOUS"
        found.setdefault(row["api"], set()).add(row["operation"])
    return found


def check_audit(denied: dict[str, set[str]]) -> None:
    """Each denial has a line. Whatever asks for an administrator's right is audited as a change."""
    denying = (Expected.DENIED, Expected.EMPTY_OR_DENIED)
    refusing = {key.message_name for key, each in EXPECTED.items() if each in denying}
    assert denied.keys() == refusing
    names = {operation.name for operation in ADMINISTRATIVE_OPERATIONS}
    apis = offered().apis
    audited = {key.message_name for key, api in apis.items() if api.audit is not None}
    asking = {api for api, operations in denied.items() if operations & names}
    assert asking - audited == {"AddPartitionsToTxn"}, "brokers ask for CLUSTER_ACTION there"


def test_a_client_without_rights_gets_nothing(start: Start, tmp_path: Path) -> None:
    named = prepare(start)
    file = tmp_path / "audit.jsonl"
    limits = {"audit_refusals_per_client_per_s": "100000", "audit_refusals_per_s": "100000"}
    broker = start(
        authorization="true", transactions="true", audit_log=str(file), **limits
    ).wait_until_ready()
    found = {
        f"{key.message_name} {version}": wrong
        for key, version, answer in walk(broker.bootstrap, named)
        if (wrong := problem(EXPECTED[key], answer)) is not None
    }
    assert not found
    check_audit(denials(file))
    lines = file.read_text()
    with WireClient(broker.bootstrap) as client:
        everything = client.call(ApiKey.METADATA, 7, topics=None)
        assert everything.topics == ()
        assert client.call(ApiKey.LIST_GROUPS, 3).groups == ()
        assert client.call(ApiKey.LIST_TRANSACTIONS, 0).transaction_states == ()
        assert file.read_text() == lines, "a shorter list is no denial"
        missing = client.call(ApiKey.METADATA, 7, topics=[{"name": "new"}])
        assert missing.topics[0].error_code == ErrorCode.topic_authorization_failed
        for transactional_id in (NAME, "other"):
            answer = client.call(
                ApiKey.INIT_PRODUCER_ID,
                4,
                transactional_id=transactional_id,
                transaction_timeout=20_000,
            )
            assert answer.error_code == ErrorCode.transactional_id_authorization_failed
    again = start(authorization="true", super_users="User:ANONYMOUS").wait_until_ready()
    with WireClient(again.bootstrap) as client:
        topics = client.call(ApiKey.METADATA, 7, topics=None).topics
        assert [each.name for each in topics] == [NAME]


@pytest.mark.parametrize("authorization", ["true", "false"])
def test_a_super_user_gets_no_authorization_error(start: Start, authorization: str) -> None:
    """Nor does anybody without an authorizer. kio does not read the description of an id without a
    transaction, so the id has another name."""
    named = prepare(start, "other")
    more = {"super_users": "User:ANONYMOUS"} if authorization == "true" else {}
    broker = start(transactions="true", authorization=authorization, **more).wait_until_ready()
    for key, version, answer in walk(broker.bootstrap, named):
        codes = AUTHORIZATION_ERRORS.intersection(leaf_codes(answer))
        assert not codes, f"{key.message_name} {version}: {answer}"
