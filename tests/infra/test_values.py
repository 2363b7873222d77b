"""The values that modules give to AWS, as Terraform plans them, held against AWS' own models of its
APIs (botocore carries them): enumerations, lengths, ranges, patterns, fields of JSON texts.

Names of arguments are matched to those of the API by letters alone; what finds no match is not
judged. Values that only AWS would know are not in a plan.
"""

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

import boto3
import botocore.session
import pytest
from botocore.exceptions import ClientError
from botocore.model import ListShape, Shape, StringShape, StructureShape
from moto import mock_aws

from tests.infra.modules import read_module
from tests.infra.programs import MODULES
from tests.infra.workshop import FOLDERS, Workshop

pytestmark = pytest.mark.long

OPERATIONS = {
    "aws_appautoscaling_policy": ("application-autoscaling", "PutScalingPolicy"),
    "aws_appautoscaling_target": ("application-autoscaling", "RegisterScalableTarget"),
    "aws_cloudwatch_log_group": ("logs", "CreateLogGroup"),
    "aws_cloudwatch_log_metric_filter": ("logs", "PutMetricFilter"),
    "aws_cloudwatch_metric_alarm": ("cloudwatch", "PutMetricAlarm"),
    "aws_ecs_cluster": ("ecs", "CreateCluster"),
    "aws_ecs_service": ("ecs", "CreateService"),
    "aws_ecs_task_definition": ("ecs", "RegisterTaskDefinition"),
    "aws_elasticache_parameter_group": ("elasticache", "CreateCacheParameterGroup"),
    "aws_elasticache_replication_group": ("elasticache", "CreateReplicationGroup"),
    "aws_elasticache_user": ("elasticache", "CreateUser"),
    "aws_elasticache_user_group": ("elasticache", "CreateUserGroup"),
    "aws_emrserverless_application": ("emr-serverless", "CreateApplication"),
    "aws_iam_policy": ("iam", "CreatePolicy"),
    "aws_iam_role": ("iam", "CreateRole"),
    "aws_iam_role_policy": ("iam", "PutRolePolicy"),
    "aws_lb": ("elbv2", "CreateLoadBalancer"),
    "aws_lb_listener": ("elbv2", "CreateListener"),
    "aws_lb_target_group": ("elbv2", "CreateTargetGroup"),
    "aws_s3_bucket_lifecycle_configuration": ("s3", "PutBucketLifecycleConfiguration"),
    "aws_s3_bucket_ownership_controls": ("s3", "PutBucketOwnershipControls"),
    "aws_s3_bucket_versioning": ("s3", "PutBucketVersioning"),
    "aws_secretsmanager_secret": ("secretsmanager", "CreateSecret"),
    "aws_vpc_endpoint": ("ec2", "CreateVpcEndpoint"),
}
NAMED_OTHERWISE = {
    ("aws_appautoscaling_policy", "name"): "PolicyName",
    ("aws_cloudwatch_log_group", "name"): "logGroupName",
    ("aws_cloudwatch_log_metric_filter", "name"): "filterName",
    ("aws_cloudwatch_log_metric_filter", "pattern"): "filterPattern",
    ("aws_ecs_cluster", "name"): "clusterName",
    ("aws_ecs_service", "name"): "serviceName",
    ("aws_iam_policy", "name"): "PolicyName",
    ("aws_iam_policy", "policy"): "PolicyDocument",
    ("aws_iam_role", "assume_role_policy"): "AssumeRolePolicyDocument",
    ("aws_iam_role", "name"): "RoleName",
    ("aws_iam_role_policy", "name"): "PolicyName",
    ("aws_iam_role_policy", "policy"): "PolicyDocument",
    ("aws_lb", "load_balancer_type"): "type",
    ("aws_lb", "internal"): "",
    ("aws_lb_target_group", "health_check"): "",
    ("aws_s3_bucket_lifecycle_configuration", "rule"): "LifecycleConfiguration.Rules",
    ("aws_s3_bucket_ownership_controls", "rule"): "OwnershipControls.Rules",
}
"""Arguments that the provider calls otherwise, or that are something else ('' for those)."""
JSON_TEXTS = {("aws_ecs_task_definition", "container_definitions")}
POLICIES = {"policy", "assume_role_policy"}


class Planned(NamedTuple):
    """A resource with the values that its module gives it, as far as they are known by then."""

    address: str
    kind: str
    values: Mapping[str, Any]


@pytest.fixture(scope="module")
def planned(workshop: Workshop) -> list[Planned]:
    found = []
    for name, folder in FOLDERS.items():
        if folder.parent != MODULES:
            continue
        said = {(one.kind, one.name): set(one.body) for one in read_module(folder).resources}
        for change in workshop.plans(workshop.copy / name):
            kind, values = change["type"], change["change"]["after"] or {}
            given = said.get((kind, change["name"]), set())
            # OpenTofu's mocks also make up what the module leaves to AWS
            values = {name: value for name, value in values.items() if name in given}
            found.append(Planned(change["address"], kind, values))
    return found


@cache
def request_of(service: str, operation: str) -> StructureShape:
    model = botocore.session.get_session().get_service_model(service)
    shape = model.operation_model(operation).input_shape
    assert shape is not None
    return shape


def letters(name: str) -> str:
    """By which names are compared: API names are plural where Terraform's blocks are not."""
    return name.replace("_", "").lower().rstrip("s")


class Judgement:
    """What does not fit, and how many values were looked at."""

    def __init__(self) -> None:
        self.compared = 0
        self.complaints: list[str] = []

    def resource(self, one: Planned) -> None:
        root = request_of(*OPERATIONS[one.kind])
        for name, value in one.values.items():
            path = NAMED_OTHERWISE.get((one.kind, name), name)
            shape: Shape | None = root
            for step in path.split("."):
                shape = _member(shape, step)
            if shape is None or value is None:
                continue
            at = f"{one.address}.{name}"
            if (one.kind, name) in JSON_TEXTS:
                self.strict(at, json.loads(value), shape)
            else:
                self.value(at, value, shape)

    def value(self, at: str, value: Any, shape: Shape) -> None:
        match shape:
            case ListShape():
                for inner in value if isinstance(value, list) else [value]:
                    self.value(at, inner, shape.member)
            case StructureShape():
                for block in value if isinstance(value, list) else [value]:
                    for name, inner in block.items() if isinstance(block, dict) else ():
                        member = _member(shape, name)
                        if member is not None and inner is not None:
                            self.value(f"{at}.{name}", inner, member)
            case _ if isinstance(value, str | int | float) and not isinstance(value, bool):
                self.compared += 1
                self.complaints += [f"{at}: {text}" for text in _misfits(value, shape)]

    def strict(self, at: str, value: Any, shape: Shape) -> None:
        """As `value`, and every field is to be there, by its very name."""
        match shape:
            case ListShape():
                for inner in value:
                    self.strict(at, inner, shape.member)
            case StructureShape():
                for name, inner in value.items():
                    if name not in shape.members:
                        self.complaints.append(f"{at}: there is no field {name!r}")
                    else:
                        self.strict(f"{at}.{name}", inner, shape.members[name])
            case _:
                self.value(at, value, shape)


def _member(shape: Shape | None, name: str) -> Shape | None:
    if not isinstance(shape, StructureShape) or not name:
        return None
    for known, member in shape.members.items():
        if letters(known) == letters(name):
            return member
    return None


def _misfits(value: str | float, shape: Shape) -> Iterator[str]:
    low, high = shape.metadata.get("min"), shape.metadata.get("max")
    if isinstance(shape, StringShape):
        text = str(value)
        if shape.enum and text not in shape.enum and text.upper() not in shape.enum:
            yield f"{text!r} is none of {', '.join(shape.enum)}"
        pattern = shape.metadata.get("pattern")
        if pattern and _compiles(pattern) and not re.search(f"^(?:{pattern})$", text, re.DOTALL):
            yield f"{text!r} does not fit {pattern}"
        measured = float(len(text))
    elif isinstance(value, str):
        return
    else:
        measured = float(value)
    if low is not None and measured < low:
        yield f"{value!r} is below {low}"
    if high is not None and measured > high:
        yield f"{value!r} is above {high}"


def _compiles(pattern: str) -> bool:
    """Patterns are those of other languages."""
    try:
        re.compile(pattern)
    except re.error:
        return False
    return True


def test_values_are_those_of_the_apis(planned: list[Planned]) -> None:
    judgement = Judgement()
    for one in planned:
        if one.kind in OPERATIONS:
            judgement.resource(one)
    assert judgement.complaints == []
    assert judgement.compared > 300, judgement.compared
    kinds = {one.kind for one in planned}
    assert set(OPERATIONS) <= kinds


PLANTED: dict[str, tuple[str, dict[str, Any], str]] = {
    "enumeration": ("aws_lb_target_group", {"target_type": "address"}, "is none of"),
    "number": ("aws_lb_target_group", {"port": 70000}, "above"),
    "length": ("aws_iam_role", {"name": "x" * 65}, "above 64"),
    "field of JSON": (
        "aws_ecs_task_definition",
        {"container_definitions": '[{"name": "x", "stopTimeOut": 3}]'},
        "no field 'stopTimeOut'",
    ),
    "nested": (
        "aws_ecs_task_definition",
        {"runtime_platform": [{"cpu_architecture": "ARM"}]},
        "is none of",
    ),
}


@pytest.mark.parametrize("case", PLANTED)
def test_finds_a_planted_value(case: str) -> None:
    kind, values, said = PLANTED[case]
    judgement = Judgement()
    judgement.resource(Planned("planted", kind, values))
    assert any(said in text for text in judgement.complaints), judgement.complaints


def test_every_policy_is_one_of_iam(planned: list[Planned]) -> None:
    """By moto's reading of the grammar: without principals, which it does not know in policies of
    users, and without resources, whose names a mock makes up."""
    texts = {
        value
        for one in planned
        for name, value in one.values.items()
        if name in POLICIES and isinstance(value, str)
    }
    assert len(texts) >= 6
    with mock_aws():
        iam = boto3.client("iam", "us-east-1", aws_access_key_id="x", aws_secret_access_key="x")
        wrong = [text for text in sorted(texts) if not _grammatical(iam, text)]
        assert not _grammatical(iam, next(iter(texts)).replace('"Effect"', '"Efect"'))
    assert wrong == []


def _grammatical(iam: Any, text: str) -> bool:
    policy = json.loads(text)
    policy["Statement"] = [
        {name: told for name, told in one.items() if name != "Principal"} | {"Resource": "*"}
        for one in policy["Statement"]
    ] or [{"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}]
    try:
        name = f"p{abs(hash(text))}"
        iam.create_policy(PolicyName=name, PolicyDocument=json.dumps(policy))
    except ClientError:
        return False
    return True
