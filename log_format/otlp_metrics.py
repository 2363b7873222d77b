"""Metrics of OpenTelemetry's protocol (OTLP), as Kafka's clients send them. Pure.

Source: opentelemetry-proto 1.0, `metrics.proto` and `common.proto`; KIP-714. Invariants: no length
exceeds the bytes that are there; unknown fields are skipped; at most `series_max` series are built.
A histogram or summary becomes two series, its count and its sum.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from bucketlog.log_format.errors import InvalidDataError

TEXT_CHARS_MAX = 256
"""Longer names and values are cut."""
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_VARINT_BYTES_MAX = 10
_DOUBLE, _LONG = struct.Struct("<d"), struct.Struct("<q")
_GAUGE, _SUM, _HISTOGRAM, _EXPONENTIAL, _SUMMARY = 5, 7, 9, 10, 11
_SCALAR = frozenset({_GAUGE, _SUM})
_COUNTED = {_HISTOGRAM: 9, _EXPONENTIAL: 1, _SUMMARY: 7}
"""By the field of a metric's data: the field of attributes in its points."""
Value = int | memoryview


class Series(NamedTuple):
    """`attributes` are in the order of their names."""

    name: str
    attributes: tuple[tuple[str, str], ...]


def read_metrics(data: bytes, prefixes: tuple[str, ...], *, series_max: int) -> dict[Series, float]:
    """The last value of each series whose name begins with one of `prefixes`. Raises
    `InvalidDataError`."""
    found: dict[Series, float] = {}
    for series, value in _series(memoryview(data), prefixes):
        if series in found or len(found) < series_max:
            found[series] = value
    return found


def _series(data: memoryview, prefixes: tuple[str, ...]) -> Iterator[tuple[Series, float]]:
    for resource_metrics in _messages(data, 1):
        for scope_metrics in _messages(resource_metrics, 2):
            for metric in _messages(scope_metrics, 2):
                yield from _of_metric(metric, prefixes)


def _of_metric(metric: memoryview, prefixes: tuple[str, ...]) -> Iterator[tuple[Series, float]]:
    name = "".join(map(_text, _messages(metric, 1)))[:TEXT_CHARS_MAX]
    if not name.startswith(prefixes):
        return
    for number, value in _fields(metric):
        if not isinstance(value, memoryview):
            continue
        if number in _SCALAR:
            for point in _messages(value, 1):
                row = dict(_fields(point))
                yield Series(name, _attributes(point, 7)), _number(row.get(4), row.get(6))
        elif number in _COUNTED:
            for point in _messages(value, 1):
                row, attributes = dict(_fields(point)), _attributes(point, _COUNTED[number])
                yield Series(f"{name}.count", attributes), _number(None, row.get(4))
                yield Series(f"{name}.sum", attributes), _number(row.get(5), None)


def _number(double: Value | None, whole: Value | None) -> float:
    """Fixed values are 8 bytes here."""
    if isinstance(double, memoryview):
        return float(_DOUBLE.unpack(double)[0])
    if isinstance(whole, memoryview):
        return float(_LONG.unpack(whole)[0])
    return float(whole or 0)


def _attributes(point: memoryview, number: int) -> tuple[tuple[str, str], ...]:
    found: dict[str, str] = {}
    for pair in _messages(point, number):
        row = dict(_fields(pair))
        key, value = row.get(1, b""), row.get(2, memoryview(b""))
        if isinstance(key, memoryview) and isinstance(value, memoryview):
            found[_text(key)] = _plain(value)
    return tuple(sorted(found.items()))


def _plain(value: memoryview) -> str:
    """Of an AnyValue: a text, a truth value, an integer or a number."""
    for number, each in _fields(value):
        if number == 1 and isinstance(each, memoryview):
            return _text(each)
        if number == 4 and isinstance(each, memoryview):
            return str(_number(each, None))
        if number in (2, 3) and isinstance(each, int):
            return str(each - (1 << 64) if each >= 1 << 63 else each)
    return ""


def _text(data: memoryview) -> str:
    return bytes(data[: 4 * TEXT_CHARS_MAX]).decode(errors="replace")[:TEXT_CHARS_MAX]


def _messages(data: memoryview, number: int) -> Iterator[memoryview]:
    for found, value in _fields(data):
        if found == number and isinstance(value, memoryview):
            yield value


def _fields(data: memoryview) -> Iterator[tuple[int, Value]]:
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        kind = tag & 7
        if kind == _VARINT:
            value, at = _varint(data, at)
            yield tag >> 3, value
            continue
        if kind == _BYTES:
            size, at = _varint(data, at)
        elif kind in (_FIXED64, _FIXED32):
            size = 8 if kind == _FIXED64 else 4
        else:
            raise _wrong(f"a field has the wire type {kind}")
        if size > len(data) - at:
            raise _wrong("a field is longer than the metrics")
        if kind != _FIXED32:
            yield tag >> 3, data[at : at + size]
        at += size


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = 0
    for place in range(_VARINT_BYTES_MAX):
        if at + place >= len(data):
            break
        byte = data[at + place]
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value, at + place + 1
    raise _wrong("a number is cut or too long")


def _wrong(what: str) -> InvalidDataError:
    return InvalidDataError(f"metrics of a client are not OTLP: {what}")
