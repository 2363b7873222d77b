"""`bucketlog schema` and a registry that is hostile, slow or of another kind."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bucketlog.cli.main import main
from bucketlog.cli.schema_file import parse_reference
from bucketlog.log_format.errors import (
    BucketlogError,
    ConfigurationError,
    InvalidDataError,
    SchemaRegistryError,
    SchemaRegistryUnavailableError,
)
from bucketlog.log_format.printable import printable_lines
from bucketlog.schema_registry.registry_connection import RegistryConnection
from bucketlog.schema_registry.subjects import GivenSchema, Subjects
from tests.servers.stand_in_registry import (
    RegistryAnswer,
    json_answer,
    schema_answer,
    served_registry,
)

TITLE = "\x1b]0;pwned\x07\x9b\u202e"
SHOWN = r"\x1b]0;pwned\x07\x9b\u202e"
CALLS = (
    *("names", "versions", "schema", "schema_of_id", "uses", "referring"),
    *("lookup", "register", "check", "level", "set_level"),
)
SCHEMA = GivenSchema("AVRO", '"string"')
BYTES_MAX = 10_000


def called(subjects: Subjects, call: str) -> Any:
    match call:
        case "names" | "level":
            return getattr(subjects, call)()
        case "schema_of_id" | "uses":
            return getattr(subjects, call)(1)
        case "referring":
            return subjects.referring("s", 1)
        case "lookup" | "register" | "check":
            return getattr(subjects, call)("s", SCHEMA)
        case "set_level":
            return subjects.set_level("FULL", "s")
    return getattr(subjects, call)("s")


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("URL", "AUTH", "CA_FILE"):
        monkeypatch.delenv(f"BUCKETLOG_SCHEMA_REGISTRY_{name}", raising=False)
    return monkeypatch


@pytest.mark.parametrize(
    "body",
    [
        *(b"<html>", b"7", b'"x"', b"[7.5]", b'{"schema": 1}', b"[" * 5000, b"[[]]"),
        *(b'{"id": -1, "schema": "x"}', b'{"is_compatible": "yes"}', b'{"compatibilityLevel": []}'),
        b"[" + b"9" * 5000 + b"]",
    ],
)
def test_an_answer_of_another_kind_is_an_error(body: bytes) -> None:
    with served_registry({}, otherwise=RegistryAnswer(200, body)) as url:
        subjects = Subjects(RegistryConnection(url, config={"max.retries": 0}))
        for call in CALLS:
            if call == "set_level" and body.startswith(b"{"):
                continue  # its answer is an object
            with pytest.raises(SchemaRegistryUnavailableError, match="no schema registry answers"):
                called(subjects, call)


@pytest.mark.parametrize(
    ("hostile", "reason"),
    [
        (RegistryAnswer(200, b'["x"]' * 1000, is_endless=True), "more than 10,000 bytes"),
        (RegistryAnswer(200, b" " * (BYTES_MAX + 1)), "more than 10,000 bytes"),
        (RegistryAnswer(500, b" " * (BYTES_MAX + 1)), "more than 10,000 bytes"),
        (RegistryAnswer(200, b"x", encoding="gzip"), "is encoded"),
        (RegistryAnswer(is_silent=True), "timed out"),
    ],
)
def test_an_answer_is_bounded(hostile: RegistryAnswer, reason: str) -> None:
    with served_registry({}, otherwise=hostile) as url:
        connection = RegistryConnection(
            url, timeout_s=0.2, answer_bytes_max=BYTES_MAX, config={"max.retries": 0}
        )
        for call in CALLS:
            with pytest.raises(SchemaRegistryUnavailableError, match=reason):
                called(Subjects(connection), call)


def test_an_answer_without_an_end_has_a_time_limit() -> None:
    with served_registry({}, otherwise=RegistryAnswer(200, b"x", is_endless=True)) as url:
        connection = RegistryConnection(
            url, timeout_s=0.2, answer_bytes_max=10**12, config={"max.retries": 0}
        )
        with pytest.raises(SchemaRegistryUnavailableError, match=r"longer than 0\.2 s"):
            Subjects(connection).names()


def test_references_are_bounded() -> None:
    def chain(length: int) -> Mapping[str, RegistryAnswer]:
        return {
            f"/subjects/s/versions/{at}": schema_answer(
                "x" * 10, references=[{"name": "n", "subject": "s", "version": at + 1}]
            )
            for at in range(1, length)
        }

    with served_registry({**chain(1200), "/subjects/s/versions/1200": schema_answer("x")}) as url:
        subjects = Subjects(RegistryConnection(url))
        with pytest.raises(InvalidDataError, match="more than 1,000 others"):
            subjects.referenced(subjects.schema("s", 1))
        subjects = Subjects(RegistryConnection(url, answer_bytes_max=200))
        with pytest.raises(InvalidDataError, match="more than 200 characters"):
            subjects.referenced(subjects.schema("s", 1))


def test_references_in_a_circle_end() -> None:
    circle = schema_answer("x", references=[{"name": "n", "subject": "s", "version": 1}])
    with served_registry({"/subjects/s/versions/1": circle}) as url:
        subjects = Subjects(RegistryConnection(url))
        assert [one.name for one, _ in subjects.referenced(subjects.schema("s", 1))] == ["n"]


@pytest.mark.parametrize(
    ("code", "status", "remedy"),
    [
        (42206, 422, "refer to it first"),
        (40407, 409, "is a schema registry"),
        (40101, 401, "BUCKETLOG_SCHEMA_REGISTRY_AUTH"),
        (TITLE * 5000, 404, "path"),
    ],
)
def test_a_refusal_has_a_remedy(code: object, status: int, remedy: str) -> None:
    refusal = json_answer({"error_code": code, "message": "no"}, status)
    with (
        served_registry({}, otherwise=refusal) as url,
        pytest.raises(SchemaRegistryError) as caught,
    ):
        Subjects(RegistryConnection(url)).delete("s", 1, permanent=True)
    assert remedy in caught.value.remedy
    assert len(str(caught.value)) < 2000


@pytest.mark.parametrize("name", ["", ".", "..", "\udcff"])
def test_a_name_that_no_url_has_is_refused(name: str) -> None:
    asked: list[str] = []
    with (
        served_registry({}, asked=asked) as url,
        pytest.raises(ConfigurationError, match="name of a subject"),
    ):
        Subjects(RegistryConnection(url)).delete(name)
    assert asked == []


ANSWERS = {
    "/subjects": json_answer([TITLE, "..", "s"]),
    "/subjects/s/versions": json_answer([1]),
    "/subjects/s/versions/1": schema_answer(f'"{TITLE}"', TITLE, subject=TITLE, version=1, id=7),
    "/subjects/s/versions/latest": schema_answer(
        f"{TITLE}\r\n\t", TITLE, subject=TITLE, version=1, id=7
    ),
    "/subjects/s/versions/1/referencedby": json_answer([]),
    "/schemas/ids/7": schema_answer(
        f'"{TITLE}"', references=[{"name": TITLE, "subject": "s", "version": 1}]
    ),
    "/schemas/ids/7/versions": json_answer([{"subject": TITLE, "version": 1}] * 2),
    "/config/s": json_answer({"compatibilityLevel": TITLE}),
    "POST /compatibility/subjects/s/versions": json_answer(
        {"is_compatible": False, "messages": [TITLE, "x" * 5000, *["y"] * 100]}
    ),
    "POST /subjects/s/versions": json_answer({"error_code": 409, "message": TITLE}, 409),
}


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("list", 0),
        ("list --deleted", 0),
        ("show s", 0),
        ("show --id 7 --references", 0),
        ("check s {file}", 1),
        ("compatibility s", 0),
        ("register s {file}", 1),
        ("delete s --dry-run", 0),
        ("list -o json", 0),
        ("show s -o json", 0),
        ("check s {file} -o json", 1),
    ],
)
def test_hostile_text_does_not_steer_a_terminal(
    line: str,
    code: int,
    environment: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    file = tmp_path / "s.avsc"
    file.write_text('"string"')
    environment.setattr("sys.stdout.isatty", lambda: True)
    environment.setenv("NO_COLOR", "1")
    environment.setenv("COLUMNS", "1000")
    with served_registry(ANSWERS) as url:
        environment.setenv("BUCKETLOG_SCHEMA_REGISTRY_URL", url)
        assert main(["schema", *line.format(file=file).split()]) == code
    shown = capsys.readouterr()
    assert printable_lines(shown.out) == shown.out
    assert printable_lines(shown.err) == shown.err
    assert SHOWN in shown.out + shown.err or "json" in line


def test_messages_of_the_registry_are_shown_and_bounded(
    environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "s.avsc").write_text('"string"')
    with served_registry(ANSWERS) as url:
        arguments = ["schema", "check", "s", str(tmp_path / "s.avsc"), "--registry-url", url]
        assert main(arguments) == 1
        shown = capsys.readouterr()
        assert main([*arguments, "-o", "json"]) == 1
        found = json.loads(capsys.readouterr().out)
    assert f"- {SHOWN}\n- {'x' * 2000}…\n- y\n" in shown.out
    assert "52 further messages not shown" in shown.err
    assert found["messages"][0] == TITLE
    assert len(found["messages"]) == 50


def test_a_subject_that_changes_meanwhile_stays(
    environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []
    answers = dict(ANSWERS)

    def answer(question: str) -> None:
        answers["/subjects/s/versions"] = json_answer([1, 2])

    environment.setattr("bucketlog.cli.schema.confirm", answer)
    with served_registry(answers, asked=asked) as url:
        assert main(["schema", "delete", "s", "--registry-url", url]) == 1
    assert "has changed meanwhile" in capsys.readouterr().err
    assert not [one for one in asked if one.startswith("DELETE")]


def test_the_login_of_a_flag(
    environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    environment.setenv("BUCKETLOG_SCHEMA_REGISTRY_AUTH", "ann:hunter2")
    assert main(["config", "show"]) == 0
    assert "hunter2" not in capsys.readouterr().out
    assert main(["schema", "list", "--registry-url", "http://h", "--registry-auth", "ann"]) == 2
    told = capsys.readouterr().err
    assert "give USER:PASSWORD" in told


@pytest.mark.parametrize(
    "text", ["", "a", "a=b", "a=b:0", "a=b:x", "=b:1", "a=:1", "a=b:-1", "a=b:99999999999"]
)
def test_what_is_not_a_reference(text: str) -> None:
    with pytest.raises(BucketlogError, match="--reference"):
        parse_reference(text)


def test_a_reference() -> None:
    assert parse_reference("a.proto=:.ctx:lines:12") == ("a.proto", ":.ctx:lines", 12)
