"""Makes what a deployment needs in an S3 store: the bucket, its policy, the brokers' role.

    python -m localstack.provision --bucket bucketlog

The store is found by the AWS_* variables. The policies are those that `infra/terraform/policies`
gives (`policies/*.json`; tests hold them against each other). A store without IAM (MinIO) gets no
role, one that does not take the bucket's policy is told so. May be run again.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

POLICIES = Path(__file__).parent / "policies"
ROLES = ("broker", "reader")
POLL_S = 0.5
_CONFIG = Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"})


def policy(name: str, bucket: str) -> dict[str, Any]:
    """`bucket`, `broker` or `reader`, for that bucket."""
    text = (POLICIES / f"{name}.json").read_text()
    found: dict[str, Any] = json.loads(Template(text).substitute(bucket=bucket))
    return found


def provision(bucket: str, *, wait_s: float = 0.0) -> Iterator[str]:
    """Does it, and tells each step. Raises `ClientError` and `BotoCoreError` of boto3."""
    session = boto3.session.Session(region_name=os.environ.get("AWS_REGION"))
    with closing(session.client("s3", config=_CONFIG)) as s3:
        yield _made(s3, bucket, wait_s)
        try:
            s3.put_bucket_policy(Bucket=bucket, Policy=json.dumps(policy("bucket", bucket)))
        except ClientError as error:
            yield f"the store does not take the bucket's policy: {_reason(error)}"
        else:
            yield f"the policy of {bucket}: nothing is replaced, brokers alone delete"
    for role in ROLES:
        yield _role(session, role, bucket)


def _made(s3: "S3Client", bucket: str, wait_s: float) -> str:
    """A store that starts is waited for."""
    deadline = time.monotonic() + wait_s
    while True:
        try:
            if bucket in [known.get("Name") for known in s3.list_buckets()["Buckets"]]:
                return f"bucket {bucket} is there"
            s3.create_bucket(Bucket=bucket)
        except (BotoCoreError, ClientError):
            if time.monotonic() > deadline:
                raise
            time.sleep(POLL_S)
        else:
            return f"bucket {bucket} is made"


def _role(session: boto3.session.Session, name: str, bucket: str) -> str:
    trust = {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Action": "sts:AssumeRole",
                "Principal": {"Service": "ecs-tasks.amazonaws.com"},
            }
        ],
    }
    role = f"bucketlog-{name}"
    # IAM has no variable of its own in compose files: it is where S3 is
    endpoint = os.environ.get("AWS_ENDPOINT_URL_IAM") or os.environ.get("AWS_ENDPOINT_URL_S3")
    with closing(session.client("iam", endpoint_url=endpoint, config=_CONFIG)) as iam:
        try:
            with suppress(iam.exceptions.EntityAlreadyExistsException):
                iam.create_role(RoleName=role, AssumeRolePolicyDocument=json.dumps(trust))
            iam.put_role_policy(
                RoleName=role, PolicyName="log", PolicyDocument=json.dumps(policy(name, bucket))
            )
        except (ClientError, BotoCoreError) as error:
            return f"no role {role}: {_reason(error)}"
    return f"role {role} may {'write' if name == 'broker' else 'read'} the log"


def _reason(error: Exception) -> str:
    return str(error).splitlines()[0]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="localstack.provision")
    parser.add_argument("--bucket", required=True)
    parser.add_argument("--wait-s", type=float, default=0.0, help="for a store that starts")
    options = parser.parse_args(arguments)
    try:
        for line in provision(options.bucket, wait_s=options.wait_s):
            sys.stdout.write(f"{line}\n")
    except (ClientError, BotoCoreError) as error:
        sys.stderr.write(f"localstack.provision: {_reason(error)}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
