"""A real broker with the rights of its role in the bucket and of its user at the sequencer, and no
others: MinIO obeys the policy (as a session's), Valkey the access string. Both are what Terraform
would give.
"""

import json
import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import NamedTuple

import boto3
import pytest
from redis import Redis

import bucketlog
from bucketlog.log_format.errors import BucketRefusedError
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.location import open_sync_bucket
from bucketlog.tiered_storage.bucket import SyncBucket
from localstack.servers import ACCESS_KEY, REGION, SECRET_KEY, RunningStore
from tests.infra.policies import Policies, Policy, evaluated
from tests.infra.programs import MODULES, ROOT
from tests.rigs.patience import PATIENCE_S, let_pass
from tests.servers.broker_process import BrokerProcess
from tests.servers.own_valkey import OwnValkey

pytestmark = pytest.mark.long

BUCKET = "example-log"
LAKE = "example-lake"
URL = f"s3://{BUCKET}/prod"
QUICK = {
    "checkpoint_interval_ms": "100",
    "deletion_safety_age_ms": "1000",
    "compaction_check_interval_ms": "200",
    "compaction_interval_ms": "200",
    "compaction_age_ms_min": "1",
}
TOPIC = bucketlog.Topic("orders")
WIPED_AFTER = 10
RECORDS_MAX = 1000
PACE_S = 0.1


@pytest.fixture(scope="module")
def policies(
    terraform: Path, tmp_path_factory: pytest.TempPathFactory, minio: RunningStore
) -> Policies:
    minio.make_bucket(BUCKET)
    minio.make_bucket(LAKE)
    given = {"bucket_name": BUCKET, "bucket_prefix": "prod", "lake_bucket_name": LAKE}
    return evaluated(terraform, tmp_path_factory.mktemp("policies"), given)


def session(minio: RunningStore, policy: Policy) -> dict[str, str]:
    """The environment of somebody who may do what the policy says."""
    sts = boto3.client(
        "sts",
        endpoint_url=minio.endpoint_url,
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
        region_name=REGION,
    )
    role = "arn:aws:iam::123456789012:role/ignored"
    told = sts.assume_role(RoleArn=role, RoleSessionName="test", Policy=json.dumps(policy))
    credentials = told["Credentials"]
    return minio.environment() | {
        "AWS_ACCESS_KEY_ID": credentials["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": credentials["SecretAccessKey"],
        "AWS_SESSION_TOKEN": credentials["SessionToken"],
    }


def access() -> list[str]:
    """The access string of the brokers' user, from what the module `metadata` gives it."""
    text = (MODULES / "metadata" / "main.tf").read_text()
    (commands,) = re.findall(r"commands = \[(.*?)\]", text, re.DOTALL)
    return [
        "~bucketlog:*",
        "&bucketlog:*",
        "-@all",
        *(f"+{name}" for name in re.findall(r'"([^"]+)"', commands)),
    ]


def test_the_access_string_is_the_documented_one() -> None:
    documented = (ROOT / "docs" / "redis.md").read_text().partition("## Permissions")[2]
    assert set(access()) - {"-@all"} == set(documented.split("```")[1].split())


class Written(NamedTuple):
    records: int
    deleted: set[str]
    exit_code: int
    broker_log: str


def kinds_deleted(broker: BrokerProcess) -> set[str]:
    """Kinds of objects."""
    return {
        name.partition('kind="')[2].rstrip('"}')
        for name, value in broker.metrics().items()
        if name.startswith("bucketlog_deleted_objects_total") and value
    }


@pytest.fixture(scope="module")
def written(
    minio: RunningStore, policies: Policies, tmp_path_factory: pytest.TempPathFactory
) -> Written:
    """By a broker whose Valkey was wiped on the way, until it has deleted what it had closed."""
    folder = tmp_path_factory.mktemp("broker")
    valkey, at, deleted = OwnValkey(folder), folder / "broker.log", set[str]()
    valkey.start()
    with Redis(unix_socket_path=str(valkey.path)) as redis:
        redis.execute_command("ACL", "SETUSER", "bucketlog", "on", ">secret", *access())
    redis_url = f"unix://bucketlog:secret@{valkey.path}"
    broker = BrokerProcess(
        at, session(minio, policies.broker), bucket_url=URL, redis_url=redis_url, **QUICK
    )
    try:
        broker.wait_until_ready()
        with bucketlog.connect(broker.bootstrap) as log, log.producer() as producer:
            log.topics.ensure(TOPIC, partitions=1)
            for number in count(1):
                producer.send(TOPIC, b"%d" % number).result(PATIENCE_S)
                if number == WIPED_AFTER:
                    valkey.wipe()
                deleted = kinds_deleted(broker)
                if {"checkpoints", "segments"} <= deleted:
                    break
                assert number < RECORDS_MAX, deleted
                let_pass(PACE_S)
    finally:
        exit_code = broker.terminate()
        valkey.stop()
    return Written(number, deleted, exit_code, at.read_text())


def test_a_broker_needs_no_more(written: Written) -> None:
    """Writing, checkpoints, splitting into tiers, a new epoch, deletion: nothing was refused."""
    assert {"checkpoints", "segments"} <= written.deleted
    assert written.exit_code == 0
    assert not re.findall(r"AccessDenied|Access Denied|NOPERM", written.broker_log)


@pytest.fixture
def reader(
    written: Written, minio: RunningStore, policies: Policies, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SyncBucket]:
    """The log, in an environment with the reader's rights."""
    for name, value in session(minio, policies.reader).items():
        monkeypatch.setenv(name, value)
    bucket = open_sync_bucket(URL)
    yield bucket
    bucket.close()


def test_a_reader_reads_and_writes_nothing(reader: SyncBucket, written: Written) -> None:
    found = bucketlog.replay(URL, TOPIC, columns=["value"])
    assert sum(1 for _ in found) == written.records
    assert reader.head("log/nothing") is None
    with pytest.raises(BucketRefusedError, match="create"):
        reader.create("log/planted", [b"x"])
    with pytest.raises(BucketRefusedError, match="delete"):
        reader.delete([keys.CLUSTER])


def test_a_job_fills_the_lake_and_leaves_the_log_alone(
    written: Written, minio: RunningStore, policies: Policies, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What tasks of Spark do, in one process."""
    for name, value in session(minio, policies.spark).items():
        monkeypatch.setenv(name, value)
    replay = bucketlog.replay(URL, TOPIC)
    assert replay.to_parquet(f"s3://{LAKE}/orders").records == written.records
    assert replay.to_parquet(f"s3://{LAKE}/orders", overwrite=True).records == written.records
    bucket = open_sync_bucket(URL)
    try:
        with pytest.raises(BucketRefusedError, match="create"):
            bucket.create("log/planted", [b"x"])
    finally:
        bucket.close()


def test_a_broker_with_a_readers_rights_is_refused(
    minio: RunningStore, policies: Policies, tmp_path: Path
) -> None:
    """So the policies are obeyed here."""
    settings = {"bucket_url": URL, "redis_url": f"unix://{tmp_path}/none"}
    broker = BrokerProcess(tmp_path / "log", session(minio, policies.reader), **settings)
    assert broker.wait() != 0
    assert "AccessDenied" in broker.log.read_text()


def test_a_broker_deletes_no_identity(
    written: Written, minio: RunningStore, policies: Policies, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in session(minio, policies.broker).items():
        monkeypatch.setenv(name, value)
    bucket = open_sync_bucket(URL)
    try:
        with pytest.raises(BucketRefusedError, match="delete"):
            bucket.delete([keys.CLUSTER])
    finally:
        bucket.close()
