"""`bucketlog table run` with values of a real schema registry."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from bucketlog import SchemaRegistry, Topic
from bucketlog.schema_registry.framing import header
from tests.models import order_messages
from tests.rigs.table_lake import Lake
from tests.servers.cluster import free_port
from tests.servers.schema_registry import Registry

pytestmark = pytest.mark.long

SCHEMA = ("--schema", "id string")


class Line(BaseModel):
    id: str
    amount: float = 0


class LineWithNote(Line):
    note: str | None = None


def encoded(format_: Any, subject: str, value: Any) -> bytes:
    """Encode a value, and register its schema. `subject` is without the suffix -value."""
    data = Topic(subject, value=format_).value_format.encode(value)
    assert isinstance(data, bytes)
    return data


def registry_lake(folder: Path, url: str, subject: str) -> Lake:
    flags = ("--value-format", "registry", "--registry-url", url, "--subject", f"{subject}-value")
    return Lake(folder, flags)


def found_rows(lake: Lake, *columns: str) -> list[dict[str, Any]]:
    rows = lake.rows().sort_by([("_log_partition", "ascending"), ("_log_offset", "ascending")])
    found: list[dict[str, Any]] = rows.select(columns).to_pylist()
    return found


def test_a_new_version_of_avro_becomes_a_column(
    tmp_path: Path, schema_registry: Registry, registry: SchemaRegistry
) -> None:
    lake = registry_lake(tmp_path, schema_registry.url, "avro-rows")
    lake.put(encoded(registry.avro(Line), "avro-rows", Line(id="a", amount=1.5)))
    lake.put(b'{"id": "no frame"}')
    lake.put(header(99_999_999))
    first = lake.run()
    assert (first["records"], first["dead_letters"]) == (1, 2)
    note = LineWithNote(id="b", note="n")
    lake.put(encoded(registry.avro(LineWithNote, name="Line"), "avro-rows", note))
    lake.put(encoded(registry.avro(Line), "avro-rows", Line(id="c")))
    assert lake.run()["records"] == 2
    assert found_rows(lake, "id", "amount", "note") == [
        {"id": "a", "amount": 1.5, "note": None},
        {"id": "b", "amount": 0.0, "note": "n"},
        {"id": "c", "amount": 0.0, "note": None},
    ]


def test_protobuf_with_an_import_becomes_rows(
    tmp_path: Path, schema_registry: Registry, registry: SchemaRegistry
) -> None:
    lake = registry_lake(tmp_path, schema_registry.url, "protobuf-rows")
    format_ = registry.protobuf(order_messages.Order)
    lake.put(encoded(format_, "protobuf-rows", order_messages.order("a")))
    assert lake.run()["records"] == 1
    assert found_rows(lake, "id", "total", "lines") == [
        {"id": "a", "total": {"cents": 950}, "lines": [{"sku": "a", "count": 2}]}
    ]


def test_json_with_a_schema_becomes_rows(
    tmp_path: Path, schema_registry: Registry, registry: SchemaRegistry
) -> None:
    lake = registry_lake(tmp_path, schema_registry.url, "json-rows")
    lake.put(encoded(registry.json(LineWithNote), "json-rows", LineWithNote(id="a")))
    assert lake.run()["records"] == 1
    assert found_rows(lake, "id", "amount", "note") == [{"id": "a", "amount": 0.0, "note": None}]


def test_fields_can_be_declared(
    tmp_path: Path, schema_registry: Registry, registry: SchemaRegistry
) -> None:
    flags = ("--value-format", "registry", "--registry-url", schema_registry.url)
    lake = Lake(tmp_path, (*flags, "--schema", "id string"))
    lake.put(encoded(registry.avro(Line), "declared-rows", Line(id="a")))
    lake.put(encoded(registry.json(Line), "declared-json", Line(id="b")))
    assert lake.run()["records"] == 2
    assert found_rows(lake, "id") == [{"id": "a"}, {"id": "b"}]


def test_a_registry_out_of_reach_ends_the_run(tmp_path: Path) -> None:
    lake = registry_lake(tmp_path, f"http://127.0.0.1:{free_port()}", "none")
    lake.put(b"x")
    error = lake.run(code=1)["error"]
    assert "no schema registry answers" in str(error)


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        ((), "JSON values need --schema"),
        (("--schema", "id string", "--subject", "s"), "--subject applies only to values"),
        (
            ("--value-format", "registry", "--registry-url", "http://x", *SCHEMA, "--subject", "s"),
            "--subject and --schema are given",
        ),
        (("--value-format", "registry"), "no URL of a schema registry"),
        (("--value-format", "registry", "--registry-url", "nowhere"), "is not a URL"),
    ],
)
def test_wrong_flags_are_refused(tmp_path: Path, flags: tuple[str, ...], reason: str) -> None:
    assert reason in str(Lake(tmp_path, flags).run(code=2)["error"])
