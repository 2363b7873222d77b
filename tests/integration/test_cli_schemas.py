"""`bucketlog consume --registry-url`: what was written with a registry, shown as JSON."""

import json
from typing import Any

import pytest
from pydantic import BaseModel

from bucketlog import Log, SchemaRegistry, Topic
from bucketlog.schema_registry.framing import header
from tests.models import order_messages
from tests.rigs.shell import Shell
from tests.servers.schema_registry import Registry

pytestmark = pytest.mark.long


class Line(BaseModel):
    sku: str
    share: float = 1.5
    raw: bytes = b"r"


def test_every_type_as_json(log: Log, shell: Shell, schema_registry: Registry, name: str) -> None:
    registry = SchemaRegistry(schema_registry.url, naming="topic-record")
    avro = Topic(name, value=registry.avro(Line, name="shop.Line"), key=str)
    framed: list[tuple[Topic[Any, Any], Any]] = [
        (avro, Line(sku="ä", share=float("inf"), raw=b"\xff")),
        (Topic(name, value=registry.json(Line), key=str), Line(sku="b", raw=b"b")),
        (
            Topic(name, value=registry.protobuf(order_messages.Order), key=str),
            order_messages.order(),
        ),
        (Topic(name, key=str), b"plain"),
        (Topic(name, key=str), None),
    ]
    with log.producer() as producer:
        for topic, value in framed:
            producer.send(topic, value, key="k")
    consume = ("consume", name, "--from", "start", "--until-end", "--registry-url", registry.url)
    lines = shell.ok(*consume).decode().splitlines()
    assert json.loads(lines[0]) == {"sku": "ä", "share": "Infinity", "raw": "_w=="}
    assert json.loads(lines[1]) == {"sku": "b", "share": 1.5, "raw": "b"}
    assert json.loads(lines[2])["lines"] == [{"sku": "a", "count": "2"}]
    assert lines[3:] == ["plain", ""]
    rows = [json.loads(line) for line in shell.ok(*consume, "-o", "jsonl").splitlines()]
    assert [row["key"] for row in rows] == ["k"] * 5
    assert rows[0]["value"]["sku"] == "ä"
    assert rows[2]["value"]["total"] == {"cents": "950"}
    assert [row["value"] for row in rows[3:]] == ["plain", None]


def test_what_cannot_be_shown_is_told(
    log: Log, shell: Shell, schema_registry: Registry, name: str
) -> None:
    with log.producer() as producer:
        producer.send(Topic(name), header(99_999_999) + b"x")
    consume = ("consume", name, "--from", "start", "--until-end", "--registry-url")
    told = shell.failing(1, *consume, schema_registry.url)
    assert f"{name}[0]@0" in told
    assert "no schema 99999999" in told
    assert "no schema registry answers" in shell.failing(1, *consume, "http://127.0.0.1:1")
