"""Writes infra/observability/dashboard.json, a Grafana dashboard of brokers, from the rows below.

    python scripts/dashboard.py

Queries are Prometheus'; `$__rate_interval` is Grafana's. Tests run each of them on a Prometheus
that scrapes brokers.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

PAGE = Path(__file__).parents[1] / "infra/observability/dashboard.json"
WIDTH, HEIGHT, PER_ROW = 8, 8, 3
SCHEMA_VERSION = 39
RATE = "$__rate_interval"


class Panel(NamedTuple):
    """`queries`: legend and query. `unit` is one of Grafana's."""

    title: str
    unit: str
    queries: tuple[tuple[str, str], ...]


def quantiles(histogram: str, selector: str = "") -> tuple[tuple[str, str], ...]:
    return tuple(
        (
            name,
            f"histogram_quantile({share}, "
            f"sum by (le) (rate({histogram}_bucket{selector}[{RATE}])))",
        )
        for name, share in (("p50", 0.5), ("p99", 0.99))
    )


def rate(metric: str, selector: str = "", by: str = "") -> str:
    inner = f"rate({metric}{selector}[{RATE}])"
    return f"sum by ({by}) ({inner})" if by else f"sum({inner})"


def one(title: str, unit: str, query: str, legend: str = "") -> Panel:
    return Panel(title, unit, ((legend or title, query),))


ROWS: dict[str, tuple[Panel, ...]] = {
    "Is it well?": (
        one("Ready brokers", "none", "sum(bucketlog_ready)"),
        one("Parts that are degraded", "none", "count(bucketlog_degraded) or vector(0)"),
        one("Epochs that ended, 1 h", "none", "max(increase(bucketlog_epochs_ended_total[1h]))"),
        one(
            "Errors answered",
            "reqps",
            rate("bucketlog_request_errors_total", by="api, error"),
            "{{api}} {{error}}",
        ),
        one("Connections", "none", "sum by (instance) (bucketlog_connections)", "{{instance}}"),
        one(
            "Requests held in memory",
            "bytes",
            "sum by (instance) (bucketlog_frame_bytes)",
            "{{instance}}",
        ),
    ),
    "Traffic": (
        one("Produced", "Bps", rate("bucketlog_request_bytes_total", '{api="Produce"}')),
        one("Fetched", "Bps", rate("bucketlog_response_bytes_total", '{api="Fetch"}')),
        one("Requests", "reqps", rate("bucketlog_request_seconds_count", by="api"), "{{api}}"),
        Panel(
            "Produce: until acknowledged",
            "s",
            quantiles("bucketlog_request_seconds", '{api="Produce"}'),
        ),
        Panel(
            "Fetch: until answered, waiting included",
            "s",
            quantiles("bucketlog_request_seconds", '{api="Fetch"}'),
        ),
        Panel("PUTs to the bucket", "s", quantiles("bucketlog_bucket_create_seconds")),
    ),
    "Bucket": (
        one("Requests", "reqps", rate("bucketlog_bucket_requests_total", by="verb"), "{{verb}}"),
        one("Bytes", "Bps", rate("bucketlog_bucket_bytes_total", by="direction"), "{{direction}}"),
        one(
            "PUTs that were sent twice",
            "percentunit",
            rate("bucketlog_bucket_hedged_puts_total")
            + " / "
            + rate("bucketlog_bucket_requests_total", '{verb="create"}'),
        ),
        one("Fetched from", "Bps", rate("bucketlog_fetched_bytes_total", by="from"), "{{from}}"),
        one(
            "Encrypted topics",
            "Bps",
            rate("bucketlog_encrypted_bytes_total", by="direction"),
            "{{direction}}",
        ),
        one(
            "Refused keys and broken batches",
            "ops",
            rate("bucketlog_encryption_failures_total", by="reason"),
            "{{reason}}",
        ),
        one("Reads of ranges", "reqps", rate("bucketlog_range_requests_total")),
        one("Bytes that they brought", "Bps", rate("bucketlog_range_bytes_total")),
    ),
    "Work in the background": (
        one("Checkpoints, 1 h", "none", "sum(increase(bucketlog_checkpoints_total[1h]))"),
        one("The last checkpoint took", "s", "max(bucketlog_last_checkpoint_seconds)"),
        Panel(
            "Compaction",
            "Bps",
            (
                ("split", rate("bucketlog_split_bytes_total")),
                ("merged", rate("bucketlog_merged_bytes_total")),
                ("cleaned", rate("bucketlog_cleaned_bytes_total")),
            ),
        ),
        one(
            "Deleted objects",
            "ops",
            f"{rate('bucketlog_deleted_objects_total', by='kind')} or vector(0)",
            "{{kind}}",
        ),
        one(
            "Ended transactions",
            "ops",
            f"sum by (outcome, by) (rate(bucketlog_transactions_ended_total[{RATE}]))",
            "{{outcome}} by {{by}}",
        ),
        one(
            "Open transactions",
            "short",
            "max(bucketlog_open_transactions)",
            "open",
        ),
        one(
            "Offsets behind open transactions",
            "short",
            "max(bucketlog_unstable_offsets_max)",
            "most of a partition",
        ),
        one(
            "Oldest transaction with two-phase commit",
            "s",
            "max(bucketlog_oldest_two_phase_transaction_seconds)",
            "open for",
        ),
        one(
            "CPU",
            "percentunit",
            f"sum by (instance) (rate(process_cpu_seconds_total[{RATE}]))",
            "{{instance}}",
        ),
        one(
            "Memory",
            "bytes",
            "sum by (instance) (process_resident_memory_bytes)",
            "{{instance}}",
        ),
    ),
}


def _panel(panel: Panel, number: int, x: int, y: int) -> dict[str, Any]:
    return {
        "id": number,
        "type": "timeseries",
        "title": panel.title,
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "gridPos": {"h": HEIGHT, "w": WIDTH, "x": x, "y": y},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + at), "expr": query, "legendFormat": legend}
            for at, (legend, query) in enumerate(panel.queries)
        ],
    }


def render() -> str:
    panels: list[dict[str, Any]] = []
    y = 0
    for title, row in ROWS.items():
        panels.append(
            {
                "id": len(panels) + 1,
                "type": "row",
                "title": title,
                "collapsed": False,
                "panels": [],
                "gridPos": {"h": 1, "w": 24, "x": 0, "y": y},
            }
        )
        y += 1
        for at, panel in enumerate(row):
            x, below = at % PER_ROW * WIDTH, at // PER_ROW * HEIGHT
            panels.append(_panel(panel, len(panels) + 1, x, y + below))
        y += -(-len(row) // PER_ROW) * HEIGHT
    page = {
        "uid": "bucketlog",
        "title": "bucketlog",
        "schemaVersion": SCHEMA_VERSION,
        "editable": True,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {
            "list": [{"name": "datasource", "type": "datasource", "query": "prometheus"}]
        },
        "panels": panels,
    }
    return json.dumps(page, indent=2) + "\n"


if __name__ == "__main__":
    PAGE.write_text(render())
