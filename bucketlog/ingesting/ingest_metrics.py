"""Metrics of ingests for Prometheus, and the server of the page `/metrics`."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bucketlog.ingesting.ingest_figures import TableFigures
from bucketlog.log_format.local_server import QUIET_SERVER, in_address, listening_socket

CONNECTIONS_MAX = 20
GRACE_S = 1
TABLE = "table"


class IngestCollector(Collector):
    """The metrics of tables that one process ingests into."""

    def __init__(self, tables: Sequence[TableFigures]) -> None:
        self._tables = tables

    def collect(self) -> Iterator[Metric]:
        yield self._counter("rows", "Rows that were added to a table.", lambda each: each.rows)
        yield self._counter(
            "dead_letters",
            "Dead letters that were added to the table of dead letters.",
            lambda each: each.dead_letters,
        )
        yield self._counter(
            "written_bytes",
            "Bytes of data files of a table and of its dead letters.",
            lambda each: each.file_bytes,
        )
        yield self._counter(
            "commits", "Batches that were committed to a table.", lambda each: each.commits
        )
        yield self._counter(
            "failures",
            "Runs and maintenances of a table that ended with an error.",
            lambda each: each.failures,
        )
        yield self._gauge(
            "failing",
            "1 after a failure, until a later run is complete; otherwise 0.",
            lambda each: int(each.is_failing),
        )
        yield self._gauge(
            "lag_offsets",
            "Offsets that were not ingested when the ingest last looked at the log. Gaps count.",
            lambda each: each.lag,
        )
        yield self._gauge(
            "freshness_seconds",
            "Time since the table last held all records of the log.",
            lambda each: each.freshness_s,
        )
        yield self._gauge(
            "last_commit_timestamp_seconds",
            "Time of the last commit of this process.",
            lambda each: each.last_commit_s,
        )
        yield self._gauge(
            "newest_record_timestamp_seconds",
            "Highest timestamp of the records that this process ingested.",
            lambda each: None if each.newest_ms is None else each.newest_ms / 1000,
        )

    def _counter(self, name: str, text: str, value: Callable[[TableFigures], int]) -> Metric:
        found = CounterMetricFamily(f"bucketlog_ingest_{name}", text, labels=[TABLE])
        for each in self._tables:
            found.add_metric([each.table], value(each))
        return found

    def _gauge(self, name: str, text: str, value: Callable[[TableFigures], float | None]) -> Metric:
        """Tables whose value is not known have no series."""
        found = GaugeMetricFamily(f"bucketlog_ingest_{name}", text, labels=[TABLE])
        for each in self._tables:
            known = value(each)
            if known is not None:
                found.add_metric([each.table], known)
        return found


def metrics_text(tables: Sequence[TableFigures]) -> bytes:
    """Return the metrics of `tables` in Prometheus's text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(IngestCollector(tables))
    return generate_latest(registry)


@contextmanager
def served_metrics(tables: Sequence[TableFigures], *, host: str, port: int) -> Iterator[str]:
    """Within the block, a thread serves the page `/metrics`. Yields its address. Raises
    `ConfigurationError` if `host` and `port` cannot be used."""

    async def metrics(_: Request) -> Response:
        return Response(metrics_text(tables), media_type=CONTENT_TYPE_LATEST)

    with listening_socket(host, port) as listening:
        config = uvicorn.Config(
            Starlette(routes=[Route("/metrics", metrics)]),
            **QUIET_SERVER,
            limit_concurrency=CONNECTIONS_MAX,
            timeout_graceful_shutdown=GRACE_S,
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(
            target=server.run, args=([listening],), name="metrics", daemon=True
        )
        thread.start()
        try:
            yield f"http://{in_address(host)}:{listening.getsockname()[1]}/metrics"
        finally:
            server.should_exit = True
            thread.join()
