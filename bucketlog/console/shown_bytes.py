"""Bytes of a record as text that is safe to show. Pure.

Records are hostile. Invariants: the result has no character that steers a terminal, hides or
reorders text (`log_format.printable`); its length and the work are bounded by the limits; JSON is
indented without being changed: numbers keep their digits, and repeated names stay. Escaping for
HTML is the template's.
"""

import json
from collections.abc import Iterator
from typing import NamedTuple

from bucketlog.log_format.printable import printable, printable_lines

HEX_ROW_BYTES = 16
INDENT = "  "


class ShownBytes(NamedTuple):
    """`form` is "null", "empty", "json", "text" or "hex". `hidden_bytes` of the end are not in
    `text`."""

    form: str
    text: str
    size_bytes: int
    hidden_bytes: int


def preview(data: bytes | None, *, max_bytes: int, size_bytes: int | None = None) -> ShownBytes:
    """One line. `data` may be the beginning of `size_bytes`."""
    if not data:
        return ShownBytes("null" if data is None else "empty", "", 0, 0)
    size = len(data) if size_bytes is None else size_bytes
    head = data[:max_bytes]
    text = decoded(head, is_cut=len(head) < size)
    if text is None:
        begin = head[: max(1, max_bytes // 3)]
        return ShownBytes("hex", begin.hex(" "), size, size - len(begin))
    return ShownBytes("text", printable(text), size, size - len(head))


def shown(data: bytes | None, *, max_bytes: int, json_depth_max: int, form: str = "") -> ShownBytes:
    """Several lines. `form` forces "text" or "hex"; by default JSON is preferred, then text."""
    if not data:
        return ShownBytes("null" if data is None else "empty", "", 0, 0)
    head = data[:max_bytes]
    hidden = len(data) - len(head)
    text = None if form == "hex" else decoded(head, is_cut=bool(hidden))
    if text is None and form == "text":
        text = head.decode(errors="replace")
    if text is None:
        return ShownBytes("hex", hex_dump(head), len(data), hidden)
    if not form and not hidden and is_json(text, json_depth_max):
        return ShownBytes("json", printable_lines(indented(text)), len(data), 0)
    return ShownBytes("text", printable_lines(text), len(data), hidden)


def decoded(head: bytes, *, is_cut: bool) -> str | None:
    """UTF-8 text; None for other bytes. A character that the cut has split is left out."""
    try:
        return head.decode()
    except UnicodeDecodeError as error:
        if is_cut and len(head) - error.start < 4 and error.reason == "unexpected end of data":
            return head[: error.start].decode()
        return None


def hex_dump(data: bytes) -> str:
    """Offset, bytes and ASCII, 16 bytes a line."""
    return "\n".join(_hex_row(data[at : at + HEX_ROW_BYTES], at) for at in _steps(data))


def _steps(data: bytes) -> Iterator[int]:
    return iter(range(0, len(data), HEX_ROW_BYTES))


def _hex_row(row: bytes, at: int) -> str:
    plain = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in row)
    return f"{at:08x}  {row.hex(' '):<47}  {plain}"


def is_json(text: str, depth_max: int) -> bool:
    """Whether `text` is an object or an array in JSON that is not nested deeper than
    `depth_max`."""
    if text.lstrip()[:1] not in ("{", "[") or _depth(text) > depth_max:
        return False
    try:
        json.loads(text)
    except ValueError:  # numbers of thousands of digits, too
        return False
    return True


def _depth(text: str) -> int:
    """The nesting of brackets outside of strings; of text that is not JSON, a bound of it."""
    depth = deepest = 0
    for piece in _pieces(text):
        if piece in "{[":
            depth += 1
            deepest = max(deepest, depth)
        elif piece in "}]":
            depth -= 1
    return deepest


def _pieces(text: str) -> Iterator[str]:
    """Strings with their quotes; other characters one by one, without white space."""
    at = 0
    while at < len(text):
        if text[at] != '"':
            if not text[at].isspace():
                yield text[at]
            at += 1
            continue
        end = at + 1
        while end < len(text) and text[end] != '"':
            end += 2 if text[end] == "\\" else 1
        yield text[at : end + 1]
        at = end + 1


def indented(text: str) -> str:
    """The same JSON on several lines; only white space between tokens changes."""
    out: list[str] = []
    depth, before = 0, ""
    for piece in _pieces(text):
        if piece in "}]":
            depth -= 1
            if before not in "{[":
                out.append("\n" + INDENT * depth)
        elif before in ("{", "[", ","):
            out.append("\n" + INDENT * depth)
        out.append(piece + " " if piece == ":" else piece)
        if piece in "{[":
            depth += 1
        before = piece
    return "".join(out)
