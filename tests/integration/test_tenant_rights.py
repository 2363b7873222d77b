"""Users, ACLs, quotas and tokens of two tenants that use equal names."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.integration.test_broker_process import CONFIGURATION, refusal
from tests.rigs.certificate_authority import Authority, replace_file
from tests.rigs.logins import authenticate, handshake, log_in
from tests.rigs.tokens import AUDIENCE, ISSUER, Provider
from tests.rigs.users import add_user
from tests.rigs.wire_client import WireClient, build_batch
from tests.scenarios.round_trip import create_topic
from tests.servers.broker_process import BrokerProcess, Start
from tests.servers.tenant_brokers import (
    ACME,
    GLOBEX,
    HOST,
    OWN_LISTENERS,
    TENANTS,
    address,
    start_with_tenants,
)

SHA_256 = "SCRAM-SHA-256"
SUPER = {"authorization": "true", "super_users": "User:ANONYMOUS"}
DENIED = ErrorCode.topic_authorization_failed
INVALID = b'{"status":"invalid_token"}'


@pytest.fixture
def root(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@contextmanager
def logged_in(broker: BrokerProcess, tenant: str) -> Iterator[WireClient]:
    with WireClient(address(broker, "REALMS"), client_id="same") as client:
        assert not log_in(client, f"ann@{tenant}", f"secret of {tenant}").error_code
        yield client


def prepare(broker: BrokerProcess) -> None:
    for tenant in TENANTS:
        own = address(broker, OWN_LISTENERS[tenant])
        add_user(own, "ann", SHA_256, password=f"secret of {tenant}")
        create_topic(own, "same", 1)


def produce(client: WireClient, size_bytes: int = 10) -> Any:
    """The answer; `throttle_time` is of the answer."""
    data = [{"index": 0, "records": build_batch([(None, bytes(size_bytes))])}]
    topics = [{"name": "same", "partition_data": data}]
    return client.call(ApiKey.PRODUCE, 9, acks=-1, timeout=20_000, topic_data=topics)


def code(answer: Any) -> ErrorCode:
    return ErrorCode(answer.responses[0].partition_responses[0].error_code)


def test_an_acl_is_a_rule_of_its_tenant(start: Start, root: Authority) -> None:
    broker = start_with_tenants(start, root, **SUPER)
    prepare(broker)
    rule = {"resource_type": 2, "resource_name": "same", "resource_pattern_type": 3, "host": "*"}
    rule |= {"principal": "User:ann", "operation": 4, "permission_type": 3}
    with WireClient(address(broker, "ACME")) as admin:
        assert not admin.call(ApiKey.CREATE_ACLS, 1, creations=[rule]).results[0].error_code
    with logged_in(broker, ACME) as ann, logged_in(broker, GLOBEX) as other:
        assert code(produce(ann)) is ErrorCode.none
        assert code(produce(other)) is DENIED


def test_a_quota_is_one_of_its_tenant(start: Start, root: Authority) -> None:
    broker = start_with_tenants(start, root)
    prepare(broker)
    quota = {"key": "producer_byte_rate", "value": 10.0, "remove": False}
    entity = [{"entity_type": "user", "entity_name": "ann"}]
    with WireClient(address(broker, "ACME")) as admin:
        entries = [{"entity": entity, "ops": [quota]}]
        answer = admin.call(ApiKey.ALTER_CLIENT_QUOTAS, 0, entries=entries, validate_only=False)
        assert not answer.entries[0].error_code
    with logged_in(broker, ACME) as ann, logged_in(broker, GLOBEX) as other:
        assert produce(ann, 1_000).throttle_time.total_seconds() > 0
        assert produce(other, 1_000).throttle_time.total_seconds() == 0
    with WireClient(address(broker, "GLOBEX")) as admin:
        found = admin.call(ApiKey.DESCRIBE_CLIENT_QUOTAS, 0, components=[], strict=False)
        assert not found.entries


def token_settings(root: Authority, provider: Provider, **more: str) -> dict[str, str]:
    file = root.folder / "jwks.json"
    replace_file(file, provider.document)
    return {
        "sasl_mechanisms": "OAUTHBEARER",
        "oauthbearer_jwks_file": str(file),
        "oauthbearer_issuer": ISSUER,
        "listeners": "NAMES:SASL_SSL://localhost:0",
    } | more


def token_answer(broker: BrokerProcess, root: Authority, tenant: str, token: str) -> ErrorCode:
    """The outcome of a login at the tenant's server name; "" is no tenant's."""
    tls = ssl.create_default_context(cafile=str(root.file))
    name = f"{tenant}.{HOST}" if tenant else HOST
    with WireClient(address(broker, "NAMES"), tls=tls, server_name=name) as client:
        if handshake(client, "OAUTHBEARER") is not ErrorCode.none:
            return ErrorCode.unsupported_sasl_mechanism
        answer = authenticate(client, f"n,,\x01auth=Bearer {token}\x01\x01".encode())
        if answer.auth_bytes == INVALID:
            return ErrorCode.sasl_authentication_failed
        assert not answer.error_code
        client.send(ApiKey.METADATA, 4, topics=None, allow_auto_topic_creation=False)
        topics = {row.name for row in client.receive(ApiKey.METADATA, 4).topics}
        assert topics == set(), "its tenant is served"
        return ErrorCode.none


def start_with_tokens(start: Start, root: Authority, text: str, **settings: str) -> BrokerProcess:
    file = root.folder / "tokens.toml"
    file.write_text(text)
    hosts = ("localhost", HOST, *(f"{name}.{HOST}" for name in TENANTS))
    issued = root.issue("broker", hosts=hosts)
    return start(
        tenants_file=str(file),
        ssl_certificate_file=str(issued.certificate),
        ssl_key_file=str(issued.key),
        **settings,
    )


def test_a_claim_makes_a_token_good_for_one_tenant(start: Start, root: Authority) -> None:
    provider = Provider()
    settings = token_settings(
        root, provider, oauthbearer_audiences=AUDIENCE, tenant_claim_name="org"
    )
    broker = start_with_tokens(start, root, f"[{ACME}]\n[{GLOBEX}]\n", **settings)
    broker.wait_until_ready()
    refused = ErrorCode.sasl_authentication_failed
    mine = provider.token(org=ACME)
    assert token_answer(broker, root, ACME, mine) is ErrorCode.none
    assert token_answer(broker, root, GLOBEX, mine) is refused
    assert token_answer(broker, root, "", mine) is ErrorCode.none, "the claim names the tenant"
    for org in ("nobody", "", None, [ACME], f"{ACME}@{GLOBEX}"):
        for tenant in (ACME, ""):
            assert token_answer(broker, root, tenant, provider.token(org=org)) is refused
    smuggled = provider.token(org=ACME, sub=f"ann@{GLOBEX}")
    assert token_answer(broker, root, "", smuggled) is ErrorCode.none
    lines = [line for line in broker.log.read_text().splitlines() if "logged in" in line]
    assert f"tenant {ACME}: User:ann@{GLOBEX} logged in" in lines[-1]


def test_audiences_make_a_token_good_for_one_tenant(start: Start, root: Authority) -> None:
    provider = Provider()
    text = "".join(f'[{name}]\noauthbearer_audiences = "for-{name}"\n' for name in TENANTS)
    broker = start_with_tokens(start, root, text, **token_settings(root, provider))
    broker.wait_until_ready()
    mine = provider.token(aud=f"for-{ACME}")
    assert token_answer(broker, root, ACME, mine) is ErrorCode.none
    assert token_answer(broker, root, GLOBEX, mine) is ErrorCode.sasl_authentication_failed
    assert token_answer(broker, root, "", mine) is ErrorCode.unsupported_sasl_mechanism


def test_tokens_that_are_good_for_all_tenants_are_refused(start: Start, root: Authority) -> None:
    settings = token_settings(root, Provider(), oauthbearer_audiences=AUDIENCE)
    broker = start_with_tokens(start, root, f"[{ACME}]\n[{GLOBEX}]\n", **settings)
    code, said = refusal(broker)
    assert code == CONFIGURATION
    assert "would accept each other's tokens" in said
