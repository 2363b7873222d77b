"""What the page Cost shows: `bucketlog cost`, by topic and by what is paid for."""

from typing import NamedTuple

from bucketlog.console.page_query import PageQuery, table_page
from bucketlog.console.pages import Console, Values
from bucketlog.cost.assumptions import PRICES_OF, REGION, Assumptions
from bucketlog.cost.load import CLUSTER
from bucketlog.cost.of_bucket import Usage, WriteReason
from bucketlog.cost.pricing import GB, PricedDay, Rates, System, price, totals
from bucketlog.cost.what_if import WhatIf, estimated

NAMES = {
    System.S3_STANDARD: "S3 Standard",
    System.S3_EXPRESS: "S3 Express One Zone",
    System.KAFKA: "Kafka in three zones",
}


INTERVAL_MS_MAX = 5_000
RETENTION_DAYS_MAX = 365


class TopicCost(NamedTuple):
    """Sums over all days."""

    topic: str
    produced_bytes: int
    puts: float
    usd: dict[System, float]


def cost(console: Console, query: PageQuery) -> Values:
    console.objects()  # more objects than the limit: an error, before their footers are read
    given = Assumptions()
    usage = console.usage()
    rows = price(usage.load, usage.retention_days, Rates.assumed(given), given)
    by_system = totals(rows)
    sums = {system: sum(parts.values()) for system, parts in by_system.items()}
    page = table_page(
        topic_costs(rows),
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
    parts = dict.fromkeys(part for found in by_system.values() for part in found)
    fields = Assumptions.model_fields
    return {
        "view": console.look(),
        "page": page,
        "systems": NAMES,
        "sums": sums,
        "most": max(sums.values(), default=0) or 1,
        "parts_rows": [
            (name, {system: by_system[system].get(name, 0.0) for system in System})
            for name in parts
        ],
        "reasons": written_for(usage, given),
        "what_if": what_if,
        "estimate": estimate_rows(usage, rows, what_if, given) if any(what_if) else None,
        "interval_ms_max": INTERVAL_MS_MAX,
        "retention_days_max": RETENTION_DAYS_MAX,
        "days": sorted({row.day for row in rows}),
        "complete_from": usage.complete_from,
        "region": REGION,
        "prices_of": PRICES_OF,
        "assumptions": [(name, value, fields[name].description) for name, value in given],
    }


def topic_costs(rows: list[PricedDay]) -> list[TopicCost]:
    """The cluster's own costs are those of `CLUSTER`."""
    found: dict[str, list[PricedDay]] = {}
    for row in rows:
        found.setdefault(row.topic, []).append(row)
    return [
        TopicCost(
            "(cluster)" if topic == CLUSTER else topic,
            sum(day.produced_bytes for day in days),
            sum(day.puts for day in days),
            {system: sum(day.total(system) for day in days) for system in System},
        )
        for topic, days in found.items()
    ]


class WrittenRow(NamedTuple):
    """`usd` is the price of the PUTs and of the upload."""

    reason: str
    puts: float
    written_bytes: float
    usd: dict[System, float]


REASONS = {
    WriteReason.RECORDS: "records",
    WriteReason.FACTS: "offsets of groups, settings and transactions alone",
    WriteReason.COMPACTION: "compaction",
    WriteReason.CHECKPOINTS: "checkpoints",
    WriteReason.CLUSTER: "registrations, seals, floors and claims",
}


def written_for(usage: Usage, given: Assumptions) -> list[WrittenRow]:
    return [
        WrittenRow(
            REASONS[reason],
            puts,
            written_bytes,
            {
                System.S3_STANDARD: puts / 1000 * given.s3_standard_put_usd_per_1000,
                System.S3_EXPRESS: puts / 1000 * given.s3_express_put_usd_per_1000
                + written_bytes / GB * given.s3_express_upload_gb_usd,
            },
        )
        for reason, (puts, written_bytes) in usage.written.activities().items()
    ]


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


def estimate_rows(
    usage: Usage, rows: list[PricedDay], what_if: WhatIf, given: Assumptions
) -> EstimateTable:
    found = estimated(usage, what_if, Rates.assumed(given), given)
    return EstimateTable(
        [
            EstimateRow(
                NAMES[system],
                sum(row.total(system) for row in rows),
                sum(row.total(system) for row in found.rows),
            )
            for system in System
        ],
        EstimateRow("PUTs", sum(row.puts for row in rows), found.puts),
        found.waited_ms,
    )
