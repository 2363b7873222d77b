"""Computes the page Bucket: objects, writers' chains, space, and what brokers will delete."""

from collections.abc import Mapping, Sequence
from typing import Any

from bucketlog.console import charts
from bucketlog.console.bucket_objects import SizeBar, WriterChain
from bucketlog.console.figures_text import size_text
from bucketlog.console.page_query import PageQuery
from bucketlog.console.pages import CHART_HEIGHT, CHART_WIDTH, Console, Values
from bucketlog.log_format.model import TopicId

TREEMAP_TOPICS = 40
CHAINS_SHOWN = 50


def bucket(console: Console, query: PageQuery) -> Values:
    view = console.look()
    objects = console.objects()
    summary = console.summary(objects)
    names = {found.topic_id: found.name for found in view.state.topics.values()}
    log_sizes = [(row.name, row.log_bytes) for row in console.topics(view) if row.log_bytes]
    areas = sorted(
        [(f"{name}\0log", size) for name, size in log_sizes]
        + [
            (f"{names.get(row.topic_id, _deleted(row.topic_id))}\0tier", row.size_bytes)
            for row in summary.tiers
        ],
        key=lambda each: -each[1],
    )
    garbage = console.garbage()
    shown = summary.chains[:CHAINS_SHOWN]
    return {
        "view": view,
        "objects": objects,
        "kinds": summary.kinds,
        "chains": shown,
        "chains_hidden": max(0, len(summary.chains) - CHAINS_SHOWN),
        "timeline": _timeline(shown, console.settings.segments_drawn_max),
        "sizes": {kind: _size_chart(found) for kind, found in summary.sizes.items()},
        "treemap": charts.treemap(areas[:TREEMAP_TOPICS], width=CHART_WIDTH, height=300.0),
        "areas": dict(areas[:TREEMAP_TOPICS]),
        "checkpoints": summary.checkpoints,
        "floors": summary.floors,
        "garbage": garbage,
        "due": console.due(garbage),
    }


def _deleted(topic_id: TopicId) -> str:
    return f"deleted topic {topic_id.hex()}"


def _timeline(
    chains: Sequence[WriterChain], marks_max: int
) -> list[tuple[WriterChain, list[charts.ChainMark]]]:
    """The last marks of each chain, on one axis of time."""
    marks = [segment for chain in chains for segment in chain.segments[-marks_max:]]
    first = min((segment.created_ms for segment in marks), default=0)
    last = max((segment.created_ms for segment in marks), default=1)
    return [
        (
            chain,
            charts.chain_marks(
                chain, first_ms=first, last_ms=last, width=CHART_WIDTH, marks_max=marks_max
            ),
        )
        for chain in chains
    ]


def _size_chart(found: Sequence[SizeBar]) -> Mapping[str, Any]:
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
