"""Geometry of the charts, which templates draw as SVG. Pure; no text becomes markup here."""

from collections.abc import Sequence
from typing import NamedTuple

from bucketlog.console.bucket_objects import WriterChain

BAR_WIDTH_MAX = 60.0


class Rect(NamedTuple):
    """A rectangle in the units of the drawing. `label` is the text in the rectangle, and `title`
    the text at a pointer. `is_gap` is True if the value of a bar is unknown."""

    x: float
    y: float
    width: float
    height: float
    label: str = ""
    title: str = ""
    is_gap: bool = False


def bars(
    values: Sequence[float | None], titles: Sequence[str], *, width: float, height: float
) -> list[Rect]:
    """Vertical bars from the bottom. The bar of a value above 0 is at least two units tall. The
    value None is a gap."""
    most = max((value or 0 for value in values), default=0) or 1
    step = min(width / max(len(values), 1), BAR_WIDTH_MAX)
    gap = min(2.0, step * 0.2)
    found = []
    for at, (value, title) in enumerate(zip(values, titles, strict=True)):
        tall = max(2.0, value / most * height) if value else 0.0
        found.append(
            Rect(
                round(at * step + gap / 2, 2),
                round(height - tall, 2),
                round(step - gap, 2),
                round(tall, 2),
                title=title,
                is_gap=value is None,
            )
        )
    return found


def treemap(sizes: Sequence[tuple[str, float]], *, width: float, height: float) -> list[Rect]:
    """Rectangles whose areas are in proportion to the sizes, which descend; squarified (Bruls,
    Huizing, van Wijk, 2000)."""
    total = sum(size for _, size in sizes)
    if total <= 0:
        return []
    scale = width * height / total
    left = [(label, size * scale) for label, size in sizes if size > 0]
    x = y = 0.0
    found: list[Rect] = []
    while left:
        side = min(width - x, height - y)
        count = 1
        while count < len(left) and _worst(left[: count + 1], side) <= _worst(left[:count], side):
            count += 1
        row, left = left[:count], left[count:]
        thick = sum(area for _, area in row) / side if side else 0.0
        at = 0.0
        is_column = width - x >= height - y
        for label, area in row:
            long = area / thick if thick else 0.0
            found.append(
                Rect(x, y + at, thick, long, label)
                if is_column
                else Rect(x + at, y, long, thick, label)
            )
            at += long
        if is_column:
            x += thick
        else:
            y += thick
    return found


def _worst(row: Sequence[tuple[str, float]], side: float) -> float:
    """The worst ratio of sides of a row of areas along `side`."""
    areas = [area for _, area in row]
    total = sum(areas)
    if not total or not side:
        return 0.0
    return max(side**2 * max(areas) / total**2, total**2 / (side**2 * min(areas)))


class ChainMark(NamedTuple):
    """An object of a chain at `x`; `seq` and the rest are for its title."""

    x: float
    seq: int
    size_bytes: int
    is_seal: bool


def chain_marks(
    chain: WriterChain, *, first_ms: int, last_ms: int, width: float, marks_max: int
) -> list[ChainMark]:
    """The newest `marks_max` objects by the time at which they were written."""
    span = max(last_ms - first_ms, 1)
    return [
        ChainMark(
            round((segment.created_ms - first_ms) / span * width, 2),
            segment.seq,
            segment.size_bytes,
            segment.is_seal,
        )
        for segment in chain.segments[-marks_max:]
    ]
