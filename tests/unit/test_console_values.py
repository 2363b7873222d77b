"""Values with a schema in the console: limits, failures, and what is kept; processes that hang."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from bucketlog.console.record_values import RecordValues, RegistryLimits
from bucketlog.console.registry_processes import secrets_of
from bucketlog.console.schema_process import (
    SchemaProcess,
    SchemaProcessBusyError,
    SchemaProcessError,
    SchemaProcessSlowError,
)
from bucketlog.console.schema_program import answered, decoding
from bucketlog.schema_registry.framing import header
from tests.rigs.patience import PATIENCE_S, eventually

LIMITS = RegistryLimits(schemas=3, value_bytes=100, request_s=2.0, page_s=2.0, retry_s=10.0)
SCHEMA = {"type": "JSON", "text": "{}", "references": {}}


class StandIn:
    """A process of the schema program, without the process. `answer` may raise."""

    def __init__(self, answer: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> None:
        self.answer = answer
        self.requests: list[Mapping[str, Any]] = []

    def ask(self, request: Mapping[str, Any], *, seconds: float) -> Mapping[str, Any]:
        self.requests.append(request)
        return self.answer(request)


class Values:
    """`RecordValues` with stand-ins, on a clock that a test sets."""

    def __init__(self, *, secrets: tuple[str, ...] = ()) -> None:
        self.now = 0.0
        self.fetching = StandIn(lambda request: SCHEMA)
        self.decoding = StandIn(lambda request: {"json": "{}"})
        self.values = RecordValues(
            self.fetching, self.decoding, LIMITS, now_s=lambda: self.now, secrets=secrets
        )


def failing(text: str, code: str) -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
    return lambda request: {"error": text, "code": code}


def test_only_frames_are_decoded() -> None:
    rig = Values()
    page = rig.values.for_page()
    for data in (None, b"", b"\0\0\0\0", b"plain text"):
        assert page.decoded(data) is None
    found = page.decoded(header(7) + b"{}")
    assert found is not None
    assert (found.schema_id, found.type, found.json, found.reason) == (7, "JSON Schema", b"{}", "")


def test_a_schema_is_asked_for_once_and_kept_up_to_a_number() -> None:
    rig = Values()
    for schema_id in (1, 1, 2, 3, 1, 4, 1):
        rig.values.for_page().decoded(header(schema_id))
    assert [request["id"] for request in rig.fetching.requests] == [1, 2, 3, 4, 1]


def test_the_schema_is_sent_when_the_decoder_does_not_have_it() -> None:
    rig = Values()
    answer = decoding()
    rig.decoding.answer = answer
    for _ in range(2):
        found = rig.values.for_page().decoded(header(5) + b'{"a": 1}')
        assert found is not None
        assert found.json == b'{"a": 1}'
    assert [request["schema"] for request in rig.decoding.requests] == [None, SCHEMA, None]


def test_a_failure_is_kept_for_a_time() -> None:
    rig = Values()
    rig.fetching.answer = failing("there is no schema 1", "INVALID_DATA")
    for _ in range(3):
        found = rig.values.for_page().decoded(header(1))
        assert found is not None
        assert (found.json, found.reason) == (None, "there is no schema 1")
    assert len(rig.fetching.requests) == 1
    rig.fetching.answer = lambda request: SCHEMA
    found = rig.values.for_page().decoded(header(2))
    assert found is not None
    assert found.json is not None
    rig.now = 11.0
    found = rig.values.for_page().decoded(header(1))
    assert found is not None
    assert found.json is not None


@pytest.mark.parametrize(("seconds", "requests"), [(0.5, 4), (1.5, 1)])
def test_a_registry_that_takes_long_to_fail_is_not_asked_for_each_schema(
    seconds: float, requests: int
) -> None:
    rig = Values()

    def away(request: Mapping[str, Any]) -> Mapping[str, Any]:
        rig.now += seconds
        return {"error": "no registry answers", "code": "X"}

    rig.fetching.answer = away
    for number in range(4):
        found = rig.values.for_page().decoded(header(number))
        assert found is not None
        assert found.reason == "no registry answers"
    assert len(rig.fetching.requests) == requests


def test_a_page_waits_for_a_slow_registry_within_its_limit() -> None:
    rig = Values()

    def slow(request: Mapping[str, Any]) -> Mapping[str, Any]:
        rig.now += 1.5
        return SCHEMA

    rig.fetching.answer = slow
    page = rig.values.for_page()
    found = [page.decoded(header(number)) for number in range(5)]
    assert [one.reason for one in found if one][:2] == ["", ""]
    assert all("has waited 2 s" in one.reason for one in found[2:] if one)
    assert rig.now <= LIMITS.page_s + LIMITS.request_s


def test_a_process_that_is_busy_leaves_no_failure() -> None:
    rig = Values()

    def busy(request: Mapping[str, Any]) -> Mapping[str, Any]:
        raise SchemaProcessBusyError("busy")

    rig.fetching.answer = busy
    found = rig.values.for_page().decoded(header(1))
    assert found is not None
    assert found.reason == "busy"
    rig.fetching.answer = lambda request: SCHEMA
    found = rig.values.for_page().decoded(header(1))
    assert found is not None
    assert found.json is not None


def test_large_values_are_not_decoded() -> None:
    rig = Values()
    found = rig.values.for_page().decoded(header(1) + b"x" * 96)
    assert found is not None
    assert "more than 100 bytes" in found.reason
    assert rig.fetching.requests == []


def test_no_reason_has_a_password_or_is_long() -> None:
    url = "http://user:p%40ss@registry:8081,http://registry2"
    secrets = secrets_of(url, "me:other")
    rig = Values(secrets=tuple(secrets))
    rig.fetching.answer = failing(f"{url} me:other other p@ss user:p@ss" + "x" * 2_000, "X")
    found = rig.values.for_page().decoded(header(1))
    assert found is not None
    for secret in ("p%40ss", "p@ss", "other"):
        assert secret not in found.reason
    assert len(found.reason) <= 401


def test_the_program_answers_what_it_cannot_read() -> None:
    answer = decoding()
    ask = b'{"id": 1, "data": "AAAAAAEA", "schema": %s}'
    assert b"UNKNOWN_SCHEMA" in answered(answer, ask % b"null")
    deep = b'{"type": "AVRO", "text": "%s", "references": {}}' % (b"[" * 100_000)
    assert b'"error"' in answered(answer, ask % deep)
    avro = b'{"type": "AVRO", "text": "\\"null\\"", "references": {}}'
    assert b"left over" in answered(answer, ask % avro)


READY = "print('ready', flush=True)\n"


@contextmanager
def process(program: str, *, answer_bytes_max: int = 1_000) -> Iterator[SchemaProcess]:
    found = SchemaProcess(
        "the test",
        [sys.executable, "-c", program],
        {},
        answer_bytes_max=answer_bytes_max,
        now_s=time.monotonic,
    )
    try:
        yield found
    finally:
        found.close()


ECHO = READY + "import sys\nfor line in sys.stdin: print(line, end='', flush=True)"


def test_a_process_answers_again_and_again() -> None:
    with process(ECHO) as found:
        for number in range(3):
            assert found.ask({"n": number}, seconds=PATIENCE_S) == {"n": number}


@pytest.mark.parametrize(
    "program",
    [
        READY + "import sys; sys.stdin.readline(); sys.exit(1)",
        READY + "print('[]', flush=True); input(); input()",
        READY + "print('x' * 10_000, flush=True); input(); input()",
        READY + "import sys\nwhile True: sys.stdout.write('x' * 100)",
        READY + "print('no json', flush=True); input(); input()",
        "import sys; sys.exit(1)",
    ],
)
def test_a_process_that_misbehaves_is_an_error_and_starts_again(program: str) -> None:
    with process(program) as found:
        for _ in range(2):
            with pytest.raises(SchemaProcessError):
                found.ask({}, seconds=PATIENCE_S)


def test_a_request_that_takes_too_long_ends_the_process() -> None:
    with process(READY + "while True: pass") as found:

        def is_ended() -> bool:
            try:
                found.ask({}, seconds=0.2)
            except SchemaProcessBusyError:  # on a busy machine, it may still be starting
                return False
            except SchemaProcessSlowError:
                return True
            raise AssertionError("the process has answered")

        eventually(is_ended, "the process still runs")
        assert found._process is None


def test_a_process_that_does_not_start_is_not_waited_for() -> None:
    with process("input()") as found, pytest.raises(SchemaProcessBusyError, match="starting"):
        found.ask({}, seconds=0.05)
