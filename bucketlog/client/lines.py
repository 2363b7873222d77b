"""Records as lines of text, both ways: `consume -o jsonl | produce --jsonl` loses nothing.

A jsonl line: {"topic", "partition", "offset", "timestamp", "key", "value", "headers"}; key and
value are text or null. Bytes that are not UTF-8 are in `key_base64`, `value_base64`.
Headers are [name, text] pairs, or [name, null], or [name, null, base64].
"""

import base64
import binascii
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_format.printable import printable_json

if TYPE_CHECKING:
    from bucketlog.client.topic import Record


class Line(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, str | bytes | None]]
    timestamp_ms: int | None


class JsonText(bytes):
    """JSON in UTF-8, which a line of jsonl has as what it says, not as text."""


_as_json = json.JSONEncoder(ensure_ascii=False).encode
"""Made once: `json.dumps` makes an encoder for each call that asks for anything."""


def plain_line(text: bytes, separator: bytes | None) -> Line:
    """A line as it is, or key and value around the first `separator`."""
    if separator is None:
        return Line(None, text, [], None)
    key, found, value = text.partition(separator)
    if not found:
        raise InvalidDataError(
            f"no key separator {separator.decode()!r} in {text[:60].decode(errors='replace')!r}",
            remedy="give each line as KEY<separator>VALUE, or leave --key-separator out",
        )
    return Line(key, value, [], None)


def json_line(text: bytes) -> Line:
    """A line of jsonl; a value that is an object, list, number or bool is sent as JSON."""
    try:
        row = json.loads(text)
    except ValueError as error:
        raise InvalidDataError(
            f"not JSON: {error}", remedy='each line is one object, as in {"key": "k", "value": "v"}'
        ) from error
    if not isinstance(row, dict) or not {"value", "value_base64"} & row.keys():
        raise InvalidDataError(
            "no object with a 'value'",
            remedy='each line is one object, as in {"key": "k", "value": "v"}',
        )
    try:
        timestamp = row.get("timestamp")
        return Line(
            _bytes(row, "key"),
            _bytes(row, "value"),
            [_header(item) for item in row.get("headers") or ()],
            None if timestamp is None else int(timestamp),
        )
    except (TypeError, ValueError, binascii.Error) as error:
        raise InvalidDataError(f"a field is malformed: {error}") from error


def _bytes(row: dict[str, Any], name: str) -> bytes | None:
    if (encoded := row.get(f"{name}_base64")) is not None:
        return base64.b64decode(encoded, validate=True)
    value = row.get(name)
    if value is None:
        return None
    return value.encode() if isinstance(value, str) else json.dumps(value).encode()


def _header(item: Any) -> tuple[str, str | bytes | None]:
    name, value, *encoded = item
    if not isinstance(name, str) or not (value is None or isinstance(value, str)):
        raise TypeError(f"header {item!r} is no [name, text] pair")
    return name, base64.b64decode(encoded[0], validate=True) if encoded else value


def to_json_line(record: "Record[bytes, bytes]") -> str:
    return printable_json(_as_json(record_row(record)))


def record_row(record: "Record[bytes, bytes]") -> dict[str, Any]:
    """The object of a jsonl line."""
    row: dict[str, Any] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp_ms,
    }
    value = None if record.is_tombstone else record.value
    return row | content_row(record.key, value, record.headers)


def content_row(
    key: bytes | None, value: bytes | None, headers: Iterable[tuple[str, bytes | None]]
) -> dict[str, Any]:
    """The part of a jsonl line that a producer chooses."""
    row: dict[str, Any] = {}
    _put(row, "key", key)
    _put(row, "value", value)
    row["headers"] = header_items(headers)
    return row


def header_items(headers: Iterable[tuple[str, bytes | None]]) -> list[list[str | None]]:
    """Return the headers as a line of JSON has them."""
    return [_header_item(name, value) for name, value in headers]


def _put(row: dict[str, Any], name: str, data: bytes | None) -> None:
    try:
        if isinstance(data, JsonText):
            row[name] = json.loads(data)
            return
        row[name] = None if data is None else data.decode()
    except UnicodeDecodeError:
        row[f"{name}_base64"] = base64.b64encode(data or b"").decode()


def _header_item(name: str, value: bytes | None) -> list[str | None]:
    try:
        return [name, None if value is None else value.decode()]
    except UnicodeDecodeError:
        return [name, None, base64.b64encode(value or b"").decode()]
