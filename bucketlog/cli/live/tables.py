"""The tables of the live view as lines of text: sorted, filtered, and of at most a given width.

Pure. Invariant: names are hostile, so each cell is one printable line of bounded length.
"""

from collections.abc import Sequence
from enum import StrEnum

from bucketlog.cli.live.sample import BrokerRates, Sample, TopicRates, WorstLag
from bucketlog.console.figures_text import duration_text, shortened
from bucketlog.log_format.printable import printable

NAME_WIDTH_MIN = 15
"""At 80 columns, an address such as 127.0.0.1:39092 is shown in full."""
PLACE_WIDTH_MAX = 24
GAP = 1
BROKER_HEADS = ("IN/s", "OUT/s", "REQ/s", "WAIT", "RESV", "PUT", "PUBL", "BUCKET/s", "$/h")
TOPIC_HEADS = ("BYTES/s", "RECORDS/s", "STORED")
GROUP_HEADS = ("LAG", "LAG TIME", "WORST PARTITION")
BROKER_CAPTION = (
    "WAIT, RESV, PUT, PUBL: mean ms of the steps of an acknowledgement",
    "$/h: requests to the bucket at the prices of S3 Standard",
)
_UNITS = ("", "K", "M", "G", "T", "P", "E")


class Order(StrEnum):
    """The order of topics and groups."""

    LOAD = "load"
    """Topics by bytes/s, then records/s; groups by lag in records. Default."""
    RECORDS = "records"
    """Topics by records/s."""
    TIME = "time"
    """Groups by lag in time."""
    NAME = "name"


def broker_lines(sample: Sample, width: int) -> list[str]:
    """Return the heading and a line for each broker. Latencies are in ms."""
    rows = [(row.broker, *_broker_cells(row)) for row in sample.brokers]
    lines = _lines("BROKER", BROKER_HEADS, rows, width)
    for at, row in enumerate(sample.brokers, start=1):
        if row.problem is not None:
            lines[at] = shortened(f"{printable(row.broker)}  {printable(row.problem)}", width)
    return lines


def topic_lines(sample: Sample, order: Order, wanted: str, width: int) -> list[str]:
    """Return the heading and a line for each topic whose name contains `wanted`."""
    rows = [
        (row.topic, amount(row.bytes), amount(row.records), amount(row.stored_bytes))
        for row in sorted_topics(sample.topics, order)
        if wanted in row.topic
    ]
    return _lines("TOPIC", TOPIC_HEADS, rows, width)


def group_lines(sample: Sample, order: Order, wanted: str, width: int) -> list[str]:
    """Return the heading and a line for each group whose name contains `wanted`."""
    rows = [
        (
            row.group,
            "-" if row.worst_lag is None else f"{row.worst_lag:,}",
            "-" if row.lag_ms is None else duration_text(row.lag_ms),
            shortened(row.worst_partition or "-", PLACE_WIDTH_MAX),
        )
        for row in sorted_groups(sample.groups, order)
        if wanted in row.group
    ]
    return _lines("GROUP", GROUP_HEADS, rows, width)


def sorted_topics(rows: Sequence[TopicRates], order: Order) -> list[TopicRates]:
    if order is Order.NAME:
        return sorted(rows, key=lambda row: row.topic)
    if order is Order.RECORDS:
        return sorted(rows, key=lambda row: (-(row.records or 0), -(row.bytes or 0), row.topic))
    return sorted(rows, key=lambda row: (-(row.bytes or 0), -(row.records or 0), row.topic))


def sorted_groups(rows: Sequence[WorstLag], order: Order) -> list[WorstLag]:
    if order is Order.NAME:
        return sorted(rows, key=lambda row: row.group)
    if order is Order.TIME:
        return sorted(rows, key=lambda row: (-(row.lag_ms or 0), -(row.worst_lag or 0), row.group))
    return sorted(rows, key=lambda row: (-(row.worst_lag or 0), -(row.lag_ms or 0), row.group))


def amount(value: float | None) -> str:
    """Return a figure of three digits with a decimal unit, such as 1.52M; "-" for None."""
    if value is None:
        return "-"
    scaled, at = float(value), 0
    while round(scaled) >= 1000 and at < len(_UNITS) - 1:
        scaled, at = scaled / 1000, at + 1
    return f"{_digits(scaled, whole=float(value).is_integer() and not at)}{_UNITS[at]}"


def milliseconds(value: float | None) -> str:
    return "-" if value is None else _digits(value)


def dollars(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.4f}" if value < 1 else f"{value:,.2f}"


def _digits(value: float, *, whole: bool = False) -> str:
    if whole or value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _broker_cells(row: BrokerRates) -> tuple[str, ...]:
    return (
        amount(row.bytes_in),
        amount(row.bytes_out),
        amount(row.requests),
        *map(milliseconds, row.steps_ms),
        amount(row.bucket_requests),
        dollars(row.usd_per_hour),
    )


def _lines(
    name: str, heads: Sequence[str], rows: Sequence[tuple[str, ...]], width: int
) -> list[str]:
    """Align names left and figures right. Names are cut so that a line fits."""
    cells = [tuple(map(printable, row)) for row in rows]
    widths = [
        max(len(head), *(len(row[at]) for row in cells), 0)
        for at, head in enumerate(heads, start=1)
    ]
    room = max(NAME_WIDTH_MIN, width - sum(widths) - GAP * len(widths))
    longest = max((len(row[0]) for row in cells), default=0)
    name_width = min(room, max(longest, len(name), NAME_WIDTH_MIN))

    def line(first: str, others: Sequence[str]) -> str:
        figures = (text.rjust(size) for text, size in zip(others, widths, strict=True))
        return shortened(
            (" " * GAP).join((shortened(first, name_width).ljust(name_width), *figures)), width
        )

    return [line(name, heads), *(line(row[0], row[1:]) for row in cells)]
