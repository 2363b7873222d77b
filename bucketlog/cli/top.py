"""`bucketlog top`: a live view of a cluster in the terminal."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bucketlog.cli.health import health_of
from bucketlog.cli.options import DEFAULT_BOOTSTRAP, Bootstrap, OutputFormat
from bucketlog.cli.security import connected, secured
from bucketlog.cli.signals import sigterm_interrupts
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_format.extras import check_installed
from bucketlog.terminal import EXIT_OK, Output, print_rows, say, say_json

if TYPE_CHECKING:
    from bucketlog.cli.live.sample import Sample
    from bucketlog.cli.live.sources import ClusterSources
    from bucketlog.cost.assumptions import Assumptions

INTERVAL_S_MIN, INTERVAL_S_MAX = 0.5, 3600.0
TOPICS_MAX, GROUPS_MAX = 1_000, 200
BROKER_COLUMNS = (
    *("broker", "bytes_in_per_s", "bytes_out_per_s", "requests_per_s", "waiting_ms", "reserve_ms"),
    *("put_ms", "publish_ms", "bucket_requests_per_s", "usd_per_hour", "problem"),
)
TOPIC_COLUMNS = ("topic", "bytes_per_s", "records_per_s", "stored_bytes")
GROUP_COLUMNS = ("group", "worst_lag", "worst_partition", "lag_ms")


Metrics = Annotated[
    list[str] | None,
    typer.Option(
        "--metrics",
        metavar="URL",
        help="Metrics page of a broker, http://HOST:PORT/metrics; repeatable.",
    ),
]
IntervalS = Annotated[
    float,
    typer.Option(
        "--interval-s",
        metavar="S",
        min=INTERVAL_S_MIN,
        max=INTERVAL_S_MAX,
        help="Seconds between two looks at the cluster.",
    ),
]
NameFilter = Annotated[
    str,
    typer.Option(
        "--filter", metavar="TEXT", help="Show only topics and groups whose name contains TEXT."
    ),
]
TopicsMax = Annotated[
    int,
    typer.Option(
        min=0, max=TOPICS_MAX, help="Number of topics whose offsets are asked at each look."
    ),
]
GroupsMax = Annotated[
    int,
    typer.Option(
        min=0, max=GROUPS_MAX, help="Number of groups whose offsets are asked at each look."
    ),
]
Prices = Annotated[
    Path | None,
    typer.Option("--prices", metavar="FILE", help="TOML file with other prices of requests."),
]
Once = Annotated[bool, typer.Option("--once", help="Print one sample of --interval-s, and end.")]


@secured
def top(
    metrics: Metrics = None,
    interval_s: IntervalS = 2.0,
    name_filter: NameFilter = "",
    topics_max: TopicsMax = 50,
    groups_max: GroupsMax = 20,
    prices: Prices = None,
    once: Once = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    output: OutputFormat = Output.TABLE,
) -> int:
    """Show a cluster live: rates, latencies and dollars of brokers, topics, and lag of groups.

    Keys: q quits, / filters, l r t n sort. Brokers are shown with --metrics only."""
    if not once and output is not Output.TABLE:
        raise ConfigurationError(f"-o {output} without --once", remedy="add --once")
    if not once and not (sys.stdout.isatty() and sys.stdin.isatty()):
        raise ConfigurationError("top needs a terminal", remedy="add --once")
    check_installed("top")
    from bucketlog.cli.live.sources import ClusterSources, Limits
    from bucketlog.cost.assumptions import assumptions

    given = assumptions(prices.read_text() if prices is not None else "")
    urls = metrics or []
    with connected(bootstrap) as log:
        sources = ClusterSources(
            log,
            metrics=urls,
            health=lambda: health_of(log, urls),
            limits=Limits(topics_max, groups_max),
        )
        if once:
            _print(_sampled(sources, given, name_filter, interval_s), output)
        else:
            return _show(sources, given, name_filter, interval_s)
    return EXIT_OK


def _sampled(
    sources: "ClusterSources", prices: "Assumptions", name_filter: str, interval_s: float
) -> "Sample":
    from bucketlog.cli.live.sample import sample_of

    with sigterm_interrupts():
        before = sources.look(name_filter)
        time.sleep(interval_s)
        return sample_of(before, sources.look(name_filter), prices)


def _show(
    sources: "ClusterSources", prices: "Assumptions", name_filter: str, interval_s: float
) -> int:
    from bucketlog.cli.live.screen import LiveView

    view = LiveView(sources.look, prices=prices, interval_s=interval_s, wanted=name_filter)
    view.run()
    view.wait_for_look()
    return view.return_code or EXIT_OK


def _print(sample: "Sample", output: Output) -> None:
    shown = sample.as_json()
    if output is not Output.TABLE:
        say_json(shown)
        return
    say(sample.health)
    for rows, columns in (
        (shown["brokers"], BROKER_COLUMNS),
        (shown["topics"], TOPIC_COLUMNS),
        (shown["groups"], GROUP_COLUMNS),
    ):
        if rows:
            say()
            print_rows(rows, columns, Output.TABLE)
    if sample.notes:
        say("", *sample.notes)
