"""The tracer and the instruments of a connection, and the context in the headers of records.

Headers come from other programs. Values that are too long are ignored. A record with invalid values
has no context.
"""

import time
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from opentelemetry import metrics, propagate, trace
from opentelemetry.context import Context
from opentelemetry.metrics import MeterProvider
from opentelemetry.propagators.textmap import TextMapPropagator
from opentelemetry.trace import Span, SpanContext, Status, StatusCode, TracerProvider

from bucketlog.client import telemetry_names as names
from bucketlog.log_format.errors import BucketlogError
from bucketlog.version import package_version

HEADER_BYTES_MAX = 8192
"""Limit of W3C Baggage. Longer headers are not read."""
DESCRIPTION_CHARACTERS_MAX = 1000
"""Longest description of an error in a span. The text of an error may quote a record."""

Attributes: TypeAlias = dict[str, str | int | bool]


class Instruments:
    """The tracer and the instruments of one `OpenTelemetry`. Several threads may use them."""

    def __init__(
        self,
        tracer_provider: TracerProvider | None,
        meter_provider: MeterProvider | None,
        propagator: TextMapPropagator | None,
    ) -> None:
        version = package_version()
        self.tracer = trace.get_tracer(names.SCOPE, version, tracer_provider, names.SCHEMA_URL)
        meter = metrics.get_meter(names.SCOPE, version, meter_provider, names.SCHEMA_URL)
        self.sent = meter.create_counter(
            names.SENT_MESSAGES,
            names.MESSAGES_UNIT,
            "Number of messages that producers attempted to send.",
        )
        self.consumed = meter.create_counter(
            names.CONSUMED_MESSAGES,
            names.MESSAGES_UNIT,
            "Number of messages that were delivered to the application.",
        )
        self.operation_duration = meter.create_histogram(
            names.OPERATION_DURATION,
            names.DURATION_UNIT,
            "Duration of an operation of a producer or a consumer.",
            explicit_bucket_boundaries_advisory=names.DURATION_BOUNDS_S,
        )
        self.process_duration = meter.create_histogram(
            names.PROCESS_DURATION,
            names.DURATION_UNIT,
            "Duration of the processing of a message.",
            explicit_bucket_boundaries_advisory=names.DURATION_BOUNDS_S,
        )
        self._propagator = propagator

    @property
    def propagator(self) -> TextMapPropagator:
        return self._propagator or propagate.get_global_textmap()

    def headers_for(self, context: Context) -> list[tuple[str, str]]:
        """The headers that carry a context."""
        carrier: dict[str, str] = {}
        self.propagator.inject(carrier, context)
        return list(carrier.items())

    def carrier_of(self, headers: Iterable[tuple[str, str | bytes | None]]) -> Mapping[str, str]:
        """The headers of a record that carry a context. The last header of a name counts."""
        known = self.propagator.fields
        found: dict[str, str] = {}
        for name, value in headers:
            if name in known and value is not None and len(value) <= HEADER_BYTES_MAX:
                found[name] = value if isinstance(value, str) else value.decode(errors="replace")
        return found

    def context_of(self, carrier: Mapping[str, str], base: Context) -> Context:
        """The context `base`, with the entries that the carrier has."""
        return self.propagator.extract(carrier, base) if carrier else base

    def creation_of(self, carrier: Mapping[str, str]) -> SpanContext | None:
        """The span that created a record; None if its headers name none."""
        context = self.context_of(carrier, Context())
        found = trace.get_current_span(context).get_span_context()
        return found if found.is_valid else None


class Stopwatch:
    """A measurement of a duration, which begins when the object is made."""

    __slots__ = ("_began", "began_ns")

    def __init__(self) -> None:
        self.began_ns = time.time_ns()
        """The time of the begin, in nanoseconds since 1970."""
        self._began = time.perf_counter()

    def elapsed_s(self) -> float:
        return time.perf_counter() - self._began


def error_type(error: BaseException) -> str:
    """The value of `error.type`: the code of an error of bucketlog, else the name of the class."""
    if isinstance(error, BucketlogError):
        return error.code
    kind = type(error)
    return (
        kind.__qualname__
        if kind.__module__ == "builtins"
        else f"{kind.__module__}.{kind.__qualname__}"
    )


def note_error(span: Span, error: BaseException) -> str:
    """Record an error on a span. Returns `error.type`."""
    found = error_type(error)
    span.set_attribute(names.ERROR_TYPE, found)
    span.record_exception(error)
    description = f"{type(error).__name__}: {error}"[:DESCRIPTION_CHARACTERS_MAX]
    span.set_status(Status(StatusCode.ERROR, description))
    return found
