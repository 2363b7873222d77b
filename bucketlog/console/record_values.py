"""Keys and values that were written with a schema registry, as JSON.

Invariants: a page waits for the registry no longer than its limits, and what cannot be decoded has
a reason in its place; schemas are kept, up to a number, and a failure for a time; no reason
contains a password.
"""

import base64
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from bucketlog.console.schema_process import SchemaProcessBusyError
from bucketlog.console.schema_program import UnknownSchemaError
from bucketlog.log_format.errors import BucketlogError
from bucketlog.schema_registry.framing import is_framed, schema_id_of
from bucketlog.schema_registry.newest_entries import keep_newest

REASON_CHARS_MAX = 400
SLOW_SHARE = 1 / 2
"""A registry that takes this part of a request's time to fail is slow."""
TYPES = {"AVRO": "Avro", "JSON": "JSON Schema", "PROTOBUF": "Protobuf"}


class AnsweringProcess(Protocol):
    """`SchemaProcess`, as it is used here."""

    def ask(self, request: Mapping[str, Any], *, seconds: float) -> Mapping[str, Any]: ...


class RegistryLimits(NamedTuple):
    """`value_bytes`: values with more are not decoded. `request_s`: time of one request;
    `page_s`: time after which a page begins no further request to the registry; `retry_s`: age of a
    failure."""

    schemas: int
    value_bytes: int
    request_s: float
    page_s: float
    retry_s: float


class DecodedValue(NamedTuple):
    """`type` is "" if it is not known. `json` is None if there is a `reason`."""

    schema_id: int
    type: str = ""
    json: bytes | None = None
    reason: str = ""


class NotDecodedError(BucketlogError):
    """The reason why a value is not decoded."""

    code = "NOT_DECODED"


class _Failure(NamedTuple):
    reason: str
    until_s: float


class RecordValues:
    """Keeps schemas and failures for all pages. Leaves `secrets` out of reasons."""

    def __init__(
        self,
        fetching: AnsweringProcess,
        decoding: AnsweringProcess,
        limits: RegistryLimits,
        *,
        now_s: Callable[[], float],
        secrets: Sequence[str] = (),
    ) -> None:
        self.limits = limits
        self.now_s = now_s
        self._fetching = fetching
        self._decoding = decoding
        self._secrets = sorted(filter(None, secrets), key=len, reverse=True)
        self._schemas: dict[int, Mapping[str, Any]] = {}
        self._failures: dict[int, _Failure] = {}
        self._away = _Failure("", 0.0)
        self._lock = threading.Lock()

    def for_page(self) -> "PageValues":
        return PageValues(self)

    def schema(self, schema_id: int, *, until_s: float) -> Mapping[str, Any]:
        """Raises `NotDecodedError`. After `until_s`, the registry is not asked."""
        with self._lock:
            known = self._known(schema_id)
        if known is not None:
            return known
        if self.now_s() >= until_s:
            raise NotDecodedError(
                f"the page has waited {self.limits.page_s:g} s for the schema registry: "
                "load the page again"
            )
        began_s = self.now_s()
        try:
            found = self._asked(self._fetching, {"id": schema_id})
        except NotDecodedError as error:
            with self._lock:
                self._keep_failure(schema_id, error, self.now_s() - began_s)
            raise
        with self._lock:
            keep_newest(self._schemas, schema_id, found, count_max=self.limits.schemas)
        return found

    def decoded(self, schema_id: int, schema: Mapping[str, Any], data: str) -> bytes:
        """Raises `NotDecodedError`."""
        request = {"id": schema_id, "data": data}
        try:
            found = self._asked(self._decoding, {**request, "schema": None})
        except NotDecodedError as error:
            if error.code != UnknownSchemaError.code:
                raise
            found = self._asked(self._decoding, {**request, "schema": schema})
        return str(found["json"]).encode()

    def _known(self, schema_id: int) -> Mapping[str, Any] | None:
        found = self._schemas.get(schema_id)
        if found is not None:
            return found
        for failure in (self._failures.get(schema_id), self._away):
            if failure is not None and self.now_s() < failure.until_s:
                raise NotDecodedError(failure.reason)
        return None

    def _keep_failure(self, schema_id: int, error: NotDecodedError, took_s: float) -> None:
        """A registry that is slow or away is not asked for other schemas, either."""
        failure = _Failure(error.message, self.now_s() + self.limits.retry_s)
        if error.code == SchemaProcessBusyError.code:
            return
        if took_s >= self.limits.request_s * SLOW_SHARE:
            self._away = failure
        keep_newest(self._failures, schema_id, failure, count_max=self.limits.schemas)

    def _asked(self, process: AnsweringProcess, request: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            found = process.ask(request, seconds=self.limits.request_s)
        except BucketlogError as error:
            found = {"error": str(error), "code": error.code}
        if "error" in found:
            failed = NotDecodedError(self._public(str(found["error"])))
            failed.code = str(found.get("code", ""))
            raise failed
        return found

    def _public(self, reason: str) -> str:
        for secret in self._secrets:
            reason = reason.replace(secret, "…")
        return reason if len(reason) <= REASON_CHARS_MAX else f"{reason[:REASON_CHARS_MAX]}…"


class PageValues:
    """The values of one page."""

    def __init__(self, values: RecordValues) -> None:
        self._values = values
        self._until_s = values.now_s() + values.limits.page_s

    @property
    def bytes_max(self) -> int:
        """Size up to which a value is decoded."""
        return self._values.limits.value_bytes

    def decoded(self, data: bytes | None) -> DecodedValue | None:
        """Returns None for bytes without a frame. `data` with more than `bytes_max` may be a
        beginning."""
        if not is_framed(data):
            return None
        assert data is not None
        schema_id = schema_id_of(data)
        if len(data) > self.bytes_max:
            reason = f"it has more than {self.bytes_max:,} bytes, which are not decoded"
            return DecodedValue(schema_id, reason=reason)
        kind = ""
        try:
            schema = self._values.schema(schema_id, until_s=self._until_s)
            kind = TYPES.get(str(schema.get("type")), "")
            encoded = base64.b64encode(data).decode()
            return DecodedValue(schema_id, kind, self._values.decoded(schema_id, schema, encoded))
        except NotDecodedError as error:
            return DecodedValue(schema_id, kind, reason=error.message)
