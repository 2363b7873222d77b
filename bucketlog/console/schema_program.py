"""The program of the processes that ask a schema registry, and that decode values by its schemas.

    python -m bucketlog.console.schema_program ROLE MEMORY_BYTES SECONDS [REGISTRY_SECONDS]

Requests and answers are lines of JSON. Registry, schemas and values are hostile, and the libraries
that read them bound neither time nor memory. Invariants: this process uses at most MEMORY_BYTES of
address space; it ends if one request takes longer than SECONDS; it writes no files.
"""

import base64
import binascii
import json
import resource
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from bucketlog.log_format.errors import BucketlogError, InvalidDataError
from bucketlog.schema_registry.codec import SchemaText
from bucketlog.schema_registry.newest_entries import keep_newest

Answer: TypeAlias = Callable[[Mapping[str, Any]], Mapping[str, Any]]
FETCH, DECODE = "fetch", "decode"
READY = b"ready\n"
SCHEMAS_MAX = 200
"""Schemas that the decoding process keeps; it asks for others again."""


class UnknownSchemaError(BucketlogError):
    """The decoding process does not have the schema: the request must bring it."""

    code = "UNKNOWN_SCHEMA"


class GivenSchemas:
    """The schemas that requests have brought."""

    def __init__(self) -> None:
        self._kept: dict[int, SchemaText] = {}

    def add(self, schema_id: int, given: Mapping[str, Any]) -> None:
        schema = SchemaText(given["text"], given["type"], given["references"])
        keep_newest(self._kept, schema_id, schema, count_max=SCHEMAS_MAX)

    def schema(self, schema_id: int) -> SchemaText:
        found = self._kept.get(schema_id)
        if found is None:
            raise UnknownSchemaError("the request brings no schema")
        return found


def decoding() -> Answer:
    """Answers {"id", "data", "schema"} with {"json"}. `schema` is null if it was sent before."""
    from bucketlog.client.schemas.display import DisplayFormat

    schemas = GivenSchemas()
    shown = DisplayFormat(schemas)

    def answer(request: Mapping[str, Any]) -> Mapping[str, Any]:
        if request["schema"] is not None:
            schemas.add(request["id"], request["schema"])
        try:
            return {"json": shown.decode(base64.b64decode(request["data"])).decode()}
        except (UnicodeDecodeError, binascii.Error) as error:
            raise InvalidDataError("its data are not UTF-8") from error

    return answer


def fetching(timeout_s: float) -> Answer:
    """Answers {"id"} with {"text", "type", "references"}. The registry's URL and login are those of
    the environment. A request is not repeated."""
    from bucketlog.client.schemas.registry import SchemaRegistry

    registry = SchemaRegistry(timeout_s=timeout_s, config={"max.retries": 0})

    def answer(request: Mapping[str, Any]) -> Mapping[str, Any]:
        found = registry.schema(request["id"])
        return {"text": found.text, "type": found.type, "references": dict(found.references)}

    return answer


def answered(answer: Answer, line: bytes) -> bytes:
    """The line that answers a request. Raises `MemoryError`."""
    found: Mapping[str, Any]
    try:
        found = answer(json.loads(line))
    except BucketlogError as error:
        found = {"error": str(error), "code": error.code}
    except RecursionError:
        found = {"error": "it is nested too deeply", "code": "INVALID_DATA"}
    return json.dumps(found).encode() + b"\n"


def main(role: str, memory_bytes: int, seconds: int, registry_seconds: float = 0.0) -> int:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # its parent ends it
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    answer = decoding() if role == DECODE else fetching(registry_seconds)
    out = sys.stdout.buffer
    out.write(READY)
    out.flush()
    for line in sys.stdin.buffer:
        signal.alarm(seconds)
        try:
            text = answered(answer, line)
        except MemoryError:
            return 1
        out.write(text)
        out.flush()
        signal.alarm(0)
    return 0


if __name__ == "__main__":
    role, memory, seconds, *registry = sys.argv[1:]
    sys.exit(main(role, int(memory), int(seconds), *map(float, registry)))
