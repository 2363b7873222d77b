"""Rows of the page Messages, with the beginnings of keys and values."""

from typing import NamedTuple

from bucketlog.console.shown_bytes import ShownBytes, preview
from bucketlog.log_format.batch import BatchHeader
from bucketlog.log_format.records import RecordSpans
from bucketlog.schema_registry.framing import is_framed


class RecordRow(NamedTuple):
    """A record in a table. `framed_key` and `framed_value` have at most one byte more than
    `RowPreviews.framed_bytes`. `size_bytes` is 0, because only the number of rows bounds a page."""

    offset: int
    timestamp_ms: int
    key: ShownBytes
    value: ShownBytes
    headers: int
    is_tombstone: bool
    framed_key: bytes | None = None
    framed_value: bytes | None = None
    size_bytes: int = 0


class RowPreviews(NamedTuple):
    """Makes rows with the first `preview_bytes` of keys and values. If a schema registry may have
    been used for a key or a value, the row also keeps `framed_bytes` and one byte more."""

    preview_bytes: int
    framed_bytes: int = 0

    def __call__(self, batch: BatchHeader, payload: bytes, record: RecordSpans) -> RecordRow:
        return RecordRow(
            record.offset,
            record.timestamp,
            _preview(payload, record.key, self.preview_bytes),
            _preview(payload, record.value, self.preview_bytes),
            record.header_count,
            record.value is None,
            _framed(payload, record.key, self.framed_bytes),
            _framed(payload, record.value, self.framed_bytes),
        )


def _framed(payload: bytes, span: tuple[int, int] | None, framed_bytes: int) -> bytes | None:
    if not framed_bytes or span is None:
        return None
    begin, end = span
    head = payload[begin : min(end, begin + framed_bytes + 1)]
    return head if is_framed(head) else None


def _preview(payload: bytes, span: tuple[int, int] | None, max_bytes: int) -> ShownBytes:
    if span is None:
        return preview(None, max_bytes=max_bytes)
    begin, end = span
    head = payload[begin : min(end, begin + max_bytes)]
    return preview(head, max_bytes=max_bytes, size_bytes=end - begin)
