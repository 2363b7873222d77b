"""The figures of `benchmarks.spark_replay` as a picture: a bar for each way and query, one codec.

python -m benchmarks.spark_replay > figures.json
python -m benchmarks.spark_chart none < figures.json > docs/spark_replay.svg
"""

import json
import sys
from collections.abc import Iterator
from html import escape
from typing import Any, NamedTuple

from benchmarks.spark_queries import AGGREGATE, ALL, COUNT, PARQUET, PRUNED, REPLAY
from benchmarks.spark_replay import BROKERS, KAFKA, KAFKA_TUNED, OURS

QUERIES = {COUNT: "count()", AGGREGATE: 'groupBy("key").count()', PARQUET: "write to Parquet"}
WAYS = {
    BROKERS: ("Kafka source, bucketlog's brokers", "#9aa5b1"),
    KAFKA: ("Kafka source, Apache Kafka", "#616e7c"),
    KAFKA_TUNED: ("Kafka source tuned, Apache Kafka", "#323f4b"),
    OURS: ("bucketlog source, from the bucket", "#e07a1f"),
}
WIDTH, LEFT, RIGHT, BAR, GAP, HEAD = 860, 290, 120, 18, 24, 58


class Bar(NamedTuple):
    label: str
    color: str
    records_per_s: float


def bars(ways: dict[str, Any], query: str) -> Iterator[Bar]:
    """Those that were measured."""
    for way, (label, color) in WAYS.items():
        found = ways.get(way, {})
        if figure := found.get(f"{query}, {ALL}"):
            yield Bar(label, color, figure["records_per_s"])
    ours = ways[OURS]
    if pruned := ours.get(f"{query}, {PRUNED}"):
        yield Bar("the same, .schema(…) pruned", "#f4a259", pruned["records_per_s"])
    if query == PARQUET and (replay := ours.get(f"{REPLAY}, {ALL}")):
        yield Bar("replay, tasks write the files", "#f4a259", replay["records_per_s"])


def render(figures: dict[str, Any], codec: str) -> str:
    groups = {text: list(bars(figures["codecs"][codec], q)) for q, text in QUERIES.items()}
    most = max(bar.records_per_s for group in groups.values() for bar in group)
    rows: list[str] = []
    top = HEAD
    for text, group in groups.items():
        if not group:
            continue
        rows.append(f'<text x="16" y="{top}" font-weight="bold">{escape(text)}</text>')
        top += 8
        for bar in group:
            rows += _row(bar, top, most)
            top += BAR + 4
        top += GAP
    title = f"{figures['records']:,} records of {figures['value_bytes']} bytes, codec {codec}"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{top}" '
            'font-family="sans-serif" font-size="13" fill="#1f2933">',
            f'<rect width="{WIDTH}" height="{top}" fill="#ffffff"/>',
            '<text x="16" y="28" font-size="16">Into Spark, million records a second: '
            f"{escape(title)}</text>",
            *rows,
            "</svg>\n",
        ]
    )


def _row(bar: Bar, top: int, most: float) -> list[str]:
    length = round((WIDTH - LEFT - RIGHT) * bar.records_per_s / most)
    middle = top + BAR - 5
    return [
        f'<text x="{LEFT - 8}" y="{middle}" text-anchor="end">{escape(bar.label)}</text>',
        f'<rect x="{LEFT}" y="{top}" width="{length}" height="{BAR}" fill="{bar.color}"/>',
        f'<text x="{LEFT + length + 6}" y="{middle}">{bar.records_per_s / 1e6:.2f}</text>',
    ]


def main() -> None:
    figures = json.loads(sys.stdin.read().strip().splitlines()[-1])
    sys.stdout.write(render(figures, sys.argv[1]))


if __name__ == "__main__":
    main()
