"""What containers and stores here are given: settings that there are, Terraform's policies."""

import json
from pathlib import Path
from typing import Any

import boto3
import pytest
import yaml

from bucketlog.stateless_broker.settings.broker import BrokerSettings
from localstack.provision import POLICIES, main, policy
from localstack.servers import ACCESS_KEY, REGION, SECRET_KEY, StoreName, running
from tests.infra.policies import for_stores_here

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
COMPOSE = yaml.safe_load((ROOT / "localstack/compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
BROKERS = ("broker-1", "broker-2")


def test_policies_are_those_of_terraform(terraform: Path, tmp_path: Path) -> None:
    for name, text in for_stores_here(terraform, tmp_path).items():
        assert json.loads((POLICIES / name).read_text()) == json.loads(text), name


@pytest.mark.parametrize("name", BROKERS)
def test_brokers_of_the_compose_file_are_told_what_there_is(name: str) -> None:
    settings = {f"BUCKETLOG_{field.upper()}" for field in BrokerSettings.model_fields}
    given = SERVICES[name]["environment"]
    assert {each for each in given if each.startswith("BUCKETLOG_")} <= settings
    port = given["BUCKETLOG_PORT"]
    assert f"127.0.0.1:{port}:{port}" in SERVICES[name]["ports"]


def test_the_compose_file_hangs_together() -> None:
    for name, service in SERVICES.items():
        assert set(service.get("depends_on", ())) <= SERVICES.keys(), name
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ())), name
        if "build" in service:
            built = service["build"]
            context = (ROOT / "localstack" / built["context"]).resolve()
            assert (context / built["dockerfile"]).is_file(), name
    redis = SERVICES["valkey"]["command"]
    assert redis[redis.index("--maxmemory-policy") + 1] == "noeviction"


def test_a_store_gets_bucket_policy_and_roles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with running(StoreName.LOCALSTACK, tmp_path) as store:
        for name, text in store.environment().items():
            monkeypatch.setenv(name, text)
        for _ in range(2):
            assert main(["--bucket", "logs"]) == 0
        assert "no role" not in capsys.readouterr().out
        session = boto3.session.Session(ACCESS_KEY, SECRET_KEY, region_name=REGION)
        s3 = session.client("s3", endpoint_url=store.endpoint_url)
        found = json.loads(s3.get_bucket_policy(Bucket="logs")["Policy"])
        assert found == policy("bucket", "logs")
        iam = session.client("iam", endpoint_url=store.endpoint_url)
        role = iam.get_role_policy(RoleName="bucketlog-reader", PolicyName="log")
        assert role["PolicyDocument"] == policy("reader", "logs")
        s3.close()
        iam.close()
