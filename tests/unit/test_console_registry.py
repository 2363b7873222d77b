"""The console and a registry over HTTP, through two processes: each type, and hostile answers."""

import base64
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bucketlog.console.application import application
from bucketlog.console.pages import Console
from bucketlog.console.record_values import DecodedValue, RecordValues
from bucketlog.console.registry_processes import registry_values
from bucketlog.console.settings import ConsoleSettings
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_format.records import DecodedRecord
from bucketlog.schema_registry.framing import header
from bucketlog.schema_registry.registry_access import RegistryAccess
from bucketlog.schema_registry.registry_connection import AUTH_VARIABLE, CA_VARIABLE, URL_VARIABLE
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from bucketlog.tiered_storage.encryption.key_service import KeyAccess
from tests.models import order_messages
from tests.rigs.console_log import SCRIPT
from tests.rigs.patience import eventually
from tests.rigs.written_log import START_MS, WrittenLog
from tests.servers.stand_in_registry import RegistryAnswer, schema_answer, served_registry
from tests.unit.test_console_times import answer
from tests.unit.test_verify import IDENTITY

PATIENT = {"registry_request_ms_max": 60_000, "registry_page_ms_max": 60_000}
"""On a busy machine, a process starts slowly."""
LINE = {
    "type": "record",
    "name": "Line",
    "fields": [{"name": "sku", "type": "string"}, {"name": "count", "type": "long"}],
}
AVRO, JSON_SCHEMA, PROTOBUF = 1, 2, 3
ORDERS, MONEY = (
    base64.b64encode(file.serialized_pb).decode()
    for file in (
        order_messages.Order.DESCRIPTOR.file,
        *order_messages.Order.DESCRIPTOR.file.dependencies,
    )
    if file.name.startswith("shop/")
)
REFERENCE = {"name": "shop/money.proto", "subject": "money", "version": 1}
ANSWERS = {
    f"/schemas/ids/{AVRO}": schema_answer(json.dumps(LINE)),
    f"/schemas/ids/{JSON_SCHEMA}": schema_answer("{}", "JSON"),
    f"/schemas/ids/{PROTOBUF}": schema_answer(ORDERS, "PROTOBUF", references=[REFERENCE]),
    "/subjects/money/versions/1": schema_answer(
        MONEY, "PROTOBUF", subject="money", version=1, id=30
    ),
}


@contextmanager
def values_of(url: str, **settings: int) -> Iterator[RecordValues]:
    known = ConsoleSettings.model_validate({**PATIENT, **settings})
    with registry_values(RegistryAccess(url), known, time.monotonic) as found:
        assert found is not None
        yield found


def decoded(values: RecordValues, data: bytes) -> DecodedValue:
    found = values.for_page().decoded(data)
    assert found is not None
    return found


def test_each_type_is_decoded() -> None:
    asked: list[str] = []
    protobuf = header(PROTOBUF) + b"\0" + order_messages.order().SerializeToString()
    with served_registry(ANSWERS, asked=asked) as url, values_of(url) as values:
        for _ in range(2):
            found = decoded(values, header(AVRO) + b"\x06abc\x04")
            assert found == (AVRO, "Avro", b'{"sku":"abc","count":2}', "")
            found = decoded(values, header(JSON_SCHEMA) + b'{"a": 1.0}')
            assert found == (JSON_SCHEMA, "JSON Schema", b'{"a": 1.0}', "")
            found = decoded(values, protobuf)
            assert (found.type, found.reason) == ("Protobuf", "")
            assert json.loads(found.json or b"")["lines"] == [{"sku": "a", "count": "2"}]
        assert "no Avro data" in decoded(values, header(AVRO) + b"\xff").reason
        assert "has no schema 9" in decoded(values, header(9) + b"x").reason
    assert len(asked) == len(set(asked))


def test_hostile_answers_are_reasons() -> None:
    bomb: object = {"type": "record", "name": "R0", "fields": []}
    for level in range(1, 12):  # a value without bytes that has 20 ** 11 others
        inner = [bomb, *[f"R{level - 1}"] * 19]
        fields = [{"name": f"f{at}", "type": kind} for at, kind in enumerate(inner)]
        bomb = {"type": "record", "name": f"R{level}", "fields": fields}
    large = schema_answer(json.dumps({**LINE, "doc": "x" * 100_000}))
    answers = {
        "/schemas/ids/1": schema_answer(json.dumps(bomb)),
        "/schemas/ids/2": large,
        "/schemas/ids/3": RegistryAnswer(200, b"[" * 100_000),
        "/schemas/ids/4": schema_answer("syntax", "PROTOBUF"),
        "/schemas/ids/5": schema_answer("{}", "OTHER"),
        "/schemas/ids/6": RegistryAnswer(302, b""),
        "/schemas/ids/7": schema_answer(json.dumps(LINE)),
    }
    limits = {"registry_answer_bytes_max": 50_000, "registry_memory_bytes_max": 256 << 20}
    with served_registry(answers) as url, values_of(url, **limits) as values:
        for schema_id in range(1, 7):
            found = decoded(values, header(schema_id) + b"x" * (schema_id > 1))
            assert (found.schema_id, found.json) == (schema_id, None)
            assert found.reason
        assert decoded(values, header(7) + b"\x06abc\x04").json is not None


@pytest.mark.parametrize(
    "hostile", [RegistryAnswer(is_silent=True), RegistryAnswer(200, b" " * 65_536, is_endless=True)]
)
def test_a_registry_without_an_end_is_left(hostile: RegistryAnswer) -> None:
    limits = {"registry_request_ms_max": 1_000, "registry_memory_bytes_max": 256 << 20}
    with served_registry({}, otherwise=hostile) as url, values_of(url, **limits) as values:

        def is_left() -> bool:
            reason = decoded(values, header(1)).reason
            return bool(reason) and "starting" not in reason

        eventually(is_left, "the registry is still waited for")


def test_the_login_and_the_authorities_are_those_of_the_flags(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(AUTH_VARIABLE, "bob:other")
    access = RegistryAccess("https://registry.example.com", ("ann", "secret"), Path("ca.pem"))
    given = access.environment()
    assert given[URL_VARIABLE] == "https://registry.example.com"
    assert (given[AUTH_VARIABLE], given[CA_VARIABLE]) == ("ann:secret", "ca.pem")
    assert RegistryAccess("https://a.example.com").environment()[AUTH_VARIABLE] == "bob:other"


def test_a_page_never_shows_the_login_of_the_flags() -> None:
    refusal = RegistryAnswer(500, b'{"error_code": 500, "message": "no ann:secret"}')
    with (
        served_registry({}, otherwise=refusal) as url,
        registry_values(
            RegistryAccess(url, ("ann", "secret")),
            ConsoleSettings.model_validate(PATIENT),
            time.monotonic,
        ) as values,
    ):
        assert values is not None
        reason = decoded(values, header(1)).reason
        assert "500" in reason
        assert "secret" not in reason


def test_no_url_is_no_registry() -> None:
    with registry_values(None, ConsoleSettings(), time.monotonic) as found:
        assert found is None
    with (
        pytest.raises(ConfigurationError, match="is not a URL"),
        registry_values(RegistryAccess("localhost"), ConsoleSettings(), time.monotonic),
    ):
        pass


async def test_the_pages_show_and_search_decoded_values() -> None:
    store = MemoryBucket()
    assert store.create(keys.CLUSTER, [IDENTITY.model_dump_json().encode()])
    log = WrittenLog(store)
    log.create_topic("t")
    values = [header(AVRO) + b"\x06abc\x04", header(AVRO) + b"\x06xyz\x06", header(9) + b"raw"]
    records = [DecodedRecord(at, START_MS, b"k", value, ()) for at, value in enumerate(values)]
    log.append("t", 0, records)
    log.flush()
    hostile = RegistryAnswer(404, json.dumps({"error_code": 1, "message": SCRIPT}).encode())
    with served_registry(ANSWERS, otherwise=hostile) as url, values_of(url) as registry:
        console = Console(
            store,
            "memory://b",
            ConsoleSettings(page_ms_max=600_000, scan_ms_max=600_000),
            KeyAccess(),
            1,
            now_ms=lambda: START_MS,
            now_s=lambda: 0.0,
            registry=registry,
        )
        app = application(console, hosts=["localhost"])
        status, _, page = await answer(app, "/messages?topic=t")
        assert (status, page.count("Avro, schema 1"), page.count("not decoded")) == (200, 2, 2)
        assert SCRIPT not in page
        status, _, page = await answer(app, "/record?topic=t&offset=2")
        assert (status, "raw" in page, "Not decoded: asking for schema 9" in page) == (
            200,
            True,
            True,
        )
        assert SCRIPT not in page
        status, _, page = await answer(app, "/messages?topic=t&path=%24.count%3E2")
        assert (status, "xyz" in page, "abc" in page) == (200, True, False)
        assert "1 value is not JSON" in page
