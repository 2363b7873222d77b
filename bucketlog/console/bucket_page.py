"""What the page Bucket shows: objects, writers' chains, space, and what brokers will delete."""

from collections.abc import Mapping
from typing import Any

from bucketlog.console import charts
from bucketlog.console.bucket_objects import (
    BucketObjects,
    WriterChain,
    kind_rows,
    size_bars,
    tier_sizes,
    writer_chains,
)
from bucketlog.console.figures_text import size_text
from bucketlog.console.page_query import PageQuery
from bucketlog.console.pages import CHART_HEIGHT, CHART_WIDTH, Console, Values
from bucketlog.tiered_storage import keys

TREEMAP_TOPICS = 40
CHAINS_SHOWN = 50


def bucket(console: Console, query: PageQuery) -> Values:
    view = console.look()
    objects = console.objects()
    chains = writer_chains(objects)
    names = {found.topic_id: found.name for found in view.state.topics.values()}
    tiers = tier_sizes(objects, names)
    log_sizes = [(row.name, row.log_bytes) for row in console.topics(view) if row.log_bytes]
    areas = sorted(
        [(f"{name}\0log", size) for name, size in log_sizes]
        + [(f"{row.topic}\0tier", row.size_bytes) for row in tiers],
        key=lambda each: -each[1],
    )
    garbage = console.garbage()
    due: dict[tuple[str, str], list[int]] = {}
    for one in garbage.garbage:
        due.setdefault((one.due, one.kind), []).append(one.size_bytes)
    return {
        "view": view,
        "objects": objects,
        "kinds": kind_rows(objects),
        "chains": chains[:CHAINS_SHOWN],
        "chains_hidden": max(0, len(chains) - CHAINS_SHOWN),
        "timeline": _timeline(chains[:CHAINS_SHOWN], console.settings.segments_drawn_max),
        "sizes": {
            kind: _size_chart(objects, kind)
            for kind in (keys.LOG, keys.SEGMENTS)
            if objects.by_kind[kind]
        },
        "treemap": charts.treemap(areas[:TREEMAP_TOPICS], width=CHART_WIDTH, height=300.0),
        "areas": dict(areas[:TREEMAP_TOPICS]),
        "checkpoints": sorted(objects.by_kind[keys.CHECKPOINTS], reverse=True)[:5],
        "floors": sorted(objects.by_kind[keys.FLOORS], reverse=True)[:5],
        "garbage": garbage,
        "due": [
            (when, kind, len(sizes), sum(sizes)) for (when, kind), sizes in sorted(due.items())
        ],
    }


def _timeline(
    chains: list[WriterChain], marks_max: int
) -> list[tuple[WriterChain, list[charts.ChainMark]]]:
    times = [segment.created_ms for chain in chains for segment in chain.segments]
    first, last = min(times, default=0), max(times, default=1)
    return [
        (
            chain,
            charts.chain_marks(
                chain, first_ms=first, last_ms=last, width=CHART_WIDTH, marks_max=marks_max
            ),
        )
        for chain in chains
    ]


def _size_chart(objects: BucketObjects, kind: str) -> Mapping[str, Any]:
    found = size_bars(objects.by_kind[kind])
    return {
        "bars": charts.bars(
            [bar.objects for bar in found],
            [
                f"{size_text(bar.least)} to {size_text(bar.least * 2)}: {bar.objects} objects"
                for bar in found
            ],
            width=CHART_WIDTH,
            height=CHART_HEIGHT,
        ),
        "least": found[0].least if found else 0,
        "most": found[-1].least * 2 if found else 0,
    }
