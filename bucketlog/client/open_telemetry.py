"""The option `telemetry` of `connect`. This module does not import OpenTelemetry when it loads."""

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_format.extras import needed

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.propagators.textmap import TextMapPropagator
    from opentelemetry.trace import TracerProvider

    from bucketlog.client.topic import Record
    from bucketlog.client.traced_reads import TracedReads
    from bucketlog.client.traced_sends import TracedSends

EXTRA = "otel"


class OpenTelemetry:
    """Recorder of the spans and metrics of a connection's producers and consumers. Pass it to
    `connect` or `aconnect` as `telemetry`.

    The program installs and configures the SDK of OpenTelemetry. Without an SDK, no span and no
    metric is recorded. Producers write the context of the trace to the headers of records, as
    `traceparent` and `tracestate`. Consumers read it from there.

    Args:
        tracer_provider: Provider of the tracer; None means the global tracer provider.
        meter_provider: Provider of the meter; None means the global meter provider.
        propagator: Writer and reader of the headers; None means the global propagator. By default,
            this is W3C Trace Context with Baggage.

    Raises:
        ConfigurationError: If opentelemetry-api is not installed.

    Examples:
        >>> with bucketlog.connect("localhost:9092", telemetry=bucketlog.OpenTelemetry()) as traced:
        ...     with traced.producer() as producer:
        ...         producer.send(orders, Order(id="3", amount=1.5)).result().offset
        2
    """

    def __init__(
        self,
        *,
        tracer_provider: "TracerProvider | None" = None,
        meter_provider: "MeterProvider | None" = None,
        propagator: "TextMapPropagator | None" = None,
    ) -> None:
        needed("opentelemetry.trace", EXTRA)
        from bucketlog.client.telemetry_instruments import Instruments

        self._instruments = Instruments(tracer_provider, meter_provider, propagator)

    def processing(
        self, record: "Record[Any, Any]", *, group: str | None = None
    ) -> AbstractContextManager[object]:
        """Record the processing of one record as the span `process TOPIC`, which is current in a
        `with` block.

        `process` does this by itself. Use this method in the body of a loop over a consumer. The
        context of the record's sender is the parent of the span. An exception of the block is
        recorded and raised again.

        Args:
            record: Record that the block processes.
            group: Name of the consumer group; None means a consumer without a group.

        Returns:
            A context manager.

        Examples:
            >>> telemetry = bucketlog.OpenTelemetry()
            >>> with log.consumer(orders, start="earliest", until="end") as consumer:
            ...     for record in consumer:
            ...         with telemetry.processing(record):
            ...             print(record.value.id)
            1
            2
        """
        return self._reads("", group).processing(record, attempt=None)

    def _sends(self, client_id: str, *, injects: bool = True) -> "TracedSends":
        from bucketlog.client.traced_sends import TracedSends

        return TracedSends(self._instruments, client_id, injects=injects)

    def _reads(self, client_id: str, group: str | None) -> "TracedReads":
        """Make the recorder of a consumer. With `client_id` "", its spans do not name a client."""
        from bucketlog.client.traced_reads import TracedReads

        return TracedReads(self._instruments, client_id, group)


def check_telemetry(given: object) -> None:
    """Check the option `telemetry`. Raises `ConfigurationError`."""
    if given is not None and not isinstance(given, OpenTelemetry):
        raise ConfigurationError(
            f"telemetry is {given!r}", remedy="give telemetry=bucketlog.OpenTelemetry()"
        )
