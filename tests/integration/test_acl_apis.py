"""DescribeAcls, CreateAcls and DeleteAcls of a broker process."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.rigs.wire_client import WireClient
from tests.servers.broker_process import Start

ANYTHING = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}
READ_T = {
    "resource_type": 2,
    "resource_name": "t",
    "resource_pattern_type": 3,
    "principal": "User:bob",
    "host": "*",
    "operation": 3,
    "permission_type": 3,
}
SUPER = {"authorization": "true", "super_users": "User:ANONYMOUS"}


@pytest.fixture
def serving(start: Start) -> Iterator[Callable[..., WireClient]]:
    """Start a broker with the settings, and connect to it."""
    with ExitStack() as stack:

        def begin(**settings: str) -> WireClient:
            broker = start(**settings).wait_until_ready()
            return stack.enter_context(WireClient(broker.bootstrap))

        yield begin


def create(client: WireClient, version: int, *acls: dict[str, Any]) -> list[tuple[int, str | None]]:
    answer = client.call(ApiKey.CREATE_ACLS, version, creations=list(acls))
    return [(each.error_code, each.error_message) for each in answer.results]


def described(client: WireClient, version: int = 3, **wanted: Any) -> Any:
    return client.call(ApiKey.DESCRIBE_ACLS, version, **ANYTHING | wanted)


def names(answer: Any) -> set[tuple[str, int]]:
    assert answer.error_code == ErrorCode.none
    return {(each.resource_name, each.pattern_type) for each in answer.resources}


@pytest.mark.parametrize("version", [1, 2, 3])
def test_acls_are_created_described_and_deleted(start: Start, version: int) -> None:
    broker = start(**SUPER).wait_until_ready()
    with WireClient(broker.bootstrap) as client:
        prefixed = READ_T | {"resource_pattern_type": 4, "resource_name": "pre-"}
        assert create(client, version, READ_T, prefixed, READ_T) == [(ErrorCode.none, None)] * 3
        found = described(client, version)
        assert names(found) == {("t", 3), ("pre-", 4)}
        (acl,) = next(each.acls for each in found.resources if each.resource_name == "t")
        assert (acl.principal, acl.host, acl.operation, acl.permission_type) == (
            "User:bob",
            "*",
            3,
            3,
        )
        match = {"pattern_type_filter": 2, "resource_type_filter": 2}
        assert names(described(client, version, **match, resource_name_filter="pre-x")) == {
            ("pre-", 4)
        }
        gone = client.call(
            ApiKey.DELETE_ACLS,
            version,
            filters=[ANYTHING | {"resource_name_filter": "t"}, ANYTHING | {"operation": 99}],
        )
        (first, second) = gone.filter_results
        assert first.error_code == ErrorCode.none
        assert [each.resource_name for each in first.matching_acls] == ["t"]
        assert second.error_code == ErrorCode.invalid_request
        assert names(described(client, version)) == {("pre-", 4)}
    broker.kill()
    again = start(**SUPER).wait_until_ready()
    with WireClient(again.bootstrap) as client:
        assert names(described(client, version)) == {("pre-", 4)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"resource_type": 1}, "Invalid resourceType ANY"),
        ({"resource_type": 99}, "Invalid resourceType UNKNOWN"),
        ({"resource_pattern_type": 2}, "Invalid patternType MATCH"),
        ({"operation": 0}, "Invalid operation UNKNOWN"),
        ({"permission_type": 1}, "Invalid permissionType ANY"),
        ({"resource_name": ""}, "Invalid empty resource name"),
        (
            {"resource_type": 4},
            "The only valid name for the CLUSTER resource is kafka-cluster",
        ),
        ({"principal": "bob"}, "Could not parse principal from `bob`"),
        ({"resource_name": "n" * 1025}, "BUCKETLOG_ACL_NAME_BYTES_MAX"),
        ({"principal": "User:" + "n" * 1024}, "BUCKETLOG_ACL_PRINCIPAL_BYTES_MAX"),
        ({"host": "n" * 257}, "BUCKETLOG_ACL_HOST_BYTES_MAX"),
    ],
)
def test_bad_acls_are_refused(
    serving: Callable[..., WireClient], change: dict[str, Any], message: str
) -> None:
    client = serving(**SUPER)
    (bad, good) = create(client, 3, READ_T | change, READ_T)
    assert bad[0] == ErrorCode.invalid_request
    assert message in (bad[1] or "")
    assert good == (ErrorCode.none, None)


def test_the_number_of_acls_is_limited(serving: Callable[..., WireClient]) -> None:
    client = serving(**SUPER, acls_max="2")
    acls: Sequence[dict[str, Any]] = [READ_T | {"resource_name": name} for name in "abc"]
    assert [error for error, _ in create(client, 3, *acls)] == [ErrorCode.policy_violation] * 3
    assert create(client, 3, *acls[:2]) == [(ErrorCode.none, None)] * 2
    assert create(client, 3, *acls[:2]) == [(ErrorCode.none, None)] * 2
    assert create(client, 3, acls[2])[0][0] == ErrorCode.policy_violation


def test_without_an_authorizer(serving: Callable[..., WireClient]) -> None:
    client = serving()
    text = "No Authorizer is configured."
    assert create(client, 3, READ_T) == [(ErrorCode.security_disabled, text)]
    found = described(client)
    assert (found.error_code, found.error_message) == (
        ErrorCode.security_disabled,
        "No Authorizer is configured on the broker",
    )
    gone = client.call(ApiKey.DELETE_ACLS, 3, filters=[ANYTHING])
    assert gone.filter_results[0].error_code == ErrorCode.security_disabled


@pytest.mark.parametrize("api", ["describe", "create", "delete"])
def test_acls_need_rights_on_the_cluster(serving: Callable[..., WireClient], api: str) -> None:
    client = serving(authorization="true")
    denied = ErrorCode.cluster_authorization_failed
    if api == "describe":
        assert described(client).error_code == denied
    elif api == "create":
        assert create(client, 3, READ_T)[0][0] == denied
    else:
        gone = client.call(ApiKey.DELETE_ACLS, 3, filters=[ANYTHING])
        assert gone.filter_results[0].error_code == denied
