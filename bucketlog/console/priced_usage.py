"""A log's load with its prices, as the page Cost and the metrics show it. Pure.

Invariant: prices are computed once for each reading of the load.
"""

from dataclasses import dataclass
from typing import NamedTuple

from bucketlog.cost.assumptions import Assumptions
from bucketlog.cost.load import CLUSTER
from bucketlog.cost.of_bucket import Usage, WriteReason
from bucketlog.cost.pricing import GB, Parts, PricedDay, Rates, System, price, totals


class TopicCost(NamedTuple):
    """Sums over all days."""

    topic: str
    produced_bytes: int
    puts: float
    usd: dict[System, float]


class WrittenRow(NamedTuple):
    """`usd` is the price of the PUTs and of the upload."""

    reason: str
    puts: float
    written_bytes: float
    usd: dict[System, float]


@dataclass(frozen=True)
class PricedUsage:
    """`by_system` are sums over all days and topics, by what is paid for."""

    usage: Usage
    given: Assumptions
    rows: list[PricedDay]
    topics: list[TopicCost]
    by_system: dict[System, Parts]
    reasons: list[WrittenRow]

    @property
    def sums(self) -> dict[System, float]:
        """USD by system."""
        return {system: sum(parts.values()) for system, parts in self.by_system.items()}


def priced_usage(usage: Usage, given: Assumptions) -> PricedUsage:
    """Return the load with assumed rates of reading."""
    rows = price(usage.load, usage.retention_days, Rates.assumed(given), given)
    return PricedUsage(
        usage, given, rows, topic_costs(rows), totals(rows), written_for(usage, given)
    )


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
        for reason, (puts, written_bytes) in usage.activities().items()
    ]
