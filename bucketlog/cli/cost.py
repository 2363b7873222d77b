"""`bucketlog cost`: what a log has cost, by topic and day, and what Kafka would."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bucketlog.cli.options import BucketUrl, OutputFormat
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.terminal import Output, counted, print_rows, say, say_json

if TYPE_CHECKING:
    from bucketlog.cost.assumptions import Assumptions
    from bucketlog.cost.of_bucket import Usage
    from bucketlog.cost.pricing import PricedDay, Rates

CLUSTER_NAME = "(cluster)"
ROW_COLUMNS = (
    *("day", "topic", "produced_bytes", "puts", "written_bytes", "gets", "read_bytes"),
    *("s3_standard_usd", "s3_express_usd", "kafka_usd"),
)
TENANTS_MAX = 10_000
INTERVAL_MS_MAX = 3_600_000
RETENTION_DAYS_MAX = 36_500
TENANT_COLUMNS = (
    *("tenant", "produced_bytes", "puts"),
    *("s3_standard_usd", "s3_express_usd", "kafka_usd"),
)
PART_COLUMNS = ("part", "s3_standard_usd", "s3_express_usd", "kafka_usd")
REASON_COLUMNS = ("written_for", "puts", "bytes")
ASSUMPTION_COLUMNS = ("assumption", "value", "meaning")

WhatIfInterval = Annotated[
    int | None,
    typer.Option(
        "--what-if-interval-ms",
        min=0,
        max=INTERVAL_MS_MAX,
        help="Price the same records with this flush interval of brokers, in milliseconds.",
    ),
]
WhatIfRetention = Annotated[
    float | None,
    typer.Option(
        "--what-if-retention-days",
        min=0,
        max=RETENTION_DAYS_MAX,
        help="Price the same records with this retention of all topics, in days.",
    ),
]


def cost(
    bucket: BucketUrl,
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            "--metrics",
            metavar="URL",
            help="Metrics page of a running broker, which has its reads; repeatable.",
        ),
    ] = None,
    prices: Annotated[
        Path | None,
        typer.Option(
            "--prices", metavar="FILE", help="TOML file with other prices and assumptions."
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            envvar="BUCKETLOG_COST_SET",
            metavar="NAME=VALUE",
            help="Set a price or assumption, as NAME=VALUE; repeatable.",
        ),
    ] = None,
    tenants: Annotated[
        Path | None,
        typer.Option(
            "--tenants",
            metavar="FILE",
            help="The brokers' file of tenants: print a row for each tenant.",
        ),
    ] = None,
    what_if_interval_ms: WhatIfInterval = None,
    what_if_retention_days: WhatIfRetention = None,
    output: OutputFormat = Output.TABLE,
) -> None:
    """Price a log's requests and bytes for S3, beside Kafka in three zones."""
    from bucketlog.cost.assumptions import assumptions
    from bucketlog.cost.of_bucket import usage_of
    from bucketlog.cost.pricing import Rates
    from bucketlog.cost.what_if import WhatIf, estimated
    from bucketlog.tiered_storage.backends.location import open_patient_bucket

    given = assumptions(prices.read_text() if prices is not None else "", settings or ())
    rates, what_if = Rates.assumed(given), WhatIf(what_if_interval_ms, what_if_retention_days)
    if metrics:
        from bucketlog.cost.of_brokers import measured

        rates = measured(metrics)
    if tenants is not None:
        if what_if != WhatIf():
            raise ConfigurationError(
                "--what-if-interval-ms and --what-if-retention-days with --tenants",
                remedy="price one tenant by its URL, s3://bucket/prefix/tenants/NAME",
            )
        _print_tenants(list(_of_tenants(bucket, tenants, rates, given)), output)
        return
    with closing(open_patient_bucket(bucket)) as store:
        usage = usage_of(store, given, bucket)
    found = estimated(usage, what_if, rates, given)
    if output is Output.TABLE:
        _print(found.rows, usage, rates, given)
        if what_if_interval_ms is not None:
            say(
                f"with a flush interval of {what_if_interval_ms} ms: a record would have waited "
                f"{found.waited_ms:.0f} ms longer (mean)"
            )
    else:
        say_json({**_whole(found.rows, usage, rates, given), "waited_ms": found.waited_ms})


def _print_tenants(found: list[dict[str, Any]], output: Output) -> None:
    if output is Output.TABLE:
        amounts = TENANT_COLUMNS[3:]
        shown = [row | {name: _usd(row[name]) for name in amounts} for row in found]
        print_rows(shown, TENANT_COLUMNS, output)
    else:
        say_json({"tenants": found})


def _of_tenants(
    bucket: str, file: Path, rates: "Rates", given: "Assumptions"
) -> Iterator[dict[str, Any]]:
    """What each tenant's log has cost, with its share of the brokers and of Redis. Raises
    `ConfigurationError`."""
    from bucketlog.cost.of_bucket import usage_of
    from bucketlog.cost.pricing import System, price
    from bucketlog.stateless_broker.settings.tenant_specs import read_tenants, tenant_url
    from bucketlog.tiered_storage.backends.location import open_patient_bucket

    try:
        specs = read_tenants(file.read_text(), tenants_max=TENANTS_MAX)
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"--tenants {file}: {error}", remedy="name the brokers' file (docs/tenants.md)"
        ) from error
    shares = sum(spec.share for spec in specs)
    for spec in specs:
        own = given.model_copy(update={"cluster_share": spec.share / shares})
        url = tenant_url(bucket, spec)
        with closing(open_patient_bucket(url)) as store:
            usage = usage_of(store, own, url)
        rows = price(usage.load, usage.retention_days, rates, own)
        yield {
            "tenant": spec.name,
            "produced_bytes": sum(row.produced_bytes for row in rows),
            "puts": round(sum(row.puts for row in rows)),
            **{f"{system}_usd": sum(row.total(system) for row in rows) for system in System},
        }


def _shown(rows: "list[PricedDay]") -> list[dict[str, Any]]:
    from bucketlog.cost.pricing import System

    return [
        {
            "day": row.day.isoformat(),
            "topic": row.topic or CLUSTER_NAME,
            "produced_bytes": row.produced_bytes,
            "puts": round(row.puts, 3),
            "written_bytes": round(row.written_bytes),
            "gets": round(row.gets, 3),
            "read_bytes": round(row.read_bytes),
            **{f"{system}_usd": row.total(system) for system in System},
        }
        for row in rows
    ]


def _whole(
    rows: "list[PricedDay]", usage: "Usage", rates: "Rates", given: "Assumptions"
) -> dict[str, Any]:
    from bucketlog.cost.assumptions import PRICES_OF, REGION
    from bucketlog.cost.pricing import totals

    first = usage.complete_from
    return {
        "region": REGION,
        "prices_of": PRICES_OF,
        "complete_from": first.isoformat() if first else None,
        "rows": _shown(rows),
        "totals": totals(rows),
        "reads": rates._asdict(),
        "written_for": {
            reason.value: {"puts": puts, "bytes": size}
            for reason, (puts, size) in usage.activities().items()
        },
        "held": {kind: {"bytes": size, "objects": n} for kind, (size, n) in usage.held.items()},
        "assumptions": given.model_dump(),
    }


def _print(rows: "list[PricedDay]", usage: "Usage", rates: "Rates", given: "Assumptions") -> None:
    from bucketlog.cost.assumptions import PRICES_OF, REGION

    shown = [
        {
            **row,
            "puts": round(row["puts"]),
            "gets": round(row["gets"]),
            **{name: _usd(row[name]) for name in PART_COLUMNS[1:]},
        }
        for row in _shown(rows)
    ]
    print_rows(shown, ROW_COLUMNS, Output.TABLE)
    say()
    print_rows(_parts(rows), PART_COLUMNS, Output.TABLE)
    say()
    reasons = usage.activities().items()
    print_rows(
        [
            {"written_for": reason.value, "puts": round(puts), "bytes": round(size)}
            for reason, (puts, size) in reasons
        ],
        REASON_COLUMNS,
        Output.TABLE,
    )
    say()
    if usage.complete_from is not None:
        say(f"incomplete before {usage.complete_from}: what was deleted is not seen any more")
    else:
        say("complete: nothing of the log was deleted")
    held = sum(size for size, _ in usage.held.values())
    objects = sum(count for _, count in usage.held.values())
    say(f"the bucket holds {counted(held, 'byte')} in {counted(objects, 'object')} now")
    say(
        f"writes are counted; reads are {'measured' if rates.measured else 'assumed'}: "
        f"{rates.gets_per_put:.3g} GETs a PUT, {rates.read_bytes_per_byte:.3g} bytes read a byte "
        f"written, fan-out {rates.fan_out:.3g}"
    )
    say(f"prices in USD, {REGION}, {PRICES_OF}; GB are 2^30 bytes", "")
    fields = type(given).model_fields
    print_rows(
        (
            {"assumption": name, "value": f"{value:.6g}", "meaning": fields[name].description}
            for name, value in given
        ),
        ASSUMPTION_COLUMNS,
        Output.TABLE,
    )


def _parts(rows: "list[PricedDay]") -> list[dict[str, str]]:
    from bucketlog.cost.pricing import totals

    by_system = totals(rows)
    names = dict.fromkeys(part for parts in by_system.values() for part in parts)
    found = [
        {
            "part": name,
            **{f"{system}_usd": _usd(parts.get(name, 0.0)) for system, parts in by_system.items()},
        }
        for name in names
    ]
    sums = {f"{system}_usd": _usd(sum(parts.values())) for system, parts in by_system.items()}
    return [*found, {"part": "total", **sums}]


def _usd(amount: float) -> str:
    return f"{amount:,.6f}" if amount < 1 else f"{amount:,.2f}"
