"""The audit log: its events, its bounds, and what never gets into a line."""

import asyncio
import json
import logging
import stat
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from bucketlog.metadata.acl_bindings import AclOperation, ResourceType
from bucketlog.metadata.acls import Resource
from bucketlog.stateless_broker.handlers.audited_changes import (
    DETAILS_MAX,
    created_topics,
)
from bucketlog.stateless_broker.network import audit
from bucketlog.stateless_broker.network.apis import RequestHeader, WrittenResponse
from bucketlog.stateless_broker.network.audit import (
    CHANGES_A_LINE,
    CHANGES_CHARS_MAX,
    TEXT_CHARS_MAX,
    AuditLog,
    Change,
    HttpCaller,
)
from bucketlog.stateless_broker.network.bounded_lines import CLIENTS_NAMED_MAX, LineLimits
from bucketlog.stateless_broker.network.connection import ANONYMOUS, Connection
from bucketlog.stateless_broker.network.connection_owner import Service
from bucketlog.stateless_broker.network.exchange import Frame, ResponseSlot
from bucketlog.stateless_broker.network.request_figures import RequestFigures
from bucketlog.stateless_broker.process.audit_output import open_audit_log
from bucketlog.stateless_broker.process.log_lines import JsonLines
from bucketlog.stateless_broker.settings.broker import BrokerSettings

HEADER = RequestHeader(ApiKey.CREATE_TOPICS, 7, 5, "cli\nent")


class Clock:
    def __init__(self) -> None:
        self.s = 100.0

    def __call__(self) -> float:
        return self.s


def _nothing(connection: Connection, frame: Frame, answer: ResponseSlot) -> None:
    """Serves nobody."""


class Client:
    """In a connection's place."""

    def __init__(self, host: str = "10.0.0.1", tenant: str = "") -> None:
        self.service = Service(_nothing, RequestFigures(slow_request_ms=0), tenant=tenant)
        self.host, self.peer, self.listener = host, f"({host!r}, 1)", "IN"
        self.principal, self.login, self.is_gone = "User:ann", None, False


def client(host: str = "10.0.0.1", tenant: str = "") -> Connection:
    return cast(Connection, Client(host, tenant))


class Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.text: list[str] = []
        self.setFormatter(JsonLines())

    def emit(self, record: logging.LogRecord) -> None:
        self.text.append(self.format(record))

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text]


@pytest.fixture
def lines() -> Iterator[Lines]:
    handler, level = Lines(), audit.logger.level
    audit.logger.addHandler(handler)
    audit.logger.setLevel(logging.INFO)
    yield handler
    audit.logger.removeHandler(handler)
    audit.logger.setLevel(level)


def make(clock: Clock, per_client: int = 3, in_all: int = 5) -> AuditLog:
    return AuditLog(LineLimits(per_client, in_all), now_s=clock)


def write(log: AuditLog, *changes: Change, host: str = "10.0.0.1") -> None:
    asyncio.run(log.changed(client(host), HEADER, changes))


def test_logins_at_the_http_port(lines: Lines) -> None:
    clock = Clock()
    log = make(clock, per_client=1, in_all=5)
    ann, stranger = (HttpCaller(name, "10.0.0.1", "peer") for name in ("User:ann", ANONYMOUS))
    log.http_logged_in(ann)
    for _ in range(3):
        log.http_login_failed(stranger, "ann\n", "the password is wrong")
    for _ in range(3):
        log.http_denied(ann, AclOperation.READ, Resource(ResourceType.TOPIC, "*"))
    log.close()
    login, failed, denied, *left_out = lines.rows
    assert login["message"] == "User:ann logged in by BASIC (10.0.0.1, listener HTTP)"
    assert (login["event"], login["client"], login["again"]) == ("login", "peer", False)
    assert (failed["event"], failed["user"]) == ("login_failed", "ann\n")
    assert failed["reason"] == "the password is wrong"
    assert (denied["event"], denied["operation"]) == ("denied", "READ")
    assert (denied["resource"], denied["resource_name"]) == ("topic", "*")
    assert [row["count"] for row in left_out] == [2, 2]


def test_a_session_from_login_to_end(lines: Lines) -> None:
    clock = Clock()
    log, ann = make(clock), client()
    log.logged_in(ann, "PLAIN", HEADER)
    log.logged_in(ann, "PLAIN", HEADER)
    clock.s += 2.5
    log.ended(ann, "a reason")
    log.ended(ann, "the client closed the connection")
    first, again, end = lines.rows
    assert first | {"time": ""} == {
        "time": "",
        "level": "INFO",
        "logger": "bucketlog.audit",
        "message": "User:ann logged in by PLAIN (10.0.0.1, listener IN)",
        "event": "login",
        "principal": "User:ann",
        "host": "10.0.0.1",
        "client": "('10.0.0.1', 1)",
        "listener": "IN",
        "client_id": "cli\nent",
        "api": "CreateTopics",
        "correlation_id": 5,
        "mechanism": "PLAIN",
        "again": False,
    }
    assert again["again"]
    assert (end["event"], end["reason"], end["seconds"]) == ("session_end", "a reason", 2.5)
    assert "\n" not in "".join(lines.text)


def test_a_login_after_the_end_of_its_connection_keeps_nothing(lines: Lines) -> None:
    log, gone = make(Clock()), client()
    cast(Client, gone).is_gone = True
    log.logged_in(gone, "PLAIN")
    log.ended(gone, "again")
    assert [row["event"] for row in lines.rows] == ["login"]


def test_failed_logins_are_bounded_for_each_host_and_in_all(lines: Lines) -> None:
    clock = Clock()
    log = make(clock, per_client=3, in_all=5)
    for host in ("a", "b"):
        for _ in range(1000):
            log.login_failed(client(host), "wrong", mechanism="PLAIN", user="bob")
    written = [row["host"] for row in lines.rows]
    assert (written.count("a"), written.count("b")) == (3, 2)
    log.look()
    assert len(lines.text) == 5, "the second has not ended"
    clock.s += 1
    log.look()
    log.look()
    total = lines.rows[5:]
    assert [(row["event"], row["count"], row["clients"]) for row in total] == [
        ("left_out", 1995, {"a": 997, "b": 998})
    ]
    log.login_failed(client("a"), "wrong")
    assert len(lines.text) == 7, "the next second has room"


def test_many_hosts_take_little_memory_and_one_line(lines: Lines) -> None:
    clock = Clock()
    log = make(clock, per_client=1, in_all=40)
    for at in range(10_000):
        log.login_failed(client(str(at)), "wrong")
    strangers = log._bounds[""].strangers
    assert len(strangers._written) + len(strangers._left_out) <= 80
    clock.s += 1
    log.look()
    assert len(lines.text) == 41
    assert lines.rows[-1]["count"] == 9960
    assert len(lines.rows[-1]["clients"]) == CLIENTS_NAMED_MAX


def test_changes_that_were_made_are_always_written(lines: Lines) -> None:
    made = [Change("topic", f"t{at}", ErrorCode.none) for at in range(10 * CHANGES_A_LINE)]
    refused = [Change("topic", "no", ErrorCode.topic_already_exists) for _ in range(100)]
    write(make(Clock()), *made, *refused)
    found = [change for row in lines.rows for change in row["changes"]]
    assert [each["name"] for each in found if each["result"] == "ok"] == [
        each.name for each in made
    ]
    assert sum(each["result"] == "TOPIC_ALREADY_EXISTS" for each in found) == 3
    assert all(len(row["changes"]) <= CHANGES_A_LINE for row in lines.rows)


def test_text_of_clients_is_cut(lines: Lines) -> None:
    log = make(Clock())
    log.login_failed(client(), "r" * 9999, user="u" * 9999)
    write(log, Change("group", "g" * 9999, ErrorCode.none, {"topic": "t" * 9999}))
    log.denied(client(), HEADER, AclOperation.READ, Resource(ResourceType.TOPIC, "t" * 9999))
    assert all(len(line) < 8 * TEXT_CHARS_MAX for line in lines.text)
    assert lines.rows[2]["event"] == "denied"


def deny(log: AuditLog, asking: Connection, name: str, header: RequestHeader = HEADER) -> None:
    log.denied(asking, header, AclOperation.READ, Resource(ResourceType.TOPIC, name))


def test_denials_are_bounded_for_each_principal(lines: Lines) -> None:
    clock = Clock()
    log, ann, bob = make(clock, per_client=3, in_all=5), client(), client()
    cast(Client, bob).principal = "User:bob"
    for at in range(100):
        deny(log, ann, f"t{at}")
        deny(log, bob, f"t{at}", HEADER._replace())  # an equal header, but another request
    assert [row["principal"] for row in lines.rows].count("User:ann") == 3
    assert len(lines.rows) == 5
    first = lines.rows[0]
    assert first["message"] == ("READ on topic 't0' is denied to User:ann (10.0.0.1, listener IN)")
    assert (first["event"], first["level"]) == ("denied", "WARNING")
    assert (first["operation"], first["resource"], first["resource_name"]) == (
        "READ",
        "topic",
        "t0",
    )
    assert (first["client_id"], first["api"]) == ("cli\nent", "CreateTopics")
    log.close()
    assert lines.rows[5]["clients"] == {"User:ann": 97, "User:bob": 98}


def test_strangers_do_not_hide_what_known_principals_do(lines: Lines) -> None:
    log, stranger = make(Clock(), in_all=5), client()
    cast(Client, stranger).principal = ANONYMOUS
    for at in range(100):
        log.login_failed(client(str(at)), "wrong")
        deny(log, stranger, f"t{at}")
    assert len(lines.text) == 5
    deny(log, client(), "t")
    write(log, Change("topic", "u", ErrorCode.topic_already_exists))
    assert [row["event"] for row in lines.rows[5:]] == ["denied", "change"]


def test_a_request_that_asks_for_a_right_again_has_one_line(lines: Lines) -> None:
    log = make(Clock(), per_client=100, in_all=100)
    for _ in range(10):
        deny(log, client(), "t")
    deny(log, client(), "u")
    deny(log, client(), "u", HEADER._replace(correlation_id=6))
    assert [(row["resource_name"], row["correlation_id"]) for row in lines.rows] == [
        ("t", 5),
        ("u", 5),
        ("u", 6),
    ]
    log.close()
    assert len(lines.text) == 3, "nothing was left out"


def test_what_acls_deny_is_no_change(lines: Lines) -> None:
    """The line of the denial shows it."""
    write(make(Clock()), Change("topic", "t", ErrorCode.topic_authorization_failed))
    assert lines.text == []


def test_a_line_is_bounded(lines: Lines) -> None:
    configs = {f"{at}-{'n' * 9999}": "v" * 9999 for at in range(1000)}
    topic = CreatableTopic(
        name="t" * 9999,
        num_partitions=2,
        replication_factor=1,
        assignments=(),
        configs=tuple(CreatableTopicConfig(name=n, value=v) for n, v in configs.items()),
    )
    message = CreateTopicsRequest(topics=(topic,) * 99, timeout=timedelta(), validate_only=False)
    (made,) = created_topics(message, WrittenResponse(b"", (), {topic.name: ErrorCode.none}))
    write(make(Clock()), *[made] * 99)
    assert len(lines.text) == 99
    assert max(map(len, lines.text)) < CHANGES_CHARS_MAX + DETAILS_MAX * 2 * TEXT_CHARS_MAX


def test_a_failed_handler_has_an_unknown_outcome(lines: Lines) -> None:
    message = CreateTopicsRequest(
        topics=(
            CreatableTopic(
                name="t", num_partitions=2, replication_factor=1, assignments=(), configs=()
            ),
        ),
        timeout=timedelta(),
        validate_only=False,
    )
    (unknown,) = created_topics(message, None)
    (made,) = created_topics(message, WrittenResponse(b"", (), {"t": ErrorCode.none}))
    write(make(Clock()), unknown, made)
    changes = [change for row in lines.rows for change in row["changes"]]
    assert [change["result"] for change in changes] == ["UNKNOWN", "ok"]
    assert changes[1]["partitions"] == 2


@pytest.fixture
def settled() -> Iterator[None]:
    level, propagate = audit.logger.level, audit.logger.propagate
    yield
    for handler in audit.logger.handlers[:]:
        audit.logger.removeHandler(handler)
        handler.close()
    audit.logger.setLevel(level)
    audit.logger.propagate = propagate


def settings(place: object) -> BrokerSettings:
    return BrokerSettings.model_validate({"bucket_url": "memory://", "audit_log": str(place)})


def test_a_file_of_its_own(tmp_path: Path, settled: None, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "audit.jsonl"
    log = open_audit_log(settings(file))
    assert log is not None
    log.logged_in(client(), "PLAIN")
    file.rename(tmp_path / "moved")
    log.logged_in(client(), "PLAIN")
    for each in (file, tmp_path / "moved"):
        (line,) = each.read_text().splitlines()
        assert json.loads(line)["event"] == "login"
        assert stat.S_IMODE(each.stat().st_mode) == 0o600
    assert caplog.text == ""


def test_the_normal_log_has_it_whatever_its_level(
    settled: None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    caplog.handler.setLevel(0)
    log = open_audit_log(settings("log"))
    assert log is not None
    log.logged_in(client(), "PLAIN")
    assert "User:ann logged in by PLAIN" in caplog.text


def test_off_and_impossible(tmp_path: Path, settled: None) -> None:
    assert open_audit_log(settings("off")) is None
    with pytest.raises(ConfigurationError, match=r"BUCKETLOG_AUDIT_LOG: .*No such file"):
        open_audit_log(settings(tmp_path / "none" / "file"))


def test_the_tenant_is_a_field_and_has_limits_of_its_own(lines: Lines) -> None:
    log = make(Clock(), per_client=1, in_all=1)
    for _ in range(3):
        log.login_failed(client("a", "acme"), "wrong")
    log.login_failed(client("a", "globex"), "wrong")
    log.close()
    found = [(row["event"], row["tenant"]) for row in lines.rows]
    assert found == [("login_failed", "acme"), ("login_failed", "globex"), ("left_out", "acme")]
