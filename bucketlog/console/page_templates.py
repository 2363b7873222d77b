"""The templates of the console's pages. Invariant: templates escape every value."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from bucketlog.console import figures_text
from bucketlog.log_format.printable import printable, printable_lines

FOLDER = Path(__file__).parent


def environment() -> Environment:
    """Templates with the console's filters. Every value is escaped."""
    found = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {
        "size": figures_text.size_text,
        "count": figures_text.count_text,
        "time": figures_text.time_text,
        "duration": figures_text.duration_text,
        "rate": figures_text.rate_text,
        "trend": figures_text.trend_text,
        "catch_up": figures_text.catch_up_text,
        "usd": figures_text.usd_text,
        "shortened": figures_text.shortened,
        "printable": printable,
        "printable_lines": printable_lines,
    }
    found.globals["age"] = figures_text.age_text
    return found
