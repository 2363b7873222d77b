"""What the pages Messages and Record show."""

from typing import NamedTuple

from bucketlog.console import json_path
from bucketlog.console.opened_record import open_record
from bucketlog.console.page_query import PageQuery
from bucketlog.console.pages import Console, UnknownNameError, Values
from bucketlog.console.record_search import (
    BatchLimits,
    RecordFilter,
    SearchLimits,
    search,
    search_newest,
)
from bucketlog.console.settings import ConsoleSettings
from bucketlog.console.shown_bytes import ShownBytes, preview
from bucketlog.console.shown_records import json_of, reasons, shown_part, shown_rows
from bucketlog.console.value_test import ValueTest
from bucketlog.log_format.batch import codec_name
from bucketlog.tiered_storage.encryption.reading_keys import partition_seals
from bucketlog.tiered_storage.time_lookup import first_offset_since

FORMS = ("", "text", "hex")
SEEKS = ("newest", "oldest", "offset", "time")


def messages(console: Console, query: PageQuery) -> Values:
    view = console.look()
    settings = console.settings
    names = sorted(view.state.names)
    if not query.text("topic"):
        return {"view": view, "names": names[: settings.page_rows_max], "topic": None}
    topic, key, part = console.partition(view, query)
    seals = partition_seals(console.access, topic.name, key.partition, part.data_keys)
    rows = query.number(
        "rows", min(50, settings.page_rows_max), least=1, most=settings.page_rows_max
    )
    figures = view.figures[key]
    seek = query.choice("seek", SEEKS)
    start: int | None = figures.earliest
    if seek == "newest":
        start = query.number("before", figures.latest)
    elif seek == "offset":
        start = query.number("offset", figures.earliest)
    elif seek == "time":
        at_ms = query.time_ms("time")
        if at_ms is not None:
            start = first_offset_since(
                console.bucket,
                part,
                at_ms,
                max_decompressed_bytes=settings.batch_decompressed_bytes_max,
                seals=seals,
            )
    wanted = _wanted(console, query)
    report = (search_newest if seek == "newest" else search)(
        console.bucket,
        part,
        figures.latest if start is None else start,
        wanted,
        _search_limits(console, rows),
        seals=seals,
        now_s=console.now_s,
        until_s=console.deadline.until_s,
    )
    records = list(
        shown_rows(report.rows, console.values, preview_bytes=settings.preview_bytes_max)
    )
    older: dict[str, object] = {"before": report.begin}
    if seek != "newest":
        older = {"seek": "offset", "offset": max(figures.earliest, report.begin - rows)}
    return {
        "view": view,
        "topic": topic,
        "names": names[: settings.page_rows_max],
        "partition": key.partition,
        "figures": figures,
        "seek": seek,
        "is_after_all": start is None,
        "rows": rows,
        "report": report,
        "records": records,
        "undecoded": reasons(records),
        "test": wanted.json,
        "is_filtered": bool(wanted.key or wanted.value or wanted.json),
        "older": older if report.begin > figures.earliest else None,
    }


def _wanted(console: Console, query: PageQuery) -> RecordFilter:
    path = query.text("path").strip()
    test = None
    if path:
        test = ValueTest(
            json_path.parsed(path),
            bytes_max=console.settings.json_search_bytes_max,
            decoded=json_of(console.values),
        )
    return RecordFilter(query.text("key").encode(), query.text("value").encode(), test)


def _search_limits(console: Console, rows: int) -> SearchLimits:
    settings = console.settings
    return SearchLimits(
        rows=rows,
        records=settings.scan_records_max,
        bytes=settings.scan_bytes_max,
        seconds=settings.scan_ms_max / 1000,
        batch=_batch_limits(settings),
        preview_bytes=settings.preview_bytes_max,
        unreadable=settings.unreadable_batches_max,
        framed_bytes=0 if console.values is None else console.values.bytes_max,
    )


def _batch_limits(settings: ConsoleSettings) -> BatchLimits:
    return BatchLimits(settings.batch_decompressed_bytes_max, settings.batch_records_max)


class ShownHeader(NamedTuple):
    name: ShownBytes
    value: ShownBytes


def record(console: Console, query: PageQuery) -> Values:
    view = console.look()
    settings = console.settings
    topic, key, part = console.partition(view, query)
    offset = query.number("offset", 0)
    found = open_record(
        console.bucket,
        part,
        offset,
        seals=partition_seals(console.access, topic.name, key.partition, part.data_keys),
        limits=_batch_limits(settings),
        headers_max=settings.record_headers_max,
    )
    if found is None:
        raise UnknownNameError(
            f"no record has offset {offset} in {topic.name}-{key.partition}",
            remedy="compaction, retention and markers of transactions leave gaps: open the next "
            "record on the page Messages",
        )
    form = query.choice("form", FORMS)
    return {
        "view": view,
        "topic": topic,
        "partition": key.partition,
        "figures": view.figures[key],
        "found": found,
        "form": form,
        "forms": FORMS,
        "codec": codec_name(found.batch.header.codec),
        "key": shown_part(found.record.key, console.values, settings, form),
        "value": shown_part(found.record.value, console.values, settings, form),
        "headers": [
            ShownHeader(
                preview(header.key.encode(), max_bytes=settings.preview_bytes_max),
                preview(header.value, max_bytes=settings.preview_bytes_max),
            )
            for header in found.record.headers
        ],
        "headers_hidden": found.header_count - len(found.record.headers),
    }
