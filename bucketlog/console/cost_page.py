"""What the page Cost shows: `bucketlog cost`, by topic and by what is paid for."""

from typing import NamedTuple

from bucketlog.console.page_query import PageQuery, table_page
from bucketlog.console.pages import Console, Values
from bucketlog.console.priced_usage import PricedUsage
from bucketlog.cost.assumptions import PRICES_OF, REGION, Assumptions
from bucketlog.cost.pricing import Rates, System
from bucketlog.cost.what_if import WhatIf, estimated

NAMES = {
    System.S3_STANDARD: "S3 Standard",
    System.S3_EXPRESS: "S3 Express One Zone",
    System.KAFKA: "Kafka in three zones",
}
INTERVAL_MS_MAX = 5_000
RETENTION_DAYS_MAX = 365


def cost(console: Console, query: PageQuery) -> Values:
    console.objects()  # more objects than the limit: an error, before their footers are read
    priced = console.usage()
    page = table_page(
        priced.topics,
        query,
        {
            "topic": lambda row: row.topic,
            "produced": lambda row: row.produced_bytes,
            "puts": lambda row: row.puts,
            "usd": lambda row: row.usd[System.S3_STANDARD],
        },
        filter_text=lambda row: row.topic,
        default_sort="-produced",
        rows_max=console.settings.page_rows_max,
    )
    what_if = WhatIf(
        query.number("flush_interval_ms", 0, most=INTERVAL_MS_MAX) or None,
        query.number("retention_days", 0, most=RETENTION_DAYS_MAX) or None,
    )
    sums = priced.sums
    parts = dict.fromkeys(part for found in priced.by_system.values() for part in found)
    fields = Assumptions.model_fields
    return {
        "view": console.look(),
        "page": page,
        "systems": NAMES,
        "sums": sums,
        "most": max(sums.values(), default=0) or 1,
        "parts_rows": [
            (name, {system: priced.by_system[system].get(name, 0.0) for system in System})
            for name in parts
        ],
        "reasons": priced.reasons,
        "what_if": what_if,
        "estimate": estimate_rows(priced, what_if) if any(what_if) else None,
        "interval_ms_max": INTERVAL_MS_MAX,
        "retention_days_max": RETENTION_DAYS_MAX,
        "days": sorted({row.day for row in priced.rows}),
        "complete_from": priced.usage.complete_from,
        "region": REGION,
        "prices_of": PRICES_OF,
        "assumptions": [(name, value, fields[name].description) for name, value in priced.given],
    }


class EstimateRow(NamedTuple):
    """A figure as it was, and with other settings."""

    name: str
    before: float
    after: float


class EstimateTable(NamedTuple):
    """`usd` are sums over all days. `waited_ms` is the mean wait that is added."""

    usd: list[EstimateRow]
    puts: EstimateRow
    waited_ms: float


def estimate_rows(priced: PricedUsage, what_if: WhatIf) -> EstimateTable:
    given, before = priced.given, priced.sums
    found = estimated(priced.usage, what_if, Rates.assumed(given), given)
    return EstimateTable(
        [
            EstimateRow(
                NAMES[system],
                before[system],
                sum(row.total(system) for row in found.rows),
            )
            for system in System
        ],
        EstimateRow("PUTs", sum(row.puts for row in priced.rows), found.puts),
        found.waited_ms,
    )
