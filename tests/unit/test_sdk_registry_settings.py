"""Settings of a schema registry, what is missing, frames, and what its answers mean."""

import base64
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import unquote

import pytest
from pydantic import BaseModel

import bucketlog
from bucketlog import SchemaRegistry, Topic
from bucketlog.log_format.errors import (
    ConfigurationError,
    IncompatibleSchemaError,
    InvalidDataError,
    SchemaRegistryError,
    SchemaRegistryUnavailableError,
)
from bucketlog.schema_registry import framing
from bucketlog.schema_registry.registry_errors import registry_error
from tests.models import order_messages


class Line(BaseModel):
    sku: str


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BUCKETLOG_SCHEMA_REGISTRY_URL", raising=False)
    monkeypatch.delenv("BUCKETLOG_SCHEMA_REGISTRY_AUTH", raising=False)


def test_the_environment_has_a_url(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match="no URL") as caught:
        SchemaRegistry()
    assert "BUCKETLOG_SCHEMA_REGISTRY_URL" in caught.value.remedy
    monkeypatch.setenv("BUCKETLOG_SCHEMA_REGISTRY_URL", "http://there:1")
    assert SchemaRegistry().url == "http://there:1"
    assert SchemaRegistry("http://here:1").url == "http://here:1"


def test_settings_that_are_none() -> None:
    with pytest.raises(ConfigurationError, match="localhost:8081"):
        SchemaRegistry("localhost:8081")
    with pytest.raises(ConfigurationError, match="'host'") as caught:
        SchemaRegistry("ann:secret@host")
    assert "secret" not in str(caught.value)
    with pytest.raises(ConfigurationError, match="names no subjects"):
        SchemaRegistry("http://h", naming="by-hand")  # type: ignore[arg-type]  # that is the point
    registry = SchemaRegistry("http://h", config={"no.such.setting": 1})
    with pytest.raises(ConfigurationError, match=r"no\.such\.setting"):
        registry.schema(1)


@pytest.mark.parametrize(
    ("module", "extra", "make"),
    [
        ("fastavro", "avro", lambda: bucketlog.Avro(Line)),
        ("google.protobuf.message", "protobuf", lambda: bucketlog.Protobuf(order_messages.Order)),
        ("confluent_kafka.schema_registry", "registry", lambda: SchemaRegistry("http://h")),
    ],
)
def test_a_package_that_is_missing(
    monkeypatch: pytest.MonkeyPatch, module: str, extra: str, make: object
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    assert callable(make)
    with pytest.raises(ConfigurationError, match="not installed") as caught:
        make()
    assert f"bucketlog[{extra}]" in caught.value.remedy


def test_what_is_no_message_class() -> None:
    with pytest.raises(ConfigurationError, match="message class"):
        bucketlog.Protobuf(Line)  # type: ignore[type-var]  # that is the point


def test_bare_protobuf() -> None:
    form = bucketlog.Protobuf(order_messages.Order)
    order = order_messages.order()
    assert form.decode(form.encode(order)) == order
    with pytest.raises(InvalidDataError, match="expected Order"):
        form.encode(order_messages.Refund())
    with pytest.raises(InvalidDataError, match=r"shop\.Order"):
        form.decode(b"\x0a\xff")


def test_a_format_without_a_topic_does_not_write() -> None:
    with pytest.raises(ConfigurationError, match="part of a topic"):
        SchemaRegistry("http://h").avro(Line).encode(Line(sku="a"))


def test_each_topic_has_a_format_of_its_own() -> None:
    form = SchemaRegistry("http://h").avro(Line)
    one, two = Topic("one", value=form, key=form), Topic("two", value=form)
    subjects = [
        getattr(bound, "subject", None)
        for bound in (one.key_format, one.value_format, two.value_format, form)
    ]
    assert subjects == ["one-key", "one-value", "two-value", None]


@pytest.mark.parametrize(
    ("indexes", "data"),
    [([0], b"\0"), ([1], b"\x02\x02"), ([0, 0], b"\x04\0\0"), ([2, 300], b"\x04\x04\xd8\x04")],
)
def test_message_indexes(indexes: list[int], data: bytes) -> None:
    assert framing.message_indexes(indexes) == data
    assert framing.read_message_indexes(b"x" + data + b"rest", 1) == (indexes, 1 + len(data))


@pytest.mark.parametrize("data", [b"", b"\x80", b"\x04\0", b"\xff\xff\xff\xff\x0f", b"\x01"])
def test_indexes_that_are_none(data: bytes) -> None:
    with pytest.raises(InvalidDataError):
        framing.read_message_indexes(data, 0)


class Answer(Exception):  # noqa: N818  # as confluent-kafka's client has it
    def __init__(self, status: int, code: int | None, message: str | None = "because") -> None:
        super().__init__(message)
        self.http_status_code, self.error_code, self.error_message = status, code, message


@pytest.mark.parametrize(
    ("what", "answer", "kind", "retriable"),
    [
        ("asking for schema 7", Answer(404, 40403), InvalidDataError, False),
        ("asking for schema 7", Answer(404, None, None), SchemaRegistryError, False),
        ("asking for schema 7", Answer(404, 404), SchemaRegistryError, False),
        ("asking for schema 7", Answer(503, 50302), SchemaRegistryUnavailableError, True),
        ("asking for schema 7", Answer(429, 42901), SchemaRegistryUnavailableError, True),
        ("asking for schema 7", Answer(401, 40101), SchemaRegistryError, False),
        ("asking for schema 7", OSError("refused"), SchemaRegistryUnavailableError, True),
        ("registering x", Answer(404, 40403), SchemaRegistryError, False),
        ("registering x", Answer(409, 409), IncompatibleSchemaError, False),
        ("registering x", Answer(422, 42201), SchemaRegistryError, False),
    ],
)
def test_what_an_answer_means(
    what: str, answer: Exception, kind: type[Exception], retriable: bool
) -> None:
    error = registry_error(answer, what, "http://user:secret@host:1", missing="register it")
    assert type(error) is kind
    assert error.retriable is retriable
    assert error.remedy
    assert "secret" not in str(error)
    assert what.removeprefix("asking for ") in error.message


def test_a_page_is_not_told_whole() -> None:
    error = registry_error(
        Answer(400, -1, "x" * 1_000_000), "asking", "http://host", missing="register it"
    )
    assert len(str(error)) < 1000


class Gate(BaseHTTPRequestHandler):
    """A registry's door: schema 1 for who is let in, else 401; a page of something else at /web."""

    def do_GET(self) -> None:
        wanted = "Basic " + base64.b64encode(b"ann:secret").decode()
        if self.path.startswith("/web"):
            status, body = 200, b"<html>"
        elif self.path.startswith("/deep"):
            status, body = 200, b"[" * 100_000
        elif self.headers.get("Authorization") != wanted:
            status, body = 401, b'{"error_code": 40101, "message": "who are you?"}'
        else:
            status, body = 200, b'{"schema": "\\"string\\""}'
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        """Whatever is registered at /ids/N gets that id."""
        self.rfile.read(int(self.headers["Content-Length"]))
        body = b'{"id": %s}' % unquote(self.path.split("/")[2]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def gate() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Gate) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_user_and_password(gate: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert SchemaRegistry(gate, auth=("ann", "secret")).schema(1).text == '"string"'
    with pytest.raises(SchemaRegistryError, match="who are you") as caught:
        SchemaRegistry(gate).schema(1)
    assert "auth=" in caught.value.remedy
    monkeypatch.setenv("BUCKETLOG_SCHEMA_REGISTRY_AUTH", "ann:secret")
    assert SchemaRegistry(gate).schema(1).type == "AVRO"


@pytest.mark.parametrize("path", ["web", "deep"])
def test_a_page_of_something_else_says_nothing_of_a_record(gate: str, path: str) -> None:
    with pytest.raises(SchemaRegistryUnavailableError, match="no schema registry answers"):
        SchemaRegistry(f"{gate}/{path}").schema(1)


def test_an_answer_is_bounded(gate: str) -> None:
    with pytest.raises(ConfigurationError, match="answer_bytes_max"):
        SchemaRegistry(gate, answer_bytes_max=0)
    registry = SchemaRegistry(gate, auth=("ann", "secret"), answer_bytes_max=10)
    with pytest.raises(SchemaRegistryUnavailableError, match="more than 10 bytes"):
        registry.schema(1)


@pytest.mark.parametrize("schema_id", ["-1", "4294967296", '"1"', "null", "1.5"])
def test_an_id_that_is_none(gate: str, schema_id: str) -> None:
    topic = Topic("t", value=SchemaRegistry(f"{gate}/ids/{schema_id}").avro(Line))
    with pytest.raises(SchemaRegistryUnavailableError, match="is not a schema id"):
        topic.value_format.encode(Line(sku="a"))


def test_a_certificate_authority_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match="settings"):
        SchemaRegistry("https://127.0.0.1:1", ca_file="/no/such/file").schema(1)
    monkeypatch.setenv("BUCKETLOG_SCHEMA_REGISTRY_CA_FILE", "/no/such/file")
    with pytest.raises(ConfigurationError, match="settings"):
        SchemaRegistry("https://127.0.0.1:1").schema(1)
