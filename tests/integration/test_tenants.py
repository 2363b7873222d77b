"""A broker with two tenants: how the tenant of a connection is chosen, and what is its own."""

import ssl
from pathlib import Path

import pytest
from kio.schema.errors import ErrorCode

import bucketlog
from bucketlog.log_format.wire.api_keys import ApiKey
from tests.rigs.certificate_authority import Authority
from tests.rigs.delegation_tokens import create_token, token_login
from tests.rigs.logins import log_in
from tests.rigs.users import add_user, write_key_file
from tests.rigs.wire_client import WireClient, fetch_values
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


@pytest.fixture
def root(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def own(broker: BrokerProcess, tenant: str) -> str:
    """The address of the tenant's own listener."""
    return address(broker, OWN_LISTENERS[tenant])


def topics(client: WireClient) -> set[str]:
    answer = client.call(ApiKey.METADATA, 4, topics=None, allow_auto_topic_creation=False)
    return {row.name for row in answer.topics}


def hosts(client: WireClient) -> list[str]:
    return [row.host for row in client.call(ApiKey.METADATA, 4, topics=[]).brokers]


def fill(broker: BrokerProcess) -> None:
    """Each tenant has a topic `same` with a record, a topic of its name, and a user ann."""
    for tenant in TENANTS:
        add_user(own(broker, tenant), "ann", SHA_256, password=f"secret of {tenant}")
        with bucketlog.connect(own(broker, tenant)) as log:
            log.topics.create("same")
            log.topics.create(f"only-{tenant}")
            with log.producer() as producer:
                producer.send(bucketlog.Topic("same"), tenant.encode())


def test_each_tenant_has_a_log_of_its_own(start: Start, root: Authority) -> None:
    broker = start_with_tenants(start, root)
    fill(broker)
    for tenant in TENANTS:
        with WireClient(own(broker, tenant)) as client:
            assert topics(client) == {"same", f"only-{tenant}"}
            answer = client.call(ApiKey.FETCH, 11, **fetch_values("same", {0: 0}))
            assert tenant.encode() in answer.responses[0].partitions[0].records
    assert broker.terminate() == 0
    assert "Traceback" not in broker.log.read_text()


def test_the_login_names_the_tenant(start: Start, root: Authority) -> None:
    broker = start_with_tenants(start, root)
    fill(broker)
    for tenant in TENANTS:
        with WireClient(address(broker, "REALMS")) as client:
            before = client.call(ApiKey.API_VERSIONS, 0)
            answer = log_in(client, f"ann@{tenant}", f"secret of {tenant}")
            assert answer.error_code == ErrorCode.none
            assert topics(client) == {"same", f"only-{tenant}"}
            after = client.call(ApiKey.API_VERSIONS, 0)
            assert after.api_keys == before.api_keys
    for user, password in (
        (f"ann@{ACME}", f"secret of {GLOBEX}"),
        ("ann", f"secret of {ACME}"),
        ("ann@nobody", f"secret of {ACME}"),
        (f"ann@{ACME}@{GLOBEX}", f"secret of {ACME}"),
        (f"@{ACME}", f"secret of {ACME}"),
    ):
        with WireClient(address(broker, "REALMS")) as client:
            answer = log_in(client, user, password)
            assert answer.error_code == ErrorCode.sasl_authentication_failed
            assert ACME not in answer.error_message
    with WireClient(address(broker, "REALMS")) as client:
        client.send(ApiKey.METADATA, 4, topics=None, allow_auto_topic_creation=False)
        assert client.read_frame() is None, "no request is served before the login"


def test_a_delegation_token_belongs_to_its_tenant(start: Start, root: Authority) -> None:
    keys = str(write_key_file(root.folder / "token_keys"))
    broker = start_with_tenants(start, root, delegation_token_key_file=keys)
    fill(broker)
    made = {}
    for tenant in TENANTS:
        with WireClient(address(broker, "REALMS")) as client:
            log_in(client, f"ann@{tenant}", f"secret of {tenant}")
            made[tenant] = create_token(client)
            assert made[tenant].error_code == ErrorCode.none
            answer = client.call(ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, owners=None)
            assert [token.token_id for token in answer.tokens] == [made[tenant].token_id]
    for tenant in TENANTS:
        with WireClient(address(broker, "REALMS")) as client:
            assert token_login(client, made[tenant], f"@{tenant}").error_code == ErrorCode.none
            assert topics(client) == {"same", f"only-{tenant}"}
    for realm in (f"@{GLOBEX}", "", "@nobody"):
        with WireClient(address(broker, "REALMS")) as client:
            answer = token_login(client, made[ACME], realm)
            assert answer.error_code == ErrorCode.sasl_authentication_failed
    with WireClient(address(broker, "REALMS")) as client:
        log_in(client, f"ann@{GLOBEX}", f"secret of {GLOBEX}")
        ended = client.call(
            ApiKey.EXPIRE_DELEGATION_TOKEN, 2, hmac=made[ACME].hmac, expiry_time_period=-1
        )
        assert ended.error_code == ErrorCode.delegation_token_not_found


def test_the_server_name_names_the_tenant(start: Start, root: Authority) -> None:
    broker = start_with_tenants(start, root)
    fill(broker)
    tls = ssl.create_default_context(cafile=str(root.file))
    for tenant in TENANTS:
        for name in (f"{tenant}.{HOST}", f"{tenant.upper()}.{HOST}"):
            with WireClient(address(broker, "NAMES"), tls=tls, server_name=name) as client:
                answer = log_in(client, "ann", f"secret of {tenant}")
                assert answer.error_code == ErrorCode.none
                assert topics(client) == {"same", f"only-{tenant}"}
                assert hosts(client) == [f"{tenant}.localhost"]
    with WireClient(address(broker, "NAMES"), tls=tls, server_name=f"{ACME}.{HOST}") as client:
        answer = log_in(client, "ann", f"secret of {GLOBEX}")
        assert answer.error_code == ErrorCode.sasl_authentication_failed
    with WireClient(address(broker, "NAMES"), tls=tls, server_name=HOST) as client:
        answer = log_in(client, f"ann@{ACME}", f"secret of {ACME}")
        assert answer.error_code == ErrorCode.none, "without a name, the login decides"
        assert topics(client) == {"same", f"only-{ACME}"}
