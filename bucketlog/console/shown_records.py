"""Keys and values on the pages Messages and Record: decoded by their schema, or as their bytes."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from bucketlog.console.record_rows import RecordRow
from bucketlog.console.record_values import DecodedValue, PageValues
from bucketlog.console.settings import ConsoleSettings
from bucketlog.console.shown_bytes import ShownBytes, preview, shown

REASONS_MAX = 5


class ShownPart(NamedTuple):
    """`schema` says how the bytes were decoded, or why not; None for bytes without a frame."""

    content: ShownBytes
    schema: DecodedValue | None = None


class ShownRow(NamedTuple):
    row: RecordRow
    key: ShownPart
    value: ShownPart


def shown_rows(
    rows: Iterable[RecordRow], values: PageValues | None, *, preview_bytes: int
) -> Iterator[ShownRow]:
    """The rows of a table; `values` None: nothing is decoded."""

    def part(content: ShownBytes, framed: bytes | None) -> ShownPart:
        decoded = None if values is None else values.decoded(framed)
        if decoded is None or decoded.json is None:
            return ShownPart(content, decoded)
        text = preview(decoded.json, max_bytes=preview_bytes)
        return ShownPart(text._replace(size_bytes=content.size_bytes), decoded)

    for row in rows:
        yield ShownRow(row, part(row.key, row.framed_key), part(row.value, row.framed_value))


def reasons(rows: Iterable[ShownRow]) -> dict[int, str]:
    """Why values are not decoded, by schema id, up to `REASONS_MAX`."""
    found: dict[int, str] = {}
    for row in rows:
        for schema in (row.value.schema, row.key.schema):
            if schema is not None and schema.reason and len(found) < REASONS_MAX:
                found.setdefault(schema.schema_id, schema.reason)
    return found


def shown_part(
    data: bytes | None, values: PageValues | None, settings: ConsoleSettings, form: str
) -> ShownPart:
    """A key or a value by itself. The forms "text" and "hex" are those of the stored bytes."""
    decoded = None if values is None else values.decoded(data)
    is_json = not form and decoded is not None and decoded.json is not None
    content = shown(
        decoded.json if is_json and decoded is not None else data,
        max_bytes=settings.record_bytes_max,
        json_depth_max=settings.json_depth_max,
        form=form,
    )
    return ShownPart(content._replace(size_bytes=len(data or b"")), decoded)


def json_of(values: PageValues | None) -> Callable[[bytes], bytes | None]:
    """For searches: the JSON of a framed value, None if it cannot be decoded; other values as they
    are."""

    def decoded(data: bytes) -> bytes | None:
        found = None if values is None else values.decoded(data)
        return data if found is None else found.json

    return decoded
