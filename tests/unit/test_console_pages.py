"""Parts of the console's pages that need no bucket: queries, tables, charts, texts, templates."""

import re
from pathlib import Path

import pytest

from bucketlog.console import application, charts
from bucketlog.console.bucket_objects import BucketObjects, size_bars, time_bars, writer_chains
from bucketlog.console.figures_text import age_text, duration_text, size_text, time_text, usd_text
from bucketlog.console.page_query import PageQuery, table_page
from bucketlog.console.settings import ConsoleSettings
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_format.model import SegmentId, WriterId
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import ObjectInfo
from bucketlog.tiered_storage.segment import Seal, encode_seal
from tests.models.repository import ROOT

TEMPLATES = sorted((Path(application.__file__).parent / "templates").glob("*.html"))
WAYS_AROUND_ESCAPES = re.compile(
    r"\|\s*safe|autoescape|Markup|<style|\sstyle=|\son\w+=|javascript:"
)
INLINE_SCRIPT = re.compile(r"<script(?![^>]*\bsrc=)")


def holes(text: str) -> list[str]:
    return [
        found[0] for rule in (WAYS_AROUND_ESCAPES, INLINE_SCRIPT) for found in rule.finditer(text)
    ]


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_no_template_has_a_way_around_the_escapes(path: Path) -> None:
    assert holes(path.read_text()) == []


@pytest.mark.parametrize(
    "text",
    [
        "{{ x|safe }}",
        "{% autoescape false %}",
        '<p style="x">',
        "<a onclick=x>",
        "<script>x</script>",
    ],
)
def test_a_way_around_is_found(text: str) -> None:
    assert holes(text)


def test_the_script_makes_no_markup_of_text() -> None:
    script = (Path(application.__file__).parent / "static/console.js").read_text()
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|Function\(", script
    )


def test_every_limit_is_on_the_page() -> None:
    page = (ROOT / "docs/console.md").read_text()
    for name, field in ConsoleSettings.model_fields.items():
        row = f"| `BUCKETLOG_CONSOLE_{name.upper()}` | `{field.default}` | {field.description} |"
        assert row in page


def query(**values: str) -> PageQuery:
    return PageQuery(values)


@pytest.mark.parametrize("text", ["-1", "x", "1e3", "٣", "9" * 30])
def test_a_number_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError):
        query(n=text).number("n", 0)


def test_numbers_have_bounds_and_defaults() -> None:
    assert query().number("n", 7) == 7
    assert query(n=" 12 ").number("n", 7) == 12
    with pytest.raises(ConfigurationError, match="use 0 to 11"):
        query(n="12").number("n", 7, most=11)


def test_times_are_utc_or_milliseconds() -> None:
    assert query().time_ms("t") is None
    assert query(t="1970-01-01T00:00:01").time_ms("t") == 1_000
    assert query(t="1970-01-01T01:00:01+01:00").time_ms("t") == 1_000
    assert query(t="1234").time_ms("t") == 1_234
    with pytest.raises(ConfigurationError, match="is not a time"):
        query(t="yesterday").time_ms("t")


def test_a_changed_query_keeps_the_rest() -> None:
    assert query(q="a&b", page="2").changed(page=None, sort="-x") == "?q=a%26b&sort=-x"
    assert query(page="2").changed(page=None) == "?"


def page(rows_max: int = 3, **values: str) -> list[str]:
    names = ["b1", "a2", "B3", "c4", "a5"]
    found = table_page(
        names,
        query(**values),
        {"name": str.casefold, "digit": lambda name: name[-1]},
        filter_text=str,
        rows_max=rows_max,
    )
    return [*found.rows, f"{found.number}/{found.pages} {found.total}/{found.unfiltered}"]


def test_a_table_is_sorted_filtered_and_cut() -> None:
    assert page() == ["a2", "a5", "b1", "1/2 5/5"]
    assert page(page="2") == ["B3", "c4", "2/2 5/5"]
    assert page(page="9")[-1] == "2/2 5/5"
    assert page(sort="-digit") == ["a5", "c4", "B3", "1/2 5/5"]
    assert page(q="B") == ["b1", "B3", "1/1 2/5"]
    assert page(q="zz") == ["1/1 0/5"]
    with pytest.raises(ConfigurationError, match="is not a choice"):
        page(sort="other")


def test_a_treemap_fills_its_area_in_proportion() -> None:
    sizes = [("a", 60.0), ("b", 25.0), ("c", 10.0), ("d", 5.0), ("none", 0.0)]
    found = charts.treemap(sizes, width=200, height=50)
    areas = {rect.label: rect.width * rect.height for rect in found}
    assert areas == {name: pytest.approx(size * 100) for name, size in sizes if size}
    for rect in found:
        assert 0 <= rect.x <= rect.x + rect.width <= 200.001
        assert 0 <= rect.y <= rect.y + rect.height <= 50.001
    assert charts.treemap([], width=1, height=1) == []


def test_bars_reach_from_nothing_to_the_height() -> None:
    low, none, high = charts.bars([1, 0, 1_000], ["", "", ""], width=30, height=100)
    assert (low.height, none.height, high.height) == (2, 0, 100)
    assert high.y == 0


WRITER = WriterId("0" * 32)


def objects(*segments: tuple[int, int, int]) -> BucketObjects:
    """Of one writer: sequence number, bytes, time."""
    found: dict[str, list[ObjectInfo]] = {kind: [] for kind in (keys.LOG, keys.WRITERS)}
    found[keys.WRITERS].append(ObjectInfo(keys.writer_registration(3, WRITER), 2, 0))
    for seq, size, at_ms in segments:
        key = keys.segment(SegmentId(WRITER, seq))
        found[keys.LOG].append(ObjectInfo(key, size, at_ms))
    return BucketObjects(0, found)


def test_a_chain_shows_gaps_and_its_seal() -> None:
    seal_bytes = len(encode_seal(Seal(SegmentId(WRITER, 0), 1, 0)))
    (chain,) = writer_chains(objects((7, seal_bytes, 9), (2, 500, 1), (3, 500, 2), (6, 700, 5)))
    assert (chain.epoch, chain.first_seq, chain.gaps) == (3, 2, [(4, 6)])
    assert (chain.count, chain.is_sealed, chain.last_ms) == (3, True, 9)
    marks = charts.chain_marks(chain, first_ms=1, last_ms=9, width=80, marks_max=3)
    assert [(mark.x, mark.seq, mark.is_seal) for mark in marks] == [
        (10, 3, False),
        (40, 6, False),
        (80, 7, True),
    ]


def test_times_and_sizes_are_counted_in_bars() -> None:
    listed = objects((0, 500, 1_000), (1, 600, 1_500), (2, 5_000, 3_000))
    found = [(bar.begin_ms, bar.size_bytes, bar.objects) for bar in time_bars(listed)][-3:]
    assert found == [(1_000, 1_100, 2), (2_000, 0, 0), (3_000, 5_000, 1)]
    sizes = [(bar.least, bar.objects) for bar in size_bars(listed.by_kind[keys.LOG])]
    assert sizes == [(256, 1), (512, 1), (1024, 0), (2048, 0), (4096, 1)]
    assert time_bars(objects()) == []


def test_a_long_log_shows_its_last_part() -> None:
    day_ms = 86_400_000
    found = time_bars(objects((0, 500, 0), (1, 600, 400 * day_ms)))
    assert len(found) == 60
    assert found[-1] == (400 * day_ms, day_ms, 600, 1)


def test_figures_are_readable() -> None:
    assert [size_text(size) for size in (0, 1023, 1536, 10 << 20, 5 << 60)] == [
        "0 B",
        "1,023 B",
        "1.50 KiB",
        "10.0 MiB",
        "5.00 EiB",
    ]
    assert duration_text(93_784_000) == "1 d 2 h"
    assert duration_text(3_600_000) == "1 h"
    assert duration_text(12) == "12 ms"
    assert (age_text(-1, 5), age_text(5, 5), age_text(0, 61_000)) == (
        "never",
        "now",
        "1 min 1 s ago",
    )
    assert age_text(90_000, 0) == "in 1 min 30 s"
    assert time_text(1_500) == "1970-01-01 00:00:01.500"
    assert time_text(2**62) == f"{2**62} ms"
    assert [usd_text(amount) for amount in (0, 0.000012, 0.5, 12.351, 1234.5)] == [
        "$0",
        "$0.000012",
        "$0.5000",
        "$12.35",
        "$1,234.50",
    ]
