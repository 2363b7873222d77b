"""The policies of the bucket, evaluated by Terraform and held against what the code does."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.s3_options import S3Options
from bucketlog.tiered_storage.backends.s3_requests import S3Requests
from tests.infra.policies import BROKER, EvaluationError, Policies, Policy, evaluated
from tests.infra.programs import MODULES

pytestmark = pytest.mark.long

LOG = {"bucket_name": "example-log", "bucket_prefix": "prod"}
ROOT = "arn:aws:s3:::example-log/prod/0/"


@pytest.fixture(scope="module")
def policies(terraform: Path, tmp_path_factory: pytest.TempPathFactory) -> Policies:
    return evaluated(
        terraform, tmp_path_factory.mktemp("policies"), {**LOG, "lake_bucket_name": "example-lake"}
    )


def allowed(policy: Policy) -> dict[str, set[str]]:
    """Resources by action."""
    found: dict[str, set[str]] = {}
    for statement in policy["Statement"]:
        assert statement["Effect"] == "Allow"
        for action in statement["Action"]:
            found.setdefault(action, set()).update(statement["Resource"])
    return found


def lets_through(policy: Policy) -> Iterator[str]:
    """What a bucket's policy fails to deny."""
    denied = [
        one for one in policy["Statement"] if one["Effect"] == "Deny" and one["Principal"] == "*"
    ]

    def denies(action: str, condition: dict[str, Any] | None, resource: str) -> bool:
        return any(
            action in one["Action"]
            and one.get("Condition") == condition
            and resource in one["Resource"]
            for one in denied
        )

    everything = "arn:aws:s3:::example-log/*"
    if not denies("s3:*", {"Bool": {"aws:SecureTransport": "false"}}, everything):
        yield "requests without TLS"
    if not denies("s3:PutObject", {"Null": {"s3:if-none-match": "true"}}, everything):
        yield "writes without a condition"
    if not denies("s3:DeleteObject", {"ArnNotEquals": {"aws:PrincipalArn": [BROKER]}}, everything):
        yield "deletes by others than brokers"
    if not denies("s3:DeleteObjectVersion", None, everything):
        yield "deletes of versions"
    for kept in (f"{ROOT}{keys.CLUSTER}", f"{ROOT}{keys.EPOCHS}*"):
        if not denies("s3:DeleteObject", None, kept):
            yield f"deletes of {kept}"


def test_the_bucket_lets_nothing_through(policies: Policies) -> None:
    assert not list(lets_through(policies.bucket))


PLANTED = {
    "writes without a condition": (r"\[local\.create_only\],", ""),
    "deletes by others than brokers": (r"\[local\.deletes\],", ""),
    "deletes of versions": (r"s3:DeleteObjectVersion", "s3:GetObjectVersion"),
    "requests without TLS": (r"aws:SecureTransport", "aws:SecureTransfer"),
}


@pytest.mark.parametrize("said", PLANTED)
def test_finds_a_planted_hole(said: str, terraform: Path, tmp_path: Path) -> None:
    pattern, instead = PLANTED[said]
    module = shutil.copytree(MODULES / "policies", tmp_path / "faulty")
    text, count = re.subn(pattern, instead, (module / "main.tf").read_text())
    assert count
    (module / "main.tf").write_text(text)
    (tmp_path / "at").mkdir()
    found = evaluated(terraform, tmp_path / "at", LOG, module)
    assert list(lets_through(found.bucket)) == [said]


def test_every_write_of_the_log_carries_the_condition() -> None:
    request = S3Requests("example-log", "prod/0/", S3Options()).put("log/x", b"", None)
    assert request["IfNoneMatch"] == "*"


def test_a_broker_may_do_what_it_does_and_no_more(policies: Policies) -> None:
    kinds = {
        value
        for name, value in vars(keys).items()
        if name.isupper() and isinstance(value, str) and value.endswith("/")
    }
    assert allowed(policies.broker) == {
        "s3:ListBucket": {"arn:aws:s3:::example-log"},
        "s3:GetObject": {f"{ROOT}*"},
        "s3:PutObject": {f"{ROOT}*"},
        "s3:DeleteObject": {f"{ROOT}{kind}*" for kind in kinds - {keys.EPOCHS}},
    }


def test_readers_read_and_jobs_of_spark_write_the_lake_alone(policies: Policies) -> None:
    reads = {"s3:ListBucket": {"arn:aws:s3:::example-log"}, "s3:GetObject": {f"{ROOT}*"}}
    assert allowed(policies.reader) == reads
    spark = allowed(policies.spark)
    writing = {action: at for action, at in spark.items() if action not in reads}
    assert writing
    assert all(
        resource.startswith("arn:aws:s3:::example-lake")
        for at in writing.values()
        for resource in at
    )


def test_a_key_of_ones_own_may_be_used(terraform: Path, tmp_path: Path) -> None:
    key = "arn:aws:kms:us-east-1:123456789012:key/k"
    found = evaluated(terraform, tmp_path, {**LOG, "kms_key_arn": key})
    assert allowed(found.broker)["kms:GenerateDataKey"] == {key}
    assert "kms:GenerateDataKey" not in allowed(found.reader)
    assert allowed(found.reader)["kms:Decrypt"] == {key}


@pytest.mark.parametrize(
    "given",
    [{"deleting_role_arns": []}, {"bucket_prefix": "/prod"}, {"lake_bucket_name": "example-log"}],
    ids=["nobody deletes", "slash", "lake in the log"],
)
def test_refuses(given: dict[str, object], terraform: Path, tmp_path: Path) -> None:
    (name,) = given
    with pytest.raises(EvaluationError, match=f"{name}: "):
        evaluated(terraform, tmp_path, {**LOG, **given})
