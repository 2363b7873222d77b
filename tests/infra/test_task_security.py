"""TLS, logins and ACLs of the module `broker`: the containers that Terraform plans, run on this
machine as a real broker.
"""

import json
import socket
import ssl
import stat
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.infra.containers_here import environment, running_broker
from tests.infra.workshop import Workshop
from tests.rigs.certificate_authority import Authority
from tests.rigs.patience import PATIENCE_S
from tests.rigs.users import write_key_file
from tests.servers.cluster import free_port

pytestmark = pytest.mark.long

MODULE = "terraform/broker"
SECURED = "SASL_SSL"
PASSWORD = "a password"
DOMAIN = "ec2.internal"


@pytest.fixture(scope="module")
def containers(workshop: Workshop) -> list[dict[str, Any]]:
    """Of a task with TLS, logins and ACLs, by the module's own test."""
    plans = [
        json.loads(change["change"]["after"]["container_definitions"])
        for change in workshop.plans(workshop.copy / MODULE)
        if change["type"] == "aws_ecs_task_definition"
    ]
    texts = [json.dumps(plan) for plan in plans]
    (found, _) = [
        plan
        for plan, text in zip(plans, texts, strict=True)
        if "CREDENTIALS_KEYS" in text and "TENANTS_TOML" not in text
    ]
    assert isinstance(found, list)
    return found


@dataclass
class Task:
    """`run` runs the container of that name until it ends."""

    pid: int
    address: str
    files: Path
    authority: Authority
    run: Callable[[str], "subprocess.CompletedProcess[str]"]


@pytest.fixture
def task(containers: list[dict[str, Any]], tmp_path: Path, redis_url: str) -> Iterator[Task]:
    """The containers with their paths, ports and stores on this machine."""
    authority = Authority(tmp_path)
    issued = authority.issue("task", hosts=(f"*.{DOMAIN}",))
    key_file = write_key_file(tmp_path / "keys")
    secrets = {
        "TLS_CERTIFICATE": issued.certificate.read_text(),
        "TLS_KEY": issued.key.read_text(),
        "TLS_CA": authority.pem.decode(),
        "CREDENTIALS_KEYS": key_file.read_text(),
        "TOKEN_KEYS": write_key_file(tmp_path / "token_keys").read_text(),
        "ADMIN_PASSWORD": PASSWORD,
        "BUCKETLOG_REDIS_URL": redis_url,
    }
    ports = {name: str(free_port()) for name in ("9091", "9092", "8080")}

    def here(text: str) -> str:
        for port, free in ports.items():
            text = text.replace(f":{port}", f":{free}")
        return text.replace("/tmp/security", f"{tmp_path}/security").replace("0.0.0.0", "127.0.0.1")

    def variables(container: dict[str, Any]) -> dict[str, str]:
        found = {one["name"]: here(one["value"]) for one in container.get("environment", ())}
        return found | {one["name"]: secrets[one["name"]] for one in container["secrets"]}

    def command(container: dict[str, Any]) -> list[str]:
        return [*container["entryPoint"], *map(here, container["command"])]

    by_name = {one["name"]: one for one in containers}

    def run(name: str) -> "subprocess.CompletedProcess[str]":
        container = by_name[name]
        return subprocess.run(
            command(container),
            env=environment(variables(container), tmp_path),
            capture_output=True,
            text=True,
            check=False,
        )

    broker = by_name["broker"]
    stores = {
        "BUCKETLOG_BUCKET_URL": f"file://{tmp_path}/bucket",
        "BUCKETLOG_HTTP_PORT": "0",
        "BUCKETLOG_SEQUENCER_TIMEOUT_MS": "0",
    }
    with running_broker(command(broker), variables(broker) | stores, tmp_path) as pid:
        address = f"127.0.0.1:{ports['9092']}"
        yield Task(pid, address, tmp_path / "security", authority, run)


def test_the_broker_has_the_secrets_in_private_files_alone(task: Task) -> None:
    found = {path.name: stat.S_IMODE(path.stat().st_mode) for path in task.files.iterdir()}
    names = ("tls.crt", "tls.key", "ca.crt", "credentials.keys", "tokens.keys")
    assert found == dict.fromkeys(names, 0o600)
    process = Path(f"/proc/{task.pid}/environ")
    if process.exists():
        assert b"PRIVATE KEY" not in process.read_bytes()
        names_left = {line.partition(b"=")[0] for line in process.read_bytes().split(b"\0")}
        assert not names_left & {b"TLS_KEY", b"CREDENTIALS_KEYS", b"TOKEN_KEYS"}


def test_the_certificate_has_the_name_that_clients_are_sent_to(task: Task) -> None:
    address = socket.gethostbyname(socket.gethostname())
    name = f"ip-{address.replace('.', '-')}.{DOMAIN}"
    host, _, port = task.address.rpartition(":")
    context = ssl.create_default_context(cafile=str(task.authority.file))
    with (
        socket.create_connection((host, int(port)), timeout=PATIENCE_S) as raw,
        context.wrap_socket(raw, server_hostname=name) as connection,
    ):
        assert connection.version() == "TLSv1.3"
    assert f"{SECURED}://{name}" in _environment(task.pid)["BUCKETLOG_ADVERTISED_LISTENERS"]


def _environment(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/environ").read_text().split("\0")
    return dict(line.split("=", 1) for line in lines if line)


def test_the_administrator_is_added_once(task: Task) -> None:
    first, second = task.run("admin"), task.run("admin")
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert "user admin is added" in first.stdout + first.stderr
    assert "is added" not in second.stdout + second.stderr


def test_a_failed_administrator_does_not_end_the_task(containers: list[dict[str, Any]]) -> None:
    by_name = {one["name"]: one for one in containers}
    assert by_name["broker"]["essential"]
    assert not by_name["admin"]["essential"]
    assert {one["name"] for one in by_name["admin"]["secrets"]} == {"ADMIN_PASSWORD"}
