"""What one tenant can see of another: a walk over all APIs and versions, the bucket, and Redis.

The other tenant has a topic, a group with offsets, a transactional id, a user, an ACL and a quota,
all with names that nobody else has. A client of the first tenant sends requests of every API and
version about names of its own, asks for lists of everything, and names what the other tenant has.
"""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from redis import Redis as SyncRedis

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.served_versions import SERVED_VERSIONS
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.location import open_sync_bucket
from tests.models.sample_requests import Named, sample_request
from tests.rigs.users import add_user
from tests.rigs.wire_client import (
    WireClient,
    decode_response,
    encode_request,
    request_schema,
    supported_versions,
    transactional_values,
)
from tests.scenarios.api_walk import answers, leaf_codes
from tests.scenarios.round_trip import create_topic

SECRET = "hidden-name"
"""Part of all names of the other tenant."""
KINDS = ("topic", "group", "txn", "user", "principal", "client")
ANY = {"pattern_type_filter": 1, "operation": 1, "permission_type": 1}
EVERYTHING: Mapping[ApiKey, Mapping[str, Any]] = {
    ApiKey.METADATA: {"topics": None},
    ApiKey.LIST_GROUPS: {},
    ApiKey.LIST_TRANSACTIONS: {"duration_filter": -1},
    ApiKey.DESCRIBE_ACLS: {
        **ANY,
        "resource_type_filter": 1,
        "resource_name_filter": None,
        "principal_filter": None,
        "host_filter": None,
    },
    ApiKey.DESCRIBE_CLIENT_QUOTAS: {"components": [], "strict": False},
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: {"users": None},
    ApiKey.DESCRIBE_CLUSTER: {},
    ApiKey.DESCRIBE_LOG_DIRS: {"topics": None},
    ApiKey.LIST_PARTITION_REASSIGNMENTS: {"timeout_ms": 20_000, "topics": None},
}
"""Requests for all that there is. Fields that a version lacks are left out."""


def names() -> list[str]:
    return [f"{SECRET}-{kind}" for kind in KINDS]


def fill(bootstrap: str) -> None:
    """Everything that has a name, for the tenant whose clients come through `bootstrap`."""
    topic, group, txn, user, principal, client = names()
    create_topic(bootstrap, topic, 1)
    add_user(bootstrap, user, "SCRAM-SHA-512")
    with WireClient(bootstrap, client_id=client) as wire:
        offsets = [{"partition_index": 0, "committed_offset": 0, "committed_metadata": ""}]
        commit = {"group_id": group, "generation_id_or_member_epoch": -1, "member_id": ""}
        committed = wire.call(
            ApiKey.OFFSET_COMMIT,
            2,
            **commit,
            retention_time=-1,
            topics=[{"name": topic, "partitions": offsets}],
        )
        assert not committed.topics[0].partitions[0].error_code, committed
        begun = wire.call(
            ApiKey.INIT_PRODUCER_ID, 1, transactional_id=txn, transaction_timeout=600_000
        )
        assert not begun.error_code, begun
        pair = begun.producer_id, begun.producer_epoch
        added = wire.call(
            ApiKey.ADD_PARTITIONS_TO_TXN,
            1,
            v3_and_below_transactional_id=txn,
            v3_and_below_producer_id=pair[0],
            v3_and_below_producer_epoch=pair[1],
            v3_and_below_topics=[{"name": topic, "partitions": [0]}],
        )
        assert added, added
        produced = wire.call(
            ApiKey.PRODUCE, 9, **transactional_values(txn, pair, topic, 0, SECRET.encode())
        )
        assert not produced.responses[0].partition_responses[0].error_code, produced
        _restrict(wire, topic, principal, client)


def _restrict(wire: WireClient, topic: str, principal: str, client: str) -> None:
    """An ACL and a quota."""
    rule = {"resource_type": 2, "resource_name": topic, "resource_pattern_type": 3, "host": "*"}
    rule |= {"principal": f"User:{principal}", "operation": 3, "permission_type": 3}
    ruled = wire.call(ApiKey.CREATE_ACLS, 1, creations=[rule])
    assert not ruled.results[0].error_code, ruled
    quota = {"key": "producer_byte_rate", "value": 1e9, "remove": False}
    entity = [{"entity_type": "client-id", "entity_name": client}]
    limited = wire.call(
        ApiKey.ALTER_CLIENT_QUOTAS,
        0,
        entries=[{"entity": entity, "ops": [quota]}],
        validate_only=False,
    )
    assert not limited.entries[0].error_code, limited


def lists(bootstrap: str) -> Iterator[tuple[ApiKey, int, bytes]]:
    """The answers to requests for everything, at all versions, as they came."""
    for key, values in EVERYTHING.items():
        for version in SERVED_VERSIONS[key].each():
            if version not in supported_versions(key):
                continue
            with WireClient(bootstrap) as client:
                has_no_null = key is ApiKey.METADATA and version == 0
                asked = {"topics": []} if has_no_null else values
                client.send_frame(_request(key, version, asked))
                frame = client.read_frame()
                assert frame is not None, f"{key.message_name} {version}: closed"
                decode_response(key, version, frame)
                yield key, version, frame


def _request(key: ApiKey, version: int, values: Mapping[str, Any]) -> bytes:
    """Fields that have no default have plain values."""
    usual: dict[str, Any] = {"allow_auto_topic_creation": False, "states_filter": []}
    usual |= {"include_cluster_authorized_operations": False, "types_filter": []}
    usual |= {"include_topic_authorized_operations": False, "endpoint_type": 1}
    usual |= {"producer_id_filters": [], "state_filters": [], "include_fenced_brokers": False}
    wanted = {field.name for field in fields(request_schema(key, version))}
    given = {name: value for name, value in (usual | dict(values)).items() if name in wanted}
    return encode_request(key, version, 7, given)


def frames(bootstrap: str, named: Named) -> Iterator[tuple[ApiKey, int, bytes]]:
    """The answers to a request about `named`, of each API and version, as they came."""
    for key, served in SERVED_VERSIONS.items():
        for version in served.each():
            with WireClient(bootstrap) as client:
                client.send_frame(sample_request(key, version, named))
                frame = client.read_frame()
                assert frame is not None, f"{key.message_name} {version}: closed"
                yield key, version, frame


def leaks(bootstrap: str, own: Named) -> tuple[int, list[str]]:
    """How many answers were looked at, and those that have a name of the other tenant."""
    seen, found = 0, list[str]()
    secret = SECRET.encode()
    for key, version, frame in (*lists(bootstrap), *frames(bootstrap, own)):
        seen += 1
        if secret in frame:
            found.append(f"{key.message_name} {version}")
    return seen, found


def differences(bootstrap: str, hidden: Named, unknown: Named) -> tuple[int, list[str]]:
    """How many answers about the other tenant's names were compared with those about names that
    nobody has, and which of them differ. Only error codes are compared."""
    pairs = zip(
        answers(bootstrap, lambda _: hidden), answers(bootstrap, lambda _: unknown), strict=True
    )
    seen, found = 0, list[str]()
    for (key, version, one), (_, _, other) in pairs:
        if key in {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY}:
            continue  # they name nothing, and the second request of a client comes too early
        seen += 1
        codes = [None if each is None else list(leaf_codes(each)) for each in (one, other)]
        if codes[0] != codes[1]:
            found.append(f"{key.message_name} {version}: {codes[0]} and {codes[1]}")
    return seen, found


def stored_leaks(bucket_url: str, tenant: str, redis: "SyncRedis") -> list[str]:
    """Objects and facts of the tenant, and keys of its cluster in Redis, that have a name of the
    other."""
    url = f"{bucket_url}/tenants/{tenant}"
    bucket, secret = open_sync_bucket(url), SECRET.encode()
    try:
        cluster = bytes(bucket.get(keys.CLUSTER).data).decode()
        found = [
            info.key
            for info in bucket.list("")
            if SECRET in info.key or secret in bytes(bucket.get(info.key).data)
        ]
    finally:
        bucket.close()
    command = [sys.executable, "-m", "bucketlog.cli", "segment", "facts", url, "--every-kind"]
    facts = subprocess.run([*command, "-o", "json"], capture_output=True, check=True).stdout
    found += [f"fact {line!r}" for line in facts.splitlines() if secret in line]
    redis.config_set("rdbcompression", "no")  # DUMP compresses long values
    for key in redis.scan_iter("bucketlog:*"):
        is_own = key.decode().partition("{")[2].partition("/")[0] in cluster
        if is_own and secret in (redis.dump(key) or b"") + key:
            found.append(key.decode())
    return found


@dataclass(frozen=True, slots=True)
class Walk:
    """What a tenant saw of another: `leaks` must be empty, and so must `differences`."""

    answers: int
    compared: int
    leaks: list[str]
    differences: list[str]


def walk_as_tenant(
    mine: str, theirs: str, *, tenants: tuple[str, str], bucket_url: str, redis: "SyncRedis"
) -> Walk:
    """`mine` and `theirs` are where the clients of the two tenants reach a broker. Raises
    `AssertionError` if the walk does not find names that are there."""
    fill(theirs)
    kinds = {row.split()[0] for row in stored_leaks(bucket_url, tenants[1], redis)}
    assert "fact" in kinds, kinds
    assert any(kind.endswith("topics") for kind in kinds), f"Redis has names, too: {kinds}"
    create_topic(mine, "own", 1)
    answers_seen, found = leaks(mine, Named("own"))
    found += stored_leaks(bucket_url, tenants[0], redis)
    assert leaks(theirs, Named(names()[0]))[1], "the names are there"
    compared, different = differences(mine, Named(names()[0]), Named("nobody-topic"))
    return Walk(answers_seen, compared, found, different)
