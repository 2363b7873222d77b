"""The SDK and the command line against brokers with TLS and logins."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import bucketlog
from bucketlog import Security
from bucketlog.log_format.errors import BucketlogError, LogError
from tests.rigs.certificate_authority import Authority, rfc4514
from tests.rigs.shell import Shell
from tests.rigs.users import add_user, write_key_file
from tests.servers.broker_process import BrokerProcess, Start

pytestmark = pytest.mark.long

SECRET = "a secret, =ü"
MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
TOPIC: "bucketlog.Topic[bytes, bytes]" = bucketlog.Topic("t")


@pytest.fixture
def root(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def serve(start: Start, root: Authority, **more: str) -> BrokerProcess:
    issued = root.issue("broker")
    broker = start(
        listeners="ADMIN:PLAINTEXT://127.0.0.1:0,IN:SASL_SSL://127.0.0.1:0,"
        "TLS:SSL://127.0.0.1:0,OPEN:SASL_PLAINTEXT://127.0.0.1:0",
        ssl_certificate_file=str(issued.certificate),
        ssl_key_file=str(issued.key),
        credentials_key_file=str(write_key_file(root.folder / "keys")),
        sasl_mechanisms=",".join((*MECHANISMS, "PLAIN")),
        transactions="true",
        **more,
    ).wait_until_ready()
    for mechanism in MECHANISMS:
        add_user(address(broker, "ADMIN"), "ann", mechanism, SECRET)
    return broker


def address(broker: BrokerProcess, listener: str) -> str:
    return str(broker.ready["listeners"][listener])


def login(root: Authority, **more: Any) -> Security:
    usual: dict[str, Any] = {"ca_file": root.file, "username": "ann", "password": SECRET}
    return Security(**usual | more)


def failure(where: str, security: Security | None) -> BucketlogError:
    with pytest.raises(BucketlogError) as caught:
        bucketlog.connect(where, security=security, timeout_s=20)
    told = f"{caught.value!s} {caught.value!r}"
    assert SECRET not in told
    assert "wrong" not in told
    return caught.value


def check_all_that_the_sdk_does(where: str, security: Security) -> None:
    with bucketlog.connect(where, security=security) as log:
        log.topics.create("t", partitions=1)
        with log.producer() as producer:
            producer.send(TOPIC, b"1")
        with log.transaction("id") as transaction:
            transaction.send(TOPIC, b"2")
        with log.consumer(TOPIC, start="earliest", until="end") as consumer:
            assert [record.value for record in consumer] == [b"1", b"2"]
        with log.consumer(TOPIC, group="g", start="earliest", until="end") as member:
            assert [record.value for record in member] == [b"1", b"2"]
        assert [info.group for info in log.groups.list()] == ["g"]
        assert [row.transactional_id for row in log.transactions.list()] == ["id"]
        assert log.transactions.describe("id").state == "CompleteCommit"
        log.topics.delete("t")


@pytest.mark.parametrize("mechanism", [*MECHANISMS, "PLAIN"])
def test_logins_over_tls(start: Start, root: Authority, mechanism: str) -> None:
    broker = serve(start, root)
    check_all_that_the_sdk_does(address(broker, "IN"), login(root, mechanism=mechanism))
    assert SECRET not in broker.log.read_text()


def test_tls_alone_and_logins_alone(start: Start, root: Authority) -> None:
    broker = serve(start, root)
    check_all_that_the_sdk_does(address(broker, "TLS"), Security(ca_file=root.file))
    check_all_that_the_sdk_does(
        address(broker, "OPEN"), Security(username="ann", password=SECRET, tls=False)
    )


def test_without_waiting(start: Start, root: Authority) -> None:
    broker = serve(start, root)
    where = address(broker, "IN")

    async def use(security: Security) -> list[bytes | None]:
        async with bucketlog.aconnect(where, security=security) as log:
            await log.topics.ensure("t")
            async with log.producer() as producer:
                await producer.send(TOPIC, b"1")
            async with log.consumer(TOPIC, start="earliest", until="end") as consumer:
                return [record.value async for record in consumer]

    assert asyncio.run(use(login(root))) == [b"1"]
    with pytest.raises(LogError, match="refuses the login of 'ann'"):
        asyncio.run(use(login(root, password="wrong")))


def test_certificates_of_clients(start: Start, root: Authority) -> None:
    broker = serve(start, root, ssl_client_auth="required", ssl_ca_file=str(root.file))
    own = root.issue("ann", rfc4514("CN=ann"))
    security = Security(ca_file=root.file, certificate_file=own.certificate, key_file=own.key)
    check_all_that_the_sdk_does(address(broker, "TLS"), security)
    error = failure(address(broker, "TLS"), Security(ca_file=root.file))
    assert error.code == "SSL"
    assert "give certificate_file and key_file" in error.remedy


def test_errors_say_what_to_do(start: Start, root: Authority, tmp_path: Path) -> None:
    broker = serve(start, root)
    (tmp_path / "other").mkdir()
    stranger = Authority(tmp_path / "other")
    secured, tls, plain = (address(broker, name) for name in ("IN", "TLS", "ADMIN"))
    cases: list[tuple[str, Security, str, str]] = [
        (secured, login(stranger), "SSL", "give ca_file"),
        (secured, Security(username="ann", password=SECRET), "SSL", "give ca_file"),
        (secured, login(root, password="wrong"), "SASL_AUTHENTICATION_FAILED", "check user"),
        (secured, login(root, username="bob"), "SASL_AUTHENTICATION_FAILED", "check user"),
        (
            address(broker, "OPEN"),
            Security(username="ann", password="wrong", tls=False),
            "SASL_AUTHENTICATION_FAILED",
            "check user",
        ),
        (secured, Security(ca_file=root.file), "TRANSPORT", "give username and password"),
        (tls, login(root), "AUTHENTICATION", "may have no logins"),
        (plain, login(root), "TRANSPORT", "use the port of a listener with TLS"),
        (plain, Security(ca_file=root.file), "TRANSPORT", "use the port of a listener with TLS"),
    ]
    for where, security, code, remedy in cases:
        error = failure(where, security)
        assert (error.code, remedy in error.remedy) == (code, True), error
        assert where in error.message


def test_the_name_in_the_certificate(start: Start, root: Authority) -> None:
    issued = root.issue("elsewhere", hosts=("broker.example.com",))
    broker = start(
        listeners="TLS:SSL://127.0.0.1:0",
        ssl_certificate_file=str(issued.certificate),
        ssl_key_file=str(issued.key),
    ).wait_until_ready()
    security = Security(ca_file=root.file)
    error = failure(address(broker, "TLS"), security)
    assert "connect by a name that is in the certificate" in error.remedy
    with bucketlog.connect(
        address(broker, "TLS"), security=replace(security, verify_hostname=False)
    ) as log:
        log.topics.create("t")


def test_the_command_line(start: Start, root: Authority, tmp_path: Path) -> None:
    broker = serve(start, root)
    shell = Shell(address(broker, "IN"))
    shell.environment |= {
        "BUCKETLOG_CA_FILE": str(root.file),
        "BUCKETLOG_USERNAME": "ann",
        "BUCKETLOG_PASSWORD": SECRET,
        "XDG_CONFIG_HOME": str(tmp_path),
    }
    shell.ok("topic", "create", "t")
    shell.ok("produce", "t", stdin=b"1\n2\n")
    assert shell.ok("consume", "t", "--from", "start", "--until-end") == b"1\n2\n"
    assert json.loads(shell.ok("transaction", "list", "-o", "json")) == []
    digest = json.loads(shell.ok("doctor", address(broker, "IN"), "-o", "json"))
    assert digest["partitions"][0]["records"] == 2
    bench = shell.ok(
        *("bench", "produce", "load", "--create", "--records", "100", "-o", "json"),
    )
    assert json.loads(bench)
    complaint = shell.failing(
        1, "topic", "list", "--mechanism", "SCRAM-SHA-256", "--username", "bob"
    )
    assert "refuses the login of 'bob'" in complaint
    del shell.environment["BUCKETLOG_PASSWORD"]
    file = tmp_path / "password"
    file.write_text(f"{SECRET}\n")
    file.chmod(0o600)
    assert b"load" in shell.ok("topic", "list", "--password-file", str(file))


def test_a_plaintext_client_gets_a_hint(start: Start, root: Authority) -> None:
    broker = serve(start, root)
    asks: list[Callable[[bucketlog.Log], object]] = [
        lambda log: log.cluster_id(),
        lambda log: log.topics.list(),
    ]
    for listener in ("TLS", "IN", "OPEN"):
        with bucketlog.connect(address(broker, listener), timeout_s=2) as log:
            for ask in asks:
                with pytest.raises(LogError, match=r"need security=Security\(\.\.\.\)"):
                    ask(log)
