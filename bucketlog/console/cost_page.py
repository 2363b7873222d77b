"""What the page Cost shows: `bucketlog cost`, by topic and by what is paid for."""

from typing import NamedTuple

from bucketlog.console.page_query import PageQuery, table_page
from bucketlog.console.pages import Console, Values
from bucketlog.cost.assumptions import PRICES_OF, REGION, Assumptions
from bucketlog.cost.load import CLUSTER
from bucketlog.cost.pricing import PricedDay, Rates, System, price, totals

NAMES = {
    System.S3_STANDARD: "S3 Standard",
    System.S3_EXPRESS: "S3 Express One Zone",
    System.KAFKA: "Kafka in three zones",
}


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
