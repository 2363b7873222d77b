"""Figures as people read them: sizes, counts, times, ages, money. Pure."""

from datetime import UTC, datetime
from math import isinf

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_YEAR_S = 365 * 86_400
_AGES = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def size_text(size_bytes: float) -> str:
    """In binary units, three digits: 1.50 MiB."""
    value, at = float(size_bytes), 0
    while value >= 1024 and at < len(_UNITS) - 1:
        value, at = value / 1024, at + 1
    if not at:
        return f"{round(value):,} B"
    return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f} {_UNITS[at]}"


def count_text(number: float) -> str:
    return f"{round(number):,}"


def time_text(at_ms: int) -> str:
    """UTC to the millisecond; "none" for a time that is not one."""
    try:
        when = datetime.fromtimestamp(at_ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return f"{at_ms} ms"
    if at_ms < 0:
        return "none" if at_ms == -1 else f"{at_ms} ms"
    return when.strftime("%Y-%m-%d %H:%M:%S.") + f"{at_ms % 1000:03d}"


def duration_text(time_ms: float) -> str:
    """The two largest units: 2 d 3 h."""
    rest = max(0, int(time_ms)) // 1000
    if not rest:
        return f"{max(0, round(time_ms))} ms"
    parts: list[tuple[int, str]] = []
    for seconds, unit in _AGES:
        count, rest = divmod(rest, seconds)
        if count or parts:
            parts.append((count, unit))
    return " ".join(f"{count} {unit}" for count, unit in parts[:2] if count)


def age_text(at_ms: int, now_ms: int) -> str:
    """How long ago; "never" for -1."""
    if at_ms < 0:
        return "never"
    if at_ms > now_ms + 1000:
        return f"in {duration_text(at_ms - now_ms)}"
    return "now" if now_ms - at_ms < 1000 else f"{duration_text(now_ms - at_ms)} ago"


def rate_text(per_s: float) -> str:
    """The text of a rate of 0 or more, with three digits, such as 1.25/s."""
    if per_s < 0.005:
        return "<0.01/s" if per_s > 0 else "0/s"
    return f"{per_s:,.{2 if per_s < 10 else 1 if per_s < 100 else 0}f}/s"


def trend_text(per_s: float) -> str:
    """How a figure changes: "falls by 12.5/s", "grows by 3.00/s" or "steady"."""
    if not per_s:
        return "steady"
    return f"{'grows' if per_s > 0 else 'falls'} by {rate_text(abs(per_s))}"


def catch_up_text(time_s: float) -> str:
    """The text of a time to catch up. The text of infinity is "never at this rate"."""
    if isinf(time_s):
        return "never at this rate"
    return "more than a year" if time_s > _YEAR_S else duration_text(round(time_s * 1000))


def usd_text(amount: float) -> str:
    """Dollars; small amounts with more digits."""
    if amount == 0:
        return "$0"
    digits = 2 if amount >= 1 else 4 if amount >= 0.01 else 6
    return f"${amount:,.{digits}f}"


def shortened(text: str, characters: int) -> str:
    """At most this many characters, at least one; what is cut shows as an ellipsis."""
    return text if len(text) <= characters else text[: max(0, characters - 1)] + "…"
