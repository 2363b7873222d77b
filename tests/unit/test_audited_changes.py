"""What the audit log shows of requests that change something."""

from dataclasses import replace
from typing import Any, cast

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.messages import incremental_alter_configs as incremental
from bucketlog.log_format.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from bucketlog.log_format.wire.messages.create_acls import AclCreation, CreateAclsRequest
from bucketlog.log_format.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from bucketlog.stateless_broker.handlers.audited_changes import (
    DETAILS_MAX,
    altered_some_configs,
    altered_users,
    created_acls,
    deleted_acls,
    deleted_groups,
    deleted_records,
)

WANTED = AclCreation(
    resource_type=2,
    resource_name="t",
    resource_pattern_type=4,
    principal="User:bob",
    host="*",
    operation=3,
    permission_type=3,
)
EVERYTHING = DeleteAclsFilter(
    resource_type_filter=1,
    resource_name_filter=None,
    pattern_type_filter=2,
    principal_filter=None,
    host_filter=None,
    operation=1,
    permission_type=1,
)


def test_acls_that_are_created() -> None:
    asked = CreateAclsRequest(creations=(WANTED, replace(WANTED, operation=77)))
    results = [
        {"error_code": ErrorCode.none, "error_message": None},
        {"error_code": ErrorCode.invalid_request, "error_message": "Invalid operation UNKNOWN"},
    ]
    made, refused = created_acls(asked, {"results": results})
    assert made.row() == {
        "resource": "ACL",
        "name": "topic t",
        "result": "ok",
        "change": "create",
        "principal": "User:bob",
        "host": "*",
        "operation": "read",
        "permission": "allow",
        "pattern": "prefixed",
    }
    assert refused.row()["result"] == "INVALID_REQUEST"
    assert refused.row()["operation"] == "unknown (77)"
    assert [each.row()["result"] for each in created_acls(asked, None)] == ["UNKNOWN"] * 2


def test_acls_that_are_deleted() -> None:
    gone = {
        "error_code": ErrorCode.none,
        "resource_type": 4,
        "resource_name": "kafka-cluster",
        "pattern_type": 3,
        "principal": "User:bob",
        "host": "*",
        "operation": 11,
        "permission_type": 2,
    }
    results = [
        {"error_code": ErrorCode.none, "error_message": None, "matching_acls": [gone, gone]},
        {"error_code": ErrorCode.policy_violation, "error_message": None, "matching_acls": []},
    ]
    asked = DeleteAclsRequest(filters=(EVERYTHING, EVERYTHING))
    deleted, _, refused = deleted_acls(asked, {"filter_results": results})
    assert deleted.row() == {
        "resource": "ACL",
        "name": "cluster kafka-cluster",
        "result": "ok",
        "change": "delete",
        "principal": "User:bob",
        "host": "*",
        "operation": "alter_configs",
        "permission": "deny",
        "pattern": "literal",
    }
    assert refused.row() == {
        "resource": "ACL",
        "name": "any any name",
        "result": "POLICY_VIOLATION",
        "change": "delete all that match",
        "principal": None,
        "host": None,
        "operation": "any",
        "permission": "any",
        "pattern": "match",
    }
    assert [each.row()["result"] for each in deleted_acls(asked, None)] == ["UNKNOWN"] * 2


def test_no_secrets_of_users() -> None:
    secret = b"salted password"
    upsertion = ScramCredentialUpsertion(
        name="ann", mechanism=2, iterations=4096, salt=b"salt!", salted_password=secret
    )
    message = AlterUserScramCredentialsRequest(deletions=(), upsertions=(upsertion,))
    (change,) = altered_users(
        message,
        {"results": [{"user": "ann", "error_code": ErrorCode.none, "error_message": None}]},
    )
    assert change.row() == {
        "resource": "user",
        "name": "ann",
        "result": "ok",
        "mechanism": "SCRAM-SHA-512",
        "change": "set password",
        "iterations": 4096,
    }


@pytest.mark.parametrize("error", [ErrorCode.none, ErrorCode.invalid_config])
def test_only_accepted_settings_show_their_values(error: ErrorCode) -> None:
    config = incremental.AlterableConfig(name="retention.ms", config_operation=0, value="SECRET")
    resource = incremental.AlterConfigsResource(
        resource_type=2, resource_name="t", configs=(config,)
    )
    message = incremental.IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
    row = {"error_code": error, "error_message": None, "resource_type": 2, "resource_name": "t"}
    (change,) = altered_some_configs(message, {"responses": [row]})
    assert ("SECRET" in str(change.row())) == (error is ErrorCode.none)
    only_checked = incremental.IncrementalAlterConfigsRequest(
        resources=(resource,), validate_only=True
    )
    assert list(altered_some_configs(only_checked, {"responses": [row]})) == []


def test_answers_of_other_apis() -> None:
    groups = {"results": [{"group_id": "g", "error_code": ErrorCode.non_empty_group}]}
    (group,) = deleted_groups(cast(Any, None), groups)
    assert group.row() == {"resource": "group", "name": "g", "result": "NON_EMPTY_GROUP"}
    parts = [
        {"partition_index": at, "low_watermark": 10, "error_code": ErrorCode.none}
        for at in range(1000)
    ]
    (records,) = deleted_records(cast(Any, None), {"topics": [{"name": "t", "partitions": parts}]})
    assert len(cast(dict[int, int], records.details["before"])) == DETAILS_MAX
    assert records.details["left_out"] == 1000 - DETAILS_MAX
