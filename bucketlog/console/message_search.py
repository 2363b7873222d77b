"""The search that an address of the page Messages asks for. Pages and exports share it."""

import sys
from typing import NamedTuple

from bucketlog.console import json_path
from bucketlog.console.kept_rows import R, RecordToRow
from bucketlog.console.log_view import LogView, PartitionFigures
from bucketlog.console.page_query import PageQuery
from bucketlog.console.pages import Console
from bucketlog.console.record_search import (
    BatchLimits,
    RecordFilter,
    SearchLimits,
    SearchReport,
    search,
    search_newest,
)
from bucketlog.console.settings import ConsoleSettings
from bucketlog.console.shown_records import json_of
from bucketlog.console.value_test import ValueTest
from bucketlog.log_format.model import TopicIdPartition
from bucketlog.metadata.fold import TopicState
from bucketlog.tiered_storage.encryption.partition_seals import PartitionSeals
from bucketlog.tiered_storage.encryption.reading_keys import partition_seals
from bucketlog.tiered_storage.log_cut import ReadablePartition
from bucketlog.tiered_storage.time_lookup import first_offset_since

NEWEST = "newest"
SEEKS = (NEWEST, "oldest", "offset", "time")


class MessageSearch(NamedTuple):
    """A search in a partition. `start` is the first offset, or in a search for the newest records
    the offset after the last record. `is_after_all` is True if all records are older than the given
    time."""

    topic: TopicState
    key: TopicIdPartition
    part: ReadablePartition
    figures: PartitionFigures
    seals: PartitionSeals | None
    seek: str
    start: int
    is_after_all: bool
    wanted: RecordFilter

    @property
    def is_filtered(self) -> bool:
        return bool(self.wanted.key or self.wanted.value or self.wanted.json)

    def run(
        self,
        console: Console,
        make_row: RecordToRow[R],
        *,
        rows: int,
        row_bytes: int = sys.maxsize,
        end: int | None = None,
    ) -> SearchReport[R]:
        """Search up to the limits of the console and of the page. `end` ends a search for later
        records. Raises the errors of `search`."""
        limits = _search_limits(console.settings, rows)._replace(row_bytes=row_bytes)
        until_s = console.deadline.until_s
        if self.seek == NEWEST:
            return search_newest(
                console.bucket,
                self.part,
                self.start,
                self.wanted,
                limits,
                make_row,
                seals=self.seals,
                now_s=console.now_s,
                until_s=until_s,
            )
        return search(
            console.bucket,
            self.part,
            self.start,
            self.wanted,
            limits,
            make_row,
            seals=self.seals,
            now_s=console.now_s,
            until_s=until_s,
            end=self.figures.latest if end is None else end,
        )


def message_search(console: Console, view: LogView, query: PageQuery) -> MessageSearch:
    """Return the search of an address. Raises `UnknownNameError`, `ConfigurationError`, and the
    errors of reading the log."""
    topic, key, part = console.partition(view, query)
    seals = partition_seals(console.access, topic.name, key.partition, part.data_keys)
    figures = view.figures[key]
    seek = query.choice("seek", SEEKS)
    start: int | None = figures.earliest
    if seek == NEWEST:
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
                max_decompressed_bytes=console.settings.batch_decompressed_bytes_max,
                seals=seals,
            )
    return MessageSearch(
        topic,
        key,
        part,
        figures,
        seals,
        seek,
        figures.latest if start is None else start,
        start is None,
        _wanted(console, query),
    )


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


def _search_limits(settings: ConsoleSettings, rows: int) -> SearchLimits:
    return SearchLimits(
        rows=rows,
        records=settings.scan_records_max,
        bytes=settings.scan_bytes_max,
        seconds=settings.scan_ms_max / 1000,
        batch=batch_limits(settings),
        unreadable=settings.unreadable_batches_max,
    )


def batch_limits(settings: ConsoleSettings) -> BatchLimits:
    return BatchLimits(settings.batch_decompressed_bytes_max, settings.batch_records_max)
