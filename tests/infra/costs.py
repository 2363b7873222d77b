"""What the examples cost a month, on their pages: `python -m tests.infra.costs` writes it, a test
compares.

S3, traffic between zones, brokers and the sequencer go through the arithmetic of `bucketlog cost`;
what is counted is read from the example and the modules' defaults. Prices are AWS' list prices on
demand of the same region and month as there, to be checked against a bill.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

from bucketlog.cost.assumptions import PRICES_OF, REGION, Assumptions
from bucketlog.cost.load import CLUSTER, Activity
from bucketlog.cost.pricing import DAY_S, Rates, System, price, totals
from tests.infra.modules import Module, read_module, unquoted
from tests.infra.programs import EXAMPLES

BEGIN = "<!-- costs: python -m tests.infra.costs -->"
DAY = date(2025, 6, 1)
HOURS = 720.0
DAYS = 30
MB_S_BY_EXAMPLE: Mapping[str, Sequence[float]] = {
    "minimal": (0.0, 1.0),
    "production": (0.0, 10.0, 60.0),
}
BROKER_MB_S = 20.0
"""Assumed of one core: about what small batches, a commit each, took of ours."""
FLUSHES_PER_S = 4.0
REWRITTEN = 2.0
"""Bytes written for a byte produced: a log segment and the tier."""
CHECKPOINTS_PER_DAY = 1440

VCPU_HOUR_USD = 0.03238
GB_HOUR_USD = 0.00356
BALANCER_HOUR_USD = 0.0225 + 0.006
ENDPOINT_HOUR_USD = 0.01
NODE_HOUR_USD = {"cache.t4g.micro": 0.0128, "cache.t4g.small": 0.0256, "cache.m7g.large": 0.1264}
ALARM_MONTH_USD = 0.10
METRIC_MONTH_USD = 0.30
KEY_MONTH_USD = 1.00
SECRET_MONTH_USD = 0.40
INSIGHTS = (8, 11)
"""Metrics of Container Insights: of a cluster, of a service."""
REQUEST_METRICS = 16


class Fleet(NamedTuple):
    """What an example makes, by number."""

    zones: int
    brokers: int
    vcpus: float
    memory_gb: float
    node_type: str
    nodes: int
    endpoints: int
    alarms: int
    metrics: int
    keys: int
    deleted_kept_days: int


def fleet_of(example: Path) -> Fleet:
    module = read_module(example)
    zones = len(_value(module, "network", "zones"))
    services = _number(module, "network", "endpoint_zones_max")
    nodes = _number(module, "metadata", "replicas") + 1
    has_metrics = _value(module, "storage", "request_metrics")
    alarms = 0
    if "observability" in module.calls:
        observed = (module.path / "../../terraform/observability/main.tf").read_text()
        by_zone, by_node, by_line = (
            len(re.findall(pattern, observed, re.MULTILINE))
            for pattern in (
                r"^ +comparison ",
                r"^    \w+ += \{ text = .*metric =",
                r"^    \w+ += \{ pattern =",
            )
        )
        alarms = by_zone * zones + by_node * nodes + by_line + int(has_metrics)
    return Fleet(
        zones=zones,
        brokers=zones * _number(module, "broker", "brokers_per_zone_min"),
        vcpus=_number(module, "broker", "cpu_units") / 1024,
        memory_gb=_number(module, "broker", "memory_mib") / 1024,
        node_type=unquoted(_value(module, "metadata", "node_type")),
        nodes=nodes,
        endpoints=len(_value(module, "network", "interface_endpoints")) * min(services, zones),
        alarms=alarms,
        metrics=INSIGHTS[0] + INSIGHTS[1] * zones + REQUEST_METRICS * int(has_metrics),
        keys=sum(one.kind == "aws_kms_key" for one in module.resources),
        deleted_kept_days=_number(module, "storage", "deleted_kept_days"),
    )


def _value(module: Module, call: str, name: str) -> Any:
    """As the example gives it, or its variable's default, or that of the called module's."""
    variables = read_module(module.source_of(call)).variables
    value = module.calls[call].get(name, variables[name].get("default"))
    referred = re.fullmatch(r"\$\{var\.(\w+)\}", str(value))
    return module.variables[referred[1]]["default"] if referred else value


def _number(module: Module, call: str, name: str) -> int:
    return int(_value(module, call, name))


def month(fleet: Fleet, mb_s: float) -> dict[str, float]:
    """USD by what is paid for, at `mb_s` (10^6 bytes/s) produced around the clock."""
    broker_hour = fleet.vcpus * VCPU_HOUR_USD + fleet.memory_gb * GB_HOUR_USD
    given = Assumptions(
        instance_hour_usd=broker_hour,
        bucketlog_instances_min=fleet.brokers,
        bucketlog_instance_mb_s=BROKER_MB_S,
        redis_hour_usd=fleet.nodes * NODE_HOUR_USD[fleet.node_type],
        producer_cross_zone_share=1 - 1 / fleet.zones,
        consumer_cross_zone_share=1 - 1 / fleet.zones,
        overlap_days=1 + 2 * fleet.deleted_kept_days,  # of a log segment, then of the tier
    )
    produced = int(mb_s * 1e6 * DAY_S)
    peak_mb_s = mb_s * given.peak_to_average
    brokers = max(fleet.brokers, -(-peak_mb_s // BROKER_MB_S))
    puts = brokers * FLUSHES_PER_S * DAY_S if mb_s else 0.0
    checkpoints = CHECKPOINTS_PER_DAY if mb_s else 0
    load = {
        (DAY, "all"): Activity(puts, produced * REWRITTEN, produced, 0),
        (DAY, CLUSTER): Activity(checkpoints, 0.0, 0, checkpoints),
    }
    parts = totals(price(load, {}, Rates.assumed(given), given))[System.S3_STANDARD]
    daily = {name: usd * DAYS for name, usd in parts.items()}
    return {
        "brokers": daily["instances"],
        "sequencer": daily["Redis"],
        "load balancer": BALANCER_HOUR_USD * HOURS,
        "interface endpoints": fleet.endpoints * ENDPOINT_HOUR_USD * HOURS,
        "metrics and alarms": fleet.metrics * METRIC_MONTH_USD + fleet.alarms * ALARM_MONTH_USD,
        "keys, secrets": fleet.keys * KEY_MONTH_USD + SECRET_MONTH_USD,
        "S3: requests": daily["PUT"] + daily["GET"] + daily["LIST"],
        "S3: 7 days of log, and what was deleted": daily["storage"],
        "clients' traffic between zones": daily["produce across zones"]
        + daily["consume across zones"],
    }


def with_costs(page: str, example: Path) -> str:
    """The page as it should be."""
    fleet, loads = fleet_of(example), MB_S_BY_EXAMPLE[example.name]
    months = [month(fleet, mb_s) for mb_s in loads]
    heads = ["idle" if not mb_s else f"{mb_s:g} MB/s" for mb_s in loads]
    rows = [f"| USD a month | {' | '.join(heads)} |", f"|---|{'---:|' * len(heads)}"]
    rows += [f"| {part} | {_cells([one[part] for one in months])} |" for part in months[0]]
    rows.append(f"| **all** | {_cells([sum(one.values()) for one in months])} |")
    many = fleet.brokers > 1
    told = (
        "Computed by the arithmetic of [`bucketlog cost`](../../../docs/cost.md) from list prices",
        f"of {REGION}, {PRICES_OF}, for {fleet.brokers} broker{'s' if many else ''} or as many as",
        f"the load wants. Assumed, not measured: {BROKER_MB_S:g} MB/s a broker, a peak of three",
        f"times the mean, {FLUSHES_PER_S:g} PUTs a second and broker, two consumers of all, and",
        "clients that name no zone (those that do save most of that line)."
        if many
        else "no zones.",
        "Not priced: logs, KMS' requests, Spark's jobs, traffic out of the region.",
    )
    return "\n".join([page.partition(BEGIN)[0].rstrip(), "", BEGIN, "", *rows, "", *told, ""])


def _cells(values: list[float]) -> str:
    return " | ".join(f"{value:,.0f}" for value in values)


def pages() -> list[Path]:
    return [EXAMPLES / name / "README.md" for name in MB_S_BY_EXAMPLE]


if __name__ == "__main__":
    for path in pages():
        path.write_text(with_costs(path.read_text(), path.parent))
