"""The picture of a run of chaos: throughput and pauses over time, with the faults as bands."""

import io
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tests.models.recorded_history import FaultSpan
from tests.scenarios.chaos import ChaosResult

WIDTH_INCHES, HEIGHT_INCHES = 12, 7.5
BAND = "#f3d9b1"
SAME_TEXT_S = 1.0
SHORTEST_PAUSE_S = 0.5
"""That is drawn."""


def draw_chaos(found: ChaosResult, path: Path) -> None:
    """An SVG. Times are seconds since the first acknowledgement."""
    events = found.events
    acknowledged = sorted(at for times in events.acknowledged.values() for at in times)
    began = acknowledged[0] if acknowledged else 0.0
    figure = Figure(figsize=(WIDTH_INCHES, HEIGHT_INCHES), layout="constrained")
    top, bottom = figure.subplots(2, 1, sharex=True)
    _throughput(top, acknowledged, began)
    visible = [sorted(times) for times in events.visible.values()]
    _pauses(bottom, list(events.acknowledged.values()), began, "not acknowledged", "#c0392b")
    _pauses(bottom, visible, began, "not visible at another broker", "#2471a3")
    _pauses(bottom, [events.consumed], began, "group consumes nothing", "#7d8a97")
    bottom.set_ylabel("pause, s (of the worst partition)")
    bottom.set_xlabel("s")
    bottom.set_ylim(bottom=0)
    bottom.legend(loc="upper left", frameon=False)
    _bands((top, bottom), found.recorded.faults, began)
    options = found.options
    figure.suptitle(f"Chaos, seed {options.seed}, three brokers on {options.store}")
    save(figure, path)


def save(figure: Figure, path: Path) -> None:
    """The same figure gives the same bytes."""
    text = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "bucketlog"}):
        figure.savefig(text, format="svg", metadata={"Date": None})
    path.write_text("\n".join(line.rstrip() for line in text.getvalue().splitlines()) + "\n")


def _throughput(axes: Axes, acknowledged: Sequence[float], began: float) -> None:
    counts = Counter(int(at - began) for at in acknowledged)
    seconds = range(max(counts, default=0) + 1)
    axes.plot(seconds, [counts[second] for second in seconds], color="#1e8449", linewidth=1)
    axes.set_ylabel("acknowledged records/s")
    axes.set_ylim(bottom=0)


def _pauses(
    axes: Axes, times: Sequence[Sequence[float]], began: float, label: str, color: str
) -> None:
    """Each pause as a triangle: it grows until its end."""
    for number, mine in enumerate(times):
        for one, following in pairwise(mine):
            if following - one >= SHORTEST_PAUSE_S:
                axes.fill(
                    [one - began, following - began, following - began],
                    [0, following - one, 0],
                    color=color,
                    alpha=0.25,
                    linewidth=0,
                )
        axes.plot([], [], color=color, alpha=0.5, linewidth=6, label=None if number else label)


def _bands(axes: Sequence[Axes], faults: Sequence[FaultSpan], began: float) -> None:
    """Faults that overlap share one text."""
    names: dict[float, list[str]] = {}
    for fault in sorted(faults, key=lambda fault: fault.began):
        for each in axes:
            each.axvspan(fault.began - began, fault.ended - began, color=BAND, zorder=0)
        where = "" if fault.broker is None else f" {fault.broker}"
        first = next((at for at in names if fault.began - at < SAME_TEXT_S), fault.began)
        names.setdefault(first, []).append(f"{fault.name}{where}")
    for at, texts in names.items():
        axes[0].annotate(
            " + ".join(texts),
            (at - began, 1.0),
            xycoords=("data", "axes fraction"),
            rotation=90,
            va="top",
            fontsize=6,
        )
