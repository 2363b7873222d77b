"""OpenTelemetry's SDK with receivers in memory: the spans and metrics of a test."""

from collections.abc import Mapping
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import bucketlog
from bucketlog import Log, Record, Topic

CLIENT_ID = "shop"


class TelemetryRecorder:
    """What a connection with `option` records."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self._reader = InMemoryMetricReader()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self._exporter))
        meters = MeterProvider([self._reader])
        self.option = bucketlog.OpenTelemetry(tracer_provider=self.tracers, meter_provider=meters)

    def spans(self, name: str) -> list[ReadableSpan]:
        """The ended spans of this name, by their ends."""
        return [span for span in self._exporter.get_finished_spans() if span.name == name]

    def span(self, name: str) -> ReadableSpan:
        (found,) = self.spans(name)
        return found

    def names(self) -> list[str]:
        return [span.name for span in self._exporter.get_finished_spans()]

    def points(self, name: str) -> list[Any]:
        """The data points of a metric."""
        data = self._reader.get_metrics_data()
        return [
            point
            for resource in ([] if data is None else data.resource_metrics)
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]

    def counted(self, name: str, **wanted: str) -> int:
        """The sum of a counter, or the count of a histogram, over the points with these attributes.
        `_` in a name means `.`."""
        attributes = {key.replace("_", "."): value for key, value in wanted.items()}
        return sum(
            int(point.count if hasattr(point, "count") else point.value)
            for point in self.points(name)
            if dict(point.attributes) | attributes == dict(point.attributes)
        )


def attributes(span: ReadableSpan) -> Mapping[str, Any]:
    return dict(span.attributes or {})


def trace_id(span: ReadableSpan) -> int:
    return int(span.context.trace_id)


def parent_id(span: ReadableSpan) -> int | None:
    return None if span.parent is None else int(span.parent.span_id)


def links(span: ReadableSpan) -> set[int]:
    """Ids of the spans that it links to."""
    return {link.context.span_id for link in span.links}


def read(log: Log, topic: Topic[Any, Any]) -> list[Record[Any, Any]]:
    with log.consumer(topic, start="earliest", until="end") as consumer:
        return list(consumer)


def carried(span: ReadableSpan) -> bytes:
    """The value of `traceparent`."""
    ids = (trace_id(span), span.context.span_id, span.context.trace_flags)
    return b"00-%032x-%016x-%02x" % ids


def described(name: str, kind: str, topic: str, **more: object) -> dict[str, object]:
    """The attributes of a span of the client `CLIENT_ID`."""
    return {
        "messaging.system": "kafka",
        "messaging.operation.name": name,
        "messaging.operation.type": kind,
        "messaging.destination.name": topic,
        "messaging.client.id": CLIENT_ID,
        **{key.replace("_", "."): value for key, value in more.items()},
    }
