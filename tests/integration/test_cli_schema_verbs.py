"""`bucketlog schema`, against a real registry: every verb, in pipes and in a terminal."""

import json
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient

from tests.integration.test_cli_terminal import ended, terminal
from tests.rigs.own_shell import OwnShell
from tests.rigs.shell import Shell
from tests.servers.schema_registry import Registry

pytestmark = pytest.mark.long

NOBODY = "127.0.0.1:1"
ID = {"name": "id", "type": "string"}
COUNT = {"name": "count", "type": "int"}
_numbers = count()

Write = Callable[..., str]


def record(*fields: object, name: str = "Order") -> str:
    """Return a record's schema in the form that the registry stores."""
    text = {"type": "record", "name": name, "fields": fields}
    return json.dumps(text, separators=(",", ":"))


@pytest.fixture
def subject() -> str:
    return f"verbs/{next(_numbers)} ä?-value"


@pytest.fixture
def shell(schema_registry: Registry) -> Shell:
    made = OwnShell(NOBODY)
    made.environment["BUCKETLOG_SCHEMA_REGISTRY_URL"] = schema_registry.url
    return made


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Return a function that writes a file and returns its path."""

    def write(text: str, name: str = "order.avsc") -> str:
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    return write


def rows(shell: Shell, *arguments: str) -> list[Any]:
    return [json.loads(line) for line in shell.ok(*arguments, "-o", "jsonl").splitlines()]


def test_a_schema_is_registered_once(
    shell: Shell, subject: str, write: Write, theirs: SchemaRegistryClient
) -> None:
    file = write(record(ID) + "\n")
    (first,) = rows(shell, "schema", "register", subject, file)
    assert first == {
        "subject": subject,
        "version": 1,
        "id": first["id"],
        "type": "AVRO",
        "is_new": True,
    }
    again = shell("schema", "register", subject, file)
    assert (again.returncode, again.stderr.decode()) == (
        0,
        f"subject {subject} already has this schema: nothing is registered\n",
    )
    assert theirs.get_versions(subject) == [1]
    assert theirs.get_version(subject, 1).schema.schema_str == record(ID)
    elsewhere = shell("schema", "register", f"{subject}-copy", file)
    assert f"id {first['id']} is also subject {subject}, version 1" in elsewhere.stderr.decode()
    stdin = shell.ok(
        *("schema", "register", subject, "-", "-t", "avro"), stdin=record(ID, COUNT).encode()
    )
    assert b"2" in stdin


def test_subjects_are_listed(shell: Shell, subject: str, write: Write) -> None:
    for text in (record(ID), record(ID, COUNT)):
        shell.ok("schema", "register", subject, write(text))
    listing = ("schema", "list", "--prefix", subject[:-3])
    (row,) = rows(shell, *listing)
    assert row == {"subject": subject, "versions": [1, 2], "type": "AVRO", "id": row["id"]}
    table = shell.ok(*listing).decode().splitlines()
    assert table[0].split() == ["SUBJECT", "VERSIONS", "TYPE", "ID"]
    assert table[1].split()[-3:] == ["1-2", "AVRO", str(row["id"])]
    assert rows(shell, "schema", "list", "--prefix", "no-such") == []
    cut = shell("schema", "list", "--prefix", subject, "--subjects-max", "0")
    assert b"1 further subject not shown" in cut.stderr


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("order.avsc", record(ID), "AVRO"),
        ("order.proto", 'syntax = "proto3";\nmessage Order {\n\tstring id = 1;\n}\n', "PROTOBUF"),
        ("order.json", '{"type": "object", "properties": {"id": {"type": "string"}}}', "JSON"),
    ],
)
def test_a_shown_schema_can_be_registered_again(
    shell: Shell, subject: str, write: Write, name: str, text: str, kind: str
) -> None:
    file = write(text, name)
    (row,) = rows(shell, "schema", "register", subject, file)
    shown = shell("schema", "show", subject)
    assert shown.stdout.decode().rstrip("\n") == text.rstrip("\n")
    assert shown.stderr.decode() == f"{subject}: version 1, id {row['id']}, {kind}\n"
    copy = write(shown.stdout.decode(), f"copy-{name}")
    assert b"nothing is registered" in shell("schema", "register", subject, copy).stderr
    (found,) = rows(shell, "schema", "show", "--id", str(row["id"]))
    assert (found["id"], found["type"], found["references"]) == (row["id"], kind, [])
    assert {"subject": subject, "version": 1} in found["subjects"]


def test_versions_and_references(shell: Shell, subject: str, write: Write) -> None:
    line, order, book = (f"{subject}-{part}" for part in ("line", "order", "book"))
    shell.ok("schema", "register", line, write(record(ID, name="Line")))
    shell.ok("schema", "register", line, write(record(ID, COUNT, name="Line")))
    of_line = record({"name": "line", "type": "Line"})
    shell.ok("schema", "register", order, write(of_line), "-r", f"Line={line}:1")
    of_order = record({"name": "order", "type": "Order"}, name="Book")
    shell.ok("schema", "register", book, write(of_order), "-r", f"Order={order}:1")

    assert shell.ok("schema", "show", line, "--version", "1").decode() == (
        record(ID, name="Line") + "\n"
    )
    assert shell.ok("schema", "show", line, "--version", "latest") == shell.ok(
        "schema", "show", line
    )
    (row,) = rows(shell, "schema", "show", book)
    assert row["references"] == [{"name": "Order", "subject": order, "version": 1}]
    (resolved,) = rows(shell, "schema", "show", book, "--references")
    assert [(each["name"], each["schema"]) for each in resolved["references"]] == [
        ("Line", record(ID, name="Line")),
        ("Order", of_line),
    ]
    shown = shell("schema", "show", book, "--references")
    assert f"refers to Order={order}:1" in shown.stderr.decode()
    assert f"Line={line}:1 (AVRO):" in shown.stdout.decode()
    refused = shell.failing(1, "schema", "show", book, "--version", "9")
    assert "schema list --deleted" in refused
    assert "no schema 99999999" in shell.failing(1, "schema", "show", "--id", "99999999")


def test_a_check_has_an_exit_code(
    shell: Shell, subject: str, write: Write, theirs: SchemaRegistryClient
) -> None:
    shell.ok("schema", "register", subject, write(record(ID)))
    shell.ok("schema", "compatibility", subject, "--set", "BACKWARD")
    added = write(record(ID, {**COUNT, "default": 0}))
    assert b"is compatible" in shell.ok("schema", "check", subject, added)
    removed = write(record(ID, COUNT))
    refused = shell("schema", "check", subject, removed, "-o", "json")
    assert refused.returncode == 1
    found = json.loads(refused.stdout)
    assert (found["is_compatible"], found["level"]) == (False, "BACKWARD")
    told = shell.failing(1, "schema", "register", subject, removed)
    assert "give added fields a default" in told
    assert theirs.get_versions(subject) == [1]
    unknown = shell.failing(1, "schema", "check", f"{subject}-x", added)
    assert "no subject" in unknown
    wrong = shell.failing(1, "schema", "check", subject, write("{"))
    assert "correct the schema" in wrong


def test_levels_are_shown_set_and_unset(shell: Shell, subject: str, write: Write) -> None:
    shell.ok("schema", "register", subject, write(record(ID)))
    (row,) = rows(shell, "schema", "compatibility", subject, "--set", "full_transitive")
    assert (row["before"], row["after"], row["source"]) == ("NONE", "FULL_TRANSITIVE", "subject")
    (row,) = rows(shell, "schema", "compatibility", subject)
    assert row == {"subject": subject, "compatibility": "FULL_TRANSITIVE", "source": "subject"}
    (row,) = rows(shell, "schema", "compatibility")
    assert row == {"subject": None, "compatibility": "NONE", "source": "registry"}
    (row,) = rows(shell, "schema", "compatibility", subject, "--unset")
    assert (row["before"], row["after"]) == ("FULL_TRANSITIVE", "NONE")
    (row,) = rows(shell, "schema", "compatibility", "--set", "BACKWARD")
    assert (row["subject"], row["after"]) == (None, "BACKWARD")
    (row,) = rows(shell, "schema", "compatibility", "--unset")
    assert row["after"] == "NONE"


def test_deletion_shows_a_plan_and_asks(
    shell: Shell, subject: str, write: Write, theirs: SchemaRegistryClient
) -> None:
    for text in (record(ID), record(ID, COUNT)):
        shell.ok("schema", "register", subject, write(text))
    (planned,) = rows(shell, "schema", "delete", subject, "--version", "1", "--dry-run")
    assert (planned["version"], planned["state"], planned["referenced_by"]) == (1, "in use", [])
    unanswered = shell("schema", "delete", subject)
    assert unanswered.returncode == 2
    assert b"add --yes" in unanswered.stderr
    assert theirs.get_versions(subject) == [1, 2]

    with terminal(shell, "schema", "delete", subject, "--version", "latest") as child:
        child.expect_exact("[y/N]: ")
        child.sendline("n")
        assert ended(child)[0] == 130
    assert theirs.get_versions(subject) == [1, 2]
    shell.ok("schema", "delete", subject, "--version", "latest", "--yes")
    assert theirs.get_versions(subject) == [1]
    (row,) = rows(shell, "schema", "list", "--prefix", subject, "--deleted")
    assert (row["versions"], row["deleted"]) == ([1], [2])

    shell.ok("schema", "delete", subject, "--yes")
    assert rows(shell, "schema", "list", "--prefix", subject) == []
    (row,) = rows(shell, "schema", "list", "--prefix", subject, "--deleted")
    assert (row["versions"], row["deleted"]) == ([], [1, 2])
    assert "add --permanent" in shell.failing(1, "schema", "delete", subject, "--yes")
    shell.ok("schema", "delete", subject, "--permanent", "--yes")
    assert rows(shell, "schema", "list", "--prefix", subject, "--deleted") == []
    assert "no subject" in shell.failing(1, "schema", "delete", subject, "--yes")


def test_a_permanent_deletion_needs_one_command(shell: Shell, subject: str, write: Write) -> None:
    for text in (record(ID), record(ID, COUNT)):
        shell.ok("schema", "register", subject, write(text))
    shell.ok("schema", "delete", subject, "--version", "2", "--permanent", "--yes")
    (row,) = rows(shell, "schema", "list", "--prefix", subject, "--deleted")
    assert (row["versions"], row["deleted"]) == ([1], [])


def test_a_schema_that_others_refer_to_stays(shell: Shell, subject: str, write: Write) -> None:
    shell.ok("schema", "register", subject, write(record(ID, name="Line")))
    user = write(record({"name": "line", "type": "Line"}))
    (row,) = rows(shell, "schema", "register", f"{subject}-user", user, "-r", f"Line={subject}:1")
    (planned,) = rows(shell, "schema", "delete", subject, "--dry-run")
    assert planned["referenced_by"] == [row["id"]]
    refused = shell("schema", "delete", subject, "--yes")
    assert refused.returncode == 1
    assert b"delete the schemas that refer to it first" in refused.stderr


def test_a_schema_in_a_terminal_is_indented(shell: Shell, subject: str, write: Write) -> None:
    shell.ok("schema", "register", subject, write(record(ID)))
    with terminal(shell, "schema", "show", subject) as child:
        code, shown = ended(child)
    assert code == 0
    assert '  "name": "Order",\r\n' in shown
