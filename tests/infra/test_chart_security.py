"""TLS, logins and ACLs of the Helm chart: rendered, judged by the schemas of Kubernetes, and run as
a real broker with secrets as the kubelet mounts them.
"""

import os
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import kafka
import pytest
from kafka.admin import NewTopic
from kafka.errors import TopicAuthorizationFailedError

from bucketlog.stateless_broker.assembly.tenant_plan import load_tenants
from bucketlog.stateless_broker.settings.broker import BrokerSettings
from tests.infra.containers_here import running_broker
from tests.infra.programs import installed
from tests.infra.test_chart import (
    NEEDED,
    VERSIONS,
    Kubernetes,
    Manifest,
    Render,
    RenderError,
    of_kind,
    rendered,
)
from tests.rigs.certificate_authority import Authority
from tests.rigs.patience import PATIENCE_S, eventually
from tests.rigs.users import write_key_file
from tests.servers.cluster import free_port
from tests.servers.components import Components

pytestmark = pytest.mark.long

SECURED = NEEDED | {
    "protocol": "SASL_SSL",
    "tls": {"secretName": "broker-tls", "clientAuth": "requested"},
    "logins": {
        "keySecretName": "credentials",
        "delegationTokenKeySecretName": "token-keys",
        "mechanisms": ["SCRAM-SHA-512", "PLAIN"],
    },
    "authorization": {"enabled": True, "superUsers": ["User:admin"]},
    "redis": {"secretName": "bucketlog-redis", "tlsSecretName": "redis-tls"},
    "settings": {"BUCKETLOG_SSL_RELOAD_INTERVAL_MS": "100"},
}
PROVIDER = {
    "jwksUrl": "https://login.example.com/certs",
    "issuer": "https://login.example.com",
    "audiences": ["kafka", "tests"],
    "caSecretName": "provider-ca",
}
TOKENS = NEEDED | {
    "protocol": "SASL_SSL",
    "tls": {"secretName": "broker-tls"},
    "logins": {"mechanisms": ["OAUTHBEARER"], "oauthbearer": PROVIDER},
}
SSL = NEEDED | {"protocol": "SSL", "tls": {"secretName": "broker-tls", "clientAuth": "required"}}
TENANTS = SECURED | {"tenants": {"file": '[acme]\n\n[globex]\nsuper_users = "User:root"\n'}}
PASSWORD = "a password"
POD_DOMAIN = "demo-brokers.default.svc.cluster.local"
POD_NAME = f"127-0-0-1.{POD_DOMAIN}"
SERVICE = "demo.default.svc"


@pytest.fixture(scope="module")
def render(components: Components, tmp_path_factory: pytest.TempPathFactory) -> Render:
    return partial(rendered, installed("helm", components), tmp_path_factory.mktemp("values"))


def pod_of(manifests: list[Manifest]) -> Manifest:
    (deployment,) = of_kind(manifests, "Deployment")
    pod: Manifest = deployment["spec"]["template"]["spec"]
    return pod


def environment_of(pod: Manifest) -> dict[str, str]:
    (broker,) = pod["containers"]
    return {one["name"]: one.get("value", "") for one in broker["env"]}


@pytest.mark.parametrize(
    "values", [SECURED, SSL, TOKENS, TENANTS], ids=["SASL_SSL", "SSL", "tokens", "tenants"]
)
@pytest.mark.parametrize("version", VERSIONS)
def test_kubernetes_knows_every_field(
    values: dict[str, Any], version: str, render: Render, components: Components
) -> None:
    kubernetes = Kubernetes(installed("schemas", components))
    manifests = render(values, version)
    assert [text for one in manifests for text in kubernetes.complaints(one, version)] == []
    names = {one["metadata"]["name"] for one in of_kind(manifests, "Service")}
    assert names == {"demo", "demo-brokers", "demo-metrics"}
    known = {f"BUCKETLOG_{name.upper()}" for name in BrokerSettings.model_fields}
    ours = {name for name in environment_of(pod_of(manifests)) if name.startswith("BUCKETLOG_")}
    assert ours <= known


def test_only_secrets_that_are_needed_are_mounted(render: Render) -> None:
    found = {
        name: {
            one["secret"]["secretName"]
            for one in pod_of(render(values))["volumes"]
            if "secret" in one
        }
        for name, values in (
            ("needed", NEEDED),
            ("SSL", SSL),
            ("SASL_SSL", SECURED),
            ("tokens", TOKENS),
        )
    }
    assert found == {
        "needed": set(),
        "SSL": {"broker-tls"},
        "SASL_SSL": {"broker-tls", "credentials", "token-keys", "redis-tls"},
        "tokens": {"broker-tls", "provider-ca"},
    }


def test_a_broker_accepts_the_provider_of_tokens(
    render: Render, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    variables = environment_of(pod_of(render(TOKENS)))
    names = {name for name in variables if "OAUTHBEARER" in name or "SASL" in name}
    for name in names:
        monkeypatch.setenv(name, variables[name])
    settings = BrokerSettings(bucket_url="memory:")
    assert settings.sasl_mechanisms == "OAUTHBEARER"
    assert settings.oauthbearer_issuer == PROVIDER["issuer"]
    assert settings.oauthbearer_audiences == "kafka,tests"
    assert str(settings.oauthbearer_jwks_ca_file) == "/etc/bucketlog/provider/ca.crt"
    assert "BUCKETLOG_CREDENTIALS_KEY_FILE" not in variables


def test_nobody_without_a_name_is_a_super_user_of_a_listener_without_logins(render: Render) -> None:
    authorization = {"authorization": {"enabled": True, "superUsers": ["User:CN=ops"]}}
    assert environment_of(pod_of(render(SSL | authorization)))["BUCKETLOG_SUPER_USERS"] == (
        "User:CN=ops"
    )
    assert "ADMIN" not in environment_of(pod_of(render(SSL)))["BUCKETLOG_LISTENERS"]


def test_a_broker_reads_the_file_of_tenants(
    render: Render, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifests = render(TENANTS)
    (settings,) = of_kind(manifests, "ConfigMap")
    pod, variables = pod_of(manifests), environment_of(pod_of(manifests))
    assert {"name": settings["metadata"]["name"]} in [
        one.get("configMap") for one in pod["volumes"]
    ]
    folder, _, name = variables["BUCKETLOG_TENANTS_FILE"].rpartition("/")
    assert folder in [one["mountPath"] for one in pod["containers"][0]["volumeMounts"]]
    file = tmp_path / name
    file.write_text(settings["data"][name])
    for name, value in variables.items():
        if name.startswith("BUCKETLOG_") and value:
            monkeypatch.setenv(name, value)
    monkeypatch.setenv("BUCKETLOG_TENANTS_FILE", str(file))
    monkeypatch.setenv("BUCKETLOG_REDIS_URL", "redis://sequencer")
    monkeypatch.setenv("BUCKETLOG_ADVERTISED_LISTENERS", f"SASL_SSL://{POD_NAME}:9092")
    plans = load_tenants(BrokerSettings())
    assert {plan.name: plan.settings.super_users for plan in plans} == {
        "acme": "User:admin",
        "globex": "User:root",
    }
    assert {plan.listeners[0].advertised_host for plan in plans} == {POD_NAME}
    (deployment,) = of_kind(manifests, "Deployment")
    (other,) = of_kind(render(TENANTS | {"tenants": {"file": "[acme]\n"}}), "Deployment")
    annotations = [
        one["spec"]["template"]["metadata"]["annotations"] for one in (deployment, other)
    ]
    assert annotations[0] != annotations[1], "brokers restart when the file changes"


REFUSED = {
    "tenants without logins": (SSL | {"tenants": {"file": "[acme]"}}, "protocol"),
    "TLS without a certificate": (SECURED | {"tls": {}}, "/tls/secretName"),
    "logins without a key": (SECURED | {"logins": {}}, "/logins/keySecretName"),
    "tokens without a provider": (
        TOKENS | {"logins": {"mechanisms": ["OAUTHBEARER"]}},
        "/logins/oauthbearer",
    ),
    "tokens without TLS": (TOKENS | {"protocol": "SASL_PLAINTEXT"}, "protocol"),
    "tokens and passwords without a key": (
        TOKENS | {"logins": {"mechanisms": ["OAUTHBEARER", "PLAIN"], "oauthbearer": PROVIDER}},
        "/logins/keySecretName",
    ),
    "delegation tokens without SCRAM": (
        SECURED
        | {
            "logins": {
                "keySecretName": "k",
                "delegationTokenKeySecretName": "t",
                "mechanisms": ["PLAIN"],
            }
        },
        "/logins/mechanisms",
    ),
    "an unknown protocol": (NEEDED | {"protocol": "TLS"}, "protocol"),
    "an unknown mechanism": (
        SECURED | {"logins": {"keySecretName": "k", "mechanisms": ["GSSAPI"]}},
        "mechanisms",
    ),
    "a super user without a kind": (
        SECURED | {"authorization": {"enabled": True, "superUsers": ["admin"]}},
        "superUsers",
    ),
    "a setting of the chart's own": (
        SECURED | {"settings": {"BUCKETLOG_LISTENERS": "SSL://:1"}},
        "BUCKETLOG_LISTENERS",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refuses(case: str, render: Render) -> None:
    values, said = REFUSED[case]
    with pytest.raises(RenderError, match=said):
        render(values)


# A pod on this machine ----------------------------------------------------------------------------


class Mounted:
    """A secret as the kubelet mounts it: the files are links through a link, which an update of
    the secret replaces in one step."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._updates = 0

    def update(self, files: Mapping[str, bytes]) -> None:
        self._updates += 1
        version = self._folder / f"..{self._updates}"
        version.mkdir(parents=True)
        for name, content in files.items():
            (version / name).write_bytes(content)
            (version / name).chmod(0o440 if os.getuid() == 0 else 0o400)
            link = self._folder / name
            if not link.is_symlink():
                link.symlink_to(f"..data/{name}")
        fresh = self._folder / "..data_tmp"
        fresh.symlink_to(version.name)
        fresh.replace(self._folder / "..data")


@dataclass
class Pod:
    """`ports` are by the ports of the chart."""

    certificate: Mounted
    authority: Authority
    ports: dict[str, int]

    def context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.authority.file))

    def present(self, name: str) -> bytes:
        """Renew the certificate; returns it as clients will see it."""
        issued = self.authority.issue(name, hosts=(f"*.{POD_DOMAIN}", SERVICE))
        certificate, key = issued.certificate.read_bytes(), issued.key.read_bytes()
        self.certificate.update(
            {"tls.crt": certificate, "tls.key": key, "ca.crt": self.authority.pem}
        )
        return ssl.PEM_cert_to_DER_cert(certificate.decode())

    def seen(self) -> bytes | None:
        """The certificate that a client gets who connects to the pod's name."""
        raw = socket.create_connection(("127.0.0.1", self.ports["9092"]), timeout=PATIENCE_S)
        with (
            raw,
            self.context().wrap_socket(raw, server_hostname=POD_NAME) as connection,
        ):
            return connection.getpeercert(binary_form=True)

    def add_user(self, name: str) -> None:
        """As the chart's notes say."""
        at = f"127.0.0.1:{self.ports['9091']}"
        subprocess.run(
            [sys.executable, "-m", "bucketlog.cli", "user", "add", name, "-b", at],
            input=f"{PASSWORD}\n",
            text=True,
            check=True,
        )

    def admin_client(self, user: str) -> kafka.KafkaAdminClient:
        return kafka.KafkaAdminClient(
            bootstrap_servers=f"{SERVICE}:{self.ports['9092']}",
            security_protocol="SASL_SSL",
            ssl_context=self.context(),
            sasl_mechanism="SCRAM-SHA-512",
            sasl_plain_username=user,
            sasl_plain_password=PASSWORD,
        )


@pytest.fixture
def pod(render: Render, tmp_path: Path, redis_url: str) -> Iterator[Pod]:
    """The container's command and variables, with its paths, ports and stores on this machine."""
    found = pod_of(render(SECURED))
    (container,) = found["containers"]
    mounts = {one["name"]: one["mountPath"] for one in container["volumeMounts"]}
    secrets = {name: tmp_path / "secrets" / name for name in mounts if name != "tmp"}
    ports = {name: free_port() for name in ("9091", "9092")}

    def here(text: str) -> str:
        for name, folder in secrets.items():
            text = text.replace(mounts[name], str(folder))
        for port, own in ports.items():
            text = text.replace(f":{port}", f":{own}")
        return text.replace("0.0.0.0", "127.0.0.1")

    pod = Pod(Mounted(secrets["tls"]), Authority(tmp_path), ports)
    pod.present("first")
    keys = write_key_file(tmp_path / "keys").read_bytes()
    Mounted(secrets["logins"]).update({"credentials.keys": keys})
    token_keys = write_key_file(tmp_path / "token_keys").read_bytes()
    Mounted(secrets["tokens"]).update({"tokens.keys": token_keys})
    variables = {name: here(text) for name, text in environment_of(found).items()} | {
        "POD_IP": "127.0.0.1",
        "BUCKETLOG_BUCKET_URL": f"file://{tmp_path}/bucket",
        "BUCKETLOG_REDIS_URL": redis_url,
        "BUCKETLOG_HTTP_PORT": "0",
        "BUCKETLOG_SEQUENCER_TIMEOUT_MS": "0",
    }
    (start,) = container["args"]
    with running_broker([*container["command"], here(start)], variables, tmp_path):
        yield pod


def test_a_pod_shows_a_renewed_certificate(pod: Pod) -> None:
    first = pod.seen()
    renewed = pod.present("second")
    assert renewed != first
    eventually(lambda: pod.seen() == renewed)


def test_users_log_in_and_acls_decide(pod: Pod, monkeypatch: pytest.MonkeyPatch) -> None:
    resolve = socket.getaddrinfo

    def here(host: str | None, *more: Any, **named: Any) -> Any:
        """The cluster's DNS."""
        return resolve("127.0.0.1" if host in (SERVICE, POD_NAME) else host, *more, **named)

    monkeypatch.setattr(socket, "getaddrinfo", here)
    for user in ("admin", "ann"):
        pod.add_user(user)
    with closing(pod.admin_client("admin")) as admin:
        admin.create_topics([NewTopic("t", 1, 1)])
        assert admin.list_topics() == ["t"]
        (broker,) = admin.describe_cluster()["brokers"]
        assert broker["host"] == POD_NAME
    with closing(pod.admin_client("ann")) as ann:
        assert ann.list_topics() == []
        with pytest.raises(TopicAuthorizationFailedError):
            ann.create_topics([NewTopic("u", 1, 1)])
