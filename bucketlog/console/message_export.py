"""Exports of the page Messages: the records that a search finds, as a file.

Invariants: an export has at most as many records and bytes as the settings allow. The name of the
file and the headers have the offsets that the export covers, and show if the search ended at a
limit.
"""

import re
from typing import Any, NamedTuple

from bucketlog.console.exported_rows import LineMaker, ParquetRowMaker, parquet_bytes
from bucketlog.console.message_search import NEWEST, MessageSearch, message_search
from bucketlog.console.page_query import PageQuery
from bucketlog.console.pages import Console, UnknownNameError
from bucketlog.console.record_search import SearchEnd, SearchReport
from bucketlog.log_format.errors import ConfigurationError

JSONL, PARQUET = "jsonl", "parquet"
CONTENT_TYPES = {JSONL: "application/x-ndjson", PARQUET: "application/vnd.apache.parquet"}
TOPIC_CHARS_MAX = 100
LIMITS = {
    SearchEnd.ROWS: "BUCKETLOG_CONSOLE_EXPORT_RECORDS_MAX",
    SearchEnd.ROW_BYTES: "BUCKETLOG_CONSOLE_EXPORT_BYTES_MAX",
    SearchEnd.RECORDS: "BUCKETLOG_CONSOLE_SCAN_RECORDS_MAX",
    SearchEnd.BYTES: "BUCKETLOG_CONSOLE_SCAN_BYTES_MAX",
    SearchEnd.TIME: "BUCKETLOG_CONSOLE_SCAN_MS_MAX",
}
"""The setting whose limit ended a search."""


class ExportLimit(NamedTuple):
    """The largest number of records of one export, and its largest size."""

    records: int
    size_bytes: int


class MessageFile(NamedTuple):
    """An exported file. `headers` are further headers of the response."""

    name: str
    content_type: str
    headers: dict[str, str]
    body: bytes | memoryview


def export(console: Console, query: PageQuery) -> MessageFile:
    """Repeat the search of the page Messages, and return a file. In the query, `format` is "jsonl"
    or "parquet", and `end` is the offset before which a search for later records ends. Raises the
    errors of `messages`, and those of `check_not_empty`."""
    view = console.look()
    limit = ExportLimit(console.settings.export_records_max, console.settings.export_bytes_max)
    form = query.choice("format", tuple(CONTENT_TYPES))
    found = message_search(console, view, query)
    end = query.number("end", found.figures.latest)
    name, partition = found.topic.name, found.key.partition
    body: bytes | memoryview
    report: SearchReport[Any]
    if form == JSONL:
        lines = found.run(
            console,
            LineMaker(name, partition, limit.size_bytes),
            rows=limit.records,
            row_bytes=limit.size_bytes,
            end=end,
        )
        check_not_empty(found, lines)
        body, report = b"".join(row.line for row in lines.rows), lines
    else:
        records = found.run(
            console,
            ParquetRowMaker(limit.size_bytes),
            rows=limit.records,
            row_bytes=limit.size_bytes,
            end=end,
        )
        check_not_empty(found, records)
        body, report = parquet_bytes(name, partition, records.rows), records
    return MessageFile(
        file_name(name, partition, report, form),
        CONTENT_TYPES[form],
        export_headers(partition, report),
        body,
    )


def check_not_empty(found: MessageSearch, report: SearchReport[Any]) -> None:
    """Raises `ConfigurationError` if the first record alone is too large, or if a limit ended the
    search before its first record. Raises `UnknownNameError` if there is no offset to search."""
    if report.end is SearchEnd.ROW_BYTES and not report.rows:
        offset = report.begin - 1 if found.seek == NEWEST else report.next_offset
        raise ConfigurationError(
            f"the record at offset {offset} is larger than an export",
            remedy=f"raise {LIMITS[report.end]}, or use `bucketlog replay`",
        )
    if report.begin < report.next_offset:
        return
    if report.end in LIMITS:
        raise ConfigurationError(
            "the search ended before its first record", remedy=f"raise {LIMITS[report.end]}"
        )
    raise UnknownNameError(
        f"no offset of {found.topic.name}-{found.key.partition} is in the export",
        remedy="choose another beginning on the page Messages",
    )


def is_complete(report: SearchReport[Any]) -> bool:
    """Whether no limit ended the search, and all batches were read."""
    return report.end is SearchEnd.PARTITION and not report.unreadable_count


def file_name(topic: str, partition: int, report: SearchReport[Any], form: str) -> str:
    """A name of letters, digits, dots, underscores and hyphens. The first character is a letter, a
    digit or an underscore."""
    safe = re.sub(r"[^A-Za-z0-9._-]", "_", topic)[:TOPIC_CHARS_MAX].lstrip(".-") or "topic"
    partial = "" if is_complete(report) else "-partial"
    offsets = f"{report.begin}-to-{report.next_offset - 1}"
    return f"{safe}-{partition}-offsets-{offsets}{partial}.{form}"


def export_headers(partition: int, report: SearchReport[Any]) -> dict[str, str]:
    """The headers of a response. Offsets are in the form of `bucketlog replay --offsets`."""
    found = {
        "bucketlog-export-offsets": f"{partition}:{report.begin}-{report.next_offset}",
        "bucketlog-export-records": str(len(report.rows)),
        "bucketlog-export-complete": "true" if is_complete(report) else "false",
    }
    if report.end in LIMITS:
        found["bucketlog-export-ended-by"] = LIMITS[report.end]
    if report.unreadable_count:
        found["bucketlog-export-unreadable-batches"] = str(report.unreadable_count)
    return found
