"""Computes the pages Messages and Record."""

from typing import NamedTuple

from bucketlog.console.copied_code import CopiedCode, SearchedRange, copied_code
from bucketlog.console.message_export import is_complete
from bucketlog.console.message_search import NEWEST, MessageSearch, batch_limits, message_search
from bucketlog.console.opened_record import open_record
from bucketlog.console.page_query import PageQuery
from bucketlog.console.pages import Console, UnknownNameError, Values
from bucketlog.console.record_rows import RecordRow, RowPreviews
from bucketlog.console.record_search import SearchReport
from bucketlog.console.shown_bytes import ShownBytes, preview
from bucketlog.console.shown_records import reasons, shown_part, shown_rows
from bucketlog.log_format.batch import codec_name
from bucketlog.tiered_storage.encryption.reading_keys import partition_seals

FORMS = ("", "text", "hex")


def messages(console: Console, query: PageQuery) -> Values:
    view = console.look()
    settings = console.settings
    names = sorted(view.state.names)
    if not query.text("topic"):
        return {"view": view, "names": names[: settings.page_rows_max], "topic": None}
    found = message_search(console, view, query)
    rows = query.number(
        "rows", min(50, settings.page_rows_max), least=1, most=settings.page_rows_max
    )
    framed_bytes = 0 if console.values is None else console.values.bytes_max
    report = found.run(console, RowPreviews(settings.preview_bytes_max, framed_bytes), rows=rows)
    records = list(
        shown_rows(report.rows, console.values, preview_bytes=settings.preview_bytes_max)
    )
    earliest = found.figures.earliest
    older: dict[str, object] = {"before": report.begin}
    if found.seek != NEWEST:
        older = {"seek": "offset", "offset": max(earliest, report.begin - rows)}
    return {
        "view": view,
        "topic": found.topic,
        "names": names[: settings.page_rows_max],
        "partition": found.key.partition,
        "figures": found.figures,
        "seek": found.seek,
        "is_after_all": found.is_after_all,
        "rows": rows,
        "report": report,
        "records": records,
        "undecoded": reasons(records),
        "test": found.wanted.json,
        "is_filtered": found.is_filtered,
        "older": older if report.begin > earliest else None,
        "code": _code(console, found, report),
        "is_encrypted": found.topic.topic_id in view.state.data_keys.by_topic,
        "export_query": _export_query(found, report),
        "is_searched_whole": is_complete(report),
    }


def _code(
    console: Console, found: MessageSearch, report: SearchReport[RecordRow]
) -> CopiedCode | None:
    """Code for the offsets that were searched, or None if no offset was."""
    if report.begin >= report.next_offset:
        return None
    return copied_code(
        SearchedRange(
            console.place,
            found.topic.name,
            found.key.partition,
            report.begin,
            report.next_offset,
            None if found.is_filtered else len(report.rows),
            found.wanted.key,
            found.wanted.value,
        )
    )


def _export_query(found: MessageSearch, report: SearchReport[RecordRow]) -> dict[str, object]:
    """Changes of the page's query for an export. The export begins, or for the newest records ends,
    where the page does. No record of the export is newer than the page."""
    changes: dict[str, object] = {"time": None, "rows": None}
    if found.seek == NEWEST:
        return {**changes, "before": report.next_offset}
    place = {"seek": "offset", "offset": report.begin, "before": None}
    return {**changes, **place, "end": found.figures.latest}


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
        limits=batch_limits(settings),
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
