"""The audit log of a broker process: logins, ends of sessions, and changes, with who and how."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import pytest
from confluent_kafka import OFFSET_END, TopicPartition
from confluent_kafka.admin import AdminClient

import bucketlog
from bucketlog import LogError, Security
from bucketlog.cli.main import main
from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.metadata.acl_bindings import AclOperation, PatternType, Permission, ResourceType
from tests.rigs.certificate_authority import Authority, rfc4514
from tests.rigs.patience import PATIENCE_S, eventually
from tests.rigs.rights import EVERYTHING
from tests.rigs.users import write_key_file
from tests.rigs.wire_client import WireClient
from tests.servers.broker_process import BrokerProcess, Start

AT_ONCE = 8
SECRET, WRONG = "a secret, =ü", "a wrong secret"
TOPIC: "bucketlog.Topic[bytes, bytes]" = bucketlog.Topic("t")
BY_CERTIFICATE = {"principal": "User:CN=root", "listener": "ADMIN", "host": "127.0.0.1"}


def address(broker: BrokerProcess, listener: str) -> str:
    return str(broker.ready["listeners"][listener])


def rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def audited(file: Path, event: str, **wanted: object) -> list[dict[str, Any]]:
    """The rows of the event with these fields, once there are some."""

    def found() -> list[dict[str, Any]]:
        return [
            row for row in rows(file) if row.get("event") == event and wanted.items() <= row.items()
        ]

    eventually(lambda: bool(found()), f"{event} {wanted}")
    return found()


def changes(file: Path, api: str) -> list[dict[str, Any]]:
    found = audited(file, "change", api=api)
    assert all(row["client_id"] and row["correlation_id"] >= 0 for row in found)
    assert all(BY_CERTIFICATE.items() <= row.items() for row in found)
    return [change for row in found for change in row["changes"]]


@pytest.fixture
def root(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def serve(start: Start, root: Authority, **more: str) -> BrokerProcess:
    issued = root.issue("broker")
    return start(
        listeners="ADMIN:SSL://127.0.0.1:0,IN:SASL_PLAINTEXT://127.0.0.1:0",
        ssl_certificate_file=str(issued.certificate),
        ssl_key_file=str(issued.key),
        ssl_ca_file=str(root.file),
        ssl_client_auth="required",
        credentials_key_file=str(write_key_file(root.folder / "keys")),
        **more,
    ).wait_until_ready()


def administrator(root: Authority) -> Security:
    own = root.issue("administrator", rfc4514("CN=root"))
    return Security(ca_file=root.file, certificate_file=own.certificate, key_file=own.key)


def check_facts(bucket: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The log itself says who asked for what."""
    assert main(["segment", "facts", str(bucket), "--every-kind", "-o", "json"]) == 0
    found = {row["fact"]: row["by"] for row in json.loads(capsys.readouterr().out)}
    assert found.pop("offsets committed") == ""
    assert found == dict.fromkeys(
        (
            "scram credential set",
            "topic created",
            "partitions added",
            "topic configured",
            "log starts moved",
            "offsets forgotten",
            "topic deleted",
        ),
        BY_CERTIFICATE["principal"],
    )


def test_what_administrators_and_users_do(
    start: Start, root: Authority, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "audit.jsonl"
    broker = serve(start, root, audit_log=str(file), log_level="error")
    security = administrator(root)
    with bucketlog.connect(address(broker, "ADMIN"), security=security) as log:
        log.users.set_password("ann", SECRET, iterations=4096)
        log.topics.create("t", partitions=1, configs={"retention.ms": "3600000"})
        with pytest.raises(LogError):
            log.topics.create("t")
        log.topics.add_partitions("t", 2)
        log.topics.configure("t", retention="2h")
        with log.producer() as producer:
            producer.send(TOPIC, b"1")
        with log.consumer(TOPIC, group="g", start="earliest", until="end") as member:
            list(member)
        admin = AdminClient({"bootstrap.servers": log.bootstrap} | security.librdkafka())
        both = [TopicPartition("t", number, OFFSET_END) for number in range(2)]
        for future in admin.delete_records(both).values():
            future.result(PATIENCE_S)
        log.groups.delete("g")
        log.topics.delete("t")
    user = Security(username="ann", password=SECRET, tls=False)
    bucketlog.connect(address(broker, "IN"), security=user).close()
    wrong = Security(username="ann", password=WRONG, tls=False)
    with pytest.raises(LogError):
        bucketlog.connect(address(broker, "IN"), security=wrong)
    with WireClient(address(broker, "IN")) as client, pytest.raises(ConnectionError):
        client.call(ApiKey.METADATA, 1, topics=None)
    with pytest.raises(LogError):
        bucketlog.connect(address(broker, "ADMIN"), security=Security(ca_file=root.file))

    assert audited(file, "login", mechanism="certificate", **BY_CERTIFICATE)
    assert audited(file, "login", mechanism="SCRAM-SHA-512", principal="User:ann", listener="IN")
    assert audited(file, "session_end", principal="User:ann")
    (failed,) = audited(file, "login_failed", user="ann", mechanism="SCRAM-SHA-512")
    assert (failed["api"], failed["host"]) == ("SaslAuthenticate", "127.0.0.1")
    assert "the password is wrong" in failed["reason"]
    assert audited(file, "login_failed", reason="a request of API key 3 before the login")
    assert audited(file, "login_failed", mechanism="TLS")
    (user_row,) = changes(file, "AlterUserScramCredentials")
    assert (user_row["name"], user_row["result"]) == ("ann", "ok")
    made, refused = changes(file, "CreateTopics")
    assert made["configs"] == {"retention.ms": "3600000"}
    assert (made["result"], refused["result"]) == ("ok", "TOPIC_ALREADY_EXISTS")
    assert [row["partitions"] for row in changes(file, "CreatePartitions")] == [2]
    configs = [row["configs"] for row in changes(file, "IncrementalAlterConfigs")]
    assert {"retention.ms": "7200000"} in configs
    assert sum(changes(file, "DeleteRecords")[0]["before"].values()) == 1
    assert changes(file, "DeleteGroups") == [{"resource": "group", "name": "g", "result": "ok"}]
    assert [row["name"] for row in changes(file, "DeleteTopics")] == ["t"]
    assert broker.terminate() == 0
    check_facts(tmp_path / "bucket", capsys)
    for text in (file.read_text(), broker.log.read_text()):
        assert SECRET not in text
        assert WRONG not in text


def test_denials_acls_and_topics_that_clients_ask_for(start: Start, tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    broker = start(
        listeners="ADMIN:PLAINTEXT://127.0.0.1:0,IN:SASL_PLAINTEXT://127.0.0.1:0",
        credentials_key_file=str(write_key_file(tmp_path / "keys")),
        authorization="true",
        super_users="User:ANONYMOUS",
        audit_log=str(file),
    ).wait_until_ready()
    rule = {"resource_type": ResourceType.TOPIC, "resource_name": "t"}
    rule |= {"resource_pattern_type": PatternType.LITERAL, "principal": "User:ann", "host": "*"}
    rule |= {"operation": AclOperation.DESCRIBE, "permission_type": Permission.ALLOW}
    user = Security(username="ann", password=SECRET, tls=False)
    with (
        WireClient(address(broker, "ADMIN")) as admin,
        bucketlog.connect(address(broker, "ADMIN")) as log,
    ):
        log.users.set_password("ann", SECRET, iterations=4096)
        with log.producer() as producer:
            producer.send(TOPIC, b"1")
        admin.call(ApiKey.CREATE_ACLS, 2, creations=[rule])
        with bucketlog.connect(address(broker, "IN"), security=user) as other:
            assert [each.name for each in other.topics.list()] == ["t"]
            with pytest.raises(LogError):
                other.topics.delete("t")
        admin.call(ApiKey.DELETE_ACLS, 2, filters=[EVERYTHING])

    def only_change(api: str) -> dict[str, Any]:
        (row,) = audited(file, "change", api=api, principal="User:ANONYMOUS", listener="ADMIN")
        (change,) = row["changes"]
        return cast(dict[str, Any], change)

    created = {"resource": "topic", "name": "t", "result": "ok", "automatic": True}
    assert only_change("Metadata") == created
    acl = {"resource": "ACL", "name": "topic t", "result": "ok", "principal": "User:ann"}
    for api, change in (("CreateAcls", "create"), ("DeleteAcls", "delete")):
        assert only_change(api).items() >= (acl | {"change": change}).items()
    (denied,) = audited(file, "denied", api="DeleteTopics")
    who = {"principal": "User:ann", "listener": "IN", "host": "127.0.0.1"}
    what = {"operation": "DELETE", "resource": "topic", "resource_name": "t"}
    assert denied.items() >= (who | what).items()
    assert [row for row in rows(file) if row.get("api") == "DeleteTopics"] == [denied]


def test_the_normal_log_is_the_default_and_failures_are_bounded(
    start: Start, root: Authority
) -> None:
    broker = serve(
        start,
        root,
        log_format="json",
        audit_refusals_per_client_per_s="1",
        login_failure_delay_ms="0",
    )
    where = address(broker, "IN")
    wrong = Security(username="bob", password=WRONG, tls=False)

    def fail(_: int) -> None:
        with pytest.raises(LogError):
            bucketlog.connect(where, security=wrong)

    def is_counted() -> bool:
        list(threads.map(fail, range(AT_ONCE)))
        return '"event": "left_out"' in broker.log.read_text()

    with ThreadPoolExecutor(AT_ONCE) as threads:
        eventually(is_counted, "some failures are only counted")
    found = [row for row in rows(broker.log) if row["logger"] == "bucketlog.audit"]
    assert {row["event"] for row in found} == {"login_failed", "left_out"}
    assert all(row["clients"] for row in found if row["event"] == "left_out")
