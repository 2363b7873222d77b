"""From a load to money: S3 Standard, S3 Express One Zone, and Kafka in three zones. Pure.

A day's bytes are priced for as long as their topic keeps them; instances for whole days. What both
systems pay alike (clients' traffic between zones) is in both.
"""

from collections.abc import Mapping
from datetime import date
from enum import StrEnum
from math import ceil
from typing import NamedTuple

from bucketlog.cost.assumptions import Assumptions
from bucketlog.cost.load import CLUSTER, Activity, Load

GB = 2**30
DAY_S = 86_400


class System(StrEnum):
    S3_STANDARD = "s3_standard"
    S3_EXPRESS = "s3_express"
    KAFKA = "kafka"


Parts = dict[str, float]
"""USD by what they are paid for."""


class Rates(NamedTuple):
    """What is read, in terms of what is written. `lists_per_put` None: by checkpoints."""

    fan_out: float
    gets_per_put: float
    read_bytes_per_byte: float
    lists_per_put: float | None
    measured: bool

    @classmethod
    def assumed(cls, given: Assumptions) -> "Rates":
        return cls(given.fan_out, given.gets_per_put, given.read_bytes_per_byte, None, False)


class PricedDay(NamedTuple):
    """A topic's day, or the cluster's."""

    day: date
    topic: str
    produced_bytes: int
    puts: float
    written_bytes: float
    gets: float
    read_bytes: float
    usd: Mapping[System, Parts]

    def total(self, system: System) -> float:
        return sum(self.usd[system].values())


def price(
    load: Load, retention_days: Mapping[str, float], rates: Rates, given: Assumptions
) -> list[PricedDay]:
    """By day and topic, the cluster after its topics. `retention_days` by topic; others have the
    default."""
    produced: dict[date, int] = {}
    puts: dict[date, float] = {}
    for (day, _), activity in load.items():
        produced[day] = produced.get(day, 0) + activity.produced_bytes
        puts[day] = puts.get(day, 0.0) + activity.puts
    rows = []
    for (day, topic), activity in sorted(
        load.items(), key=lambda item: (item[0][0], item[0][1] == CLUSTER, item[0][1])
    ):
        days = retention_days.get(topic, given.default_retention_days)
        usd = _priced(activity, days, rates, given)
        if topic == CLUSTER:
            lists = (
                activity.checkpoints * given.lists_per_checkpoint
                if rates.lists_per_put is None
                else puts[day] * rates.lists_per_put
            )
            _add_cluster(usd, lists, produced[day], given)
        rows.append(
            PricedDay(
                day,
                topic,
                activity.produced_bytes,
                activity.puts,
                activity.written_bytes,
                activity.puts * rates.gets_per_put,
                activity.written_bytes * rates.read_bytes_per_byte,
                usd,
            )
        )
    return rows


def _priced(
    activity: Activity, retention_days: float, rates: Rates, given: Assumptions
) -> dict[System, Parts]:
    produced_gb = activity.produced_bytes / GB
    written_gb = activity.written_bytes / GB
    thousand_puts = activity.puts / 1000
    thousand_gets = thousand_puts * rates.gets_per_put
    clients = {
        "produce across zones": produced_gb
        * given.producer_cross_zone_share
        * given.cross_zone_gb_usd,
        "consume across zones": produced_gb
        * rates.fan_out
        * given.consumer_cross_zone_share
        * given.cross_zone_gb_usd,
    }
    gb_months = produced_gb * retention_days / given.days_per_month
    in_bucket = produced_gb * (retention_days + given.overlap_days) / given.days_per_month
    return {
        System.S3_STANDARD: {
            "PUT": thousand_puts * given.s3_standard_put_usd_per_1000,
            "GET": thousand_gets * given.s3_standard_get_usd_per_1000,
            "storage": in_bucket * given.s3_standard_gb_month_usd,
            **clients,
        },
        System.S3_EXPRESS: {
            "PUT": thousand_puts * given.s3_express_put_usd_per_1000,
            "GET": thousand_gets * given.s3_express_get_usd_per_1000,
            "upload": written_gb * given.s3_express_upload_gb_usd,
            "retrieval": written_gb * rates.read_bytes_per_byte * given.s3_express_retrieval_gb_usd,
            "storage": in_bucket * given.s3_express_gb_month_usd,
            **clients,
        },
        System.KAFKA: {
            "replicate across zones": produced_gb
            * (given.kafka_replication - 1)
            * given.cross_zone_gb_usd,
            "storage": gb_months
            * given.kafka_replication
            / given.kafka_disk_utilisation
            * given.gp3_gb_month_usd,
            **clients,
        },
    }


def _add_cluster(
    usd: dict[System, Parts], lists: float, produced_bytes: int, given: Assumptions
) -> None:
    """What a day costs however its bytes are shared: listings, instances, Redis."""
    peak_mb_s = produced_bytes / 1e6 / DAY_S * given.peak_to_average
    share = given.cluster_share
    ours = _instances(
        given.bucketlog_instances_min, peak_mb_s / given.bucketlog_instance_mb_s, share
    )
    kafkas = _instances(given.kafka_instances_min, peak_mb_s / given.kafka_instance_mb_s, share)
    usd[System.S3_STANDARD]["LIST"] = lists / 1000 * given.s3_standard_put_usd_per_1000
    usd[System.S3_EXPRESS]["LIST"] = lists / 1000 * given.s3_express_put_usd_per_1000
    for system in (System.S3_STANDARD, System.S3_EXPRESS):
        usd[system]["instances"] = ours * 24 * given.instance_hour_usd
        usd[system]["Redis"] = 24 * given.redis_hour_usd * share
    usd[System.KAFKA]["instances"] = kafkas * 24 * given.instance_hour_usd


def _instances(minimum: int, needed: float, share: float) -> float:
    """Whole ones for a log alone. A log that shares them pays its part of the fewest, or what its
    own load needs."""
    return max(minimum, ceil(needed)) if share == 1 else max(minimum * share, needed)


def totals(rows: list[PricedDay]) -> dict[System, Parts]:
    """By what is paid for, over all rows."""
    found: dict[System, Parts] = {system: {} for system in System}
    for row in rows:
        for system, parts in row.usd.items():
            for part, usd in parts.items():
                found[system][part] = found[system].get(part, 0.0) + usd
    return found
