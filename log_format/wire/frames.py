"""Reading requests and writing responses of the hot path, over memoryviews, without copying.

Invariant: every length and count is checked against the bytes that are there before anything is
built from it; whatever does not fit raises `MalformedRequestError`. Source: Kafka protocol guide
("Protocol Primitive Types"), KIP-482 for the flexible encoding.
"""

import struct

from bucketlog.log_format.errors import InvalidDataError

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")
_FLOAT64 = struct.Struct(">d")
_UVARINT_BYTES_MAX = 5
_SHORT_VARINTS = [bytes((value,)) for value in range(0x80)]
_TAG_BYTES_MIN = 2


class MalformedRequestError(InvalidDataError):
    """A frame that does not fit its API and version: the connection is closed, as in Kafka."""

    code = "MALFORMED_REQUEST"


ITEMS_MAX = 100_000
ERROR_MESSAGE_CHARS_MAX = 500


def shortened_message(message: str) -> str:
    """The error message, cut to `ERROR_MESSAGE_CHARS_MAX` characters. A message may quote text of a
    request, and strings of versions without tagged fields have at most 32,767 bytes."""
    if len(message) <= ERROR_MESSAGE_CHARS_MAX:
        return message
    return message[: ERROR_MESSAGE_CHARS_MAX - 1] + "…"


class FrameReader:
    """A cursor over one frame. `flexible` selects KIP-482's compact encodings and tags. All arrays
    and tagged fields of the frame together have at most `items_max` items."""

    __slots__ = ("at", "data", "end", "flexible", "items_left")

    def __init__(
        self,
        data: memoryview,
        at: int = 0,
        *,
        flexible: bool = False,
        items_max: int = ITEMS_MAX,
    ) -> None:
        self.data = data
        self.at = at
        self.end = len(data)
        self.flexible = flexible
        self.items_left = items_max

    def _advance(self, length: int) -> int:
        at = self.at
        if length < 0 or length > self.end - at:
            raise MalformedRequestError(f"{length} bytes do not fit the {self.end - at} left")
        self.at = at + length
        return at

    def unpack(self, layout: struct.Struct) -> tuple[int, ...]:
        """Decode the numbers of `layout`. Raises `MalformedRequestError` if bytes are missing."""
        try:
            values = layout.unpack_from(self.data, self.at)
        except struct.error:
            self._advance(layout.size)
            raise
        self.at += layout.size
        return values

    def int8(self) -> int:
        at = self._advance(1)
        value = self.data[at]
        return value - 256 if value > 127 else value

    def int16(self) -> int:
        return self.unpack(_INT16)[0]

    def int32(self) -> int:
        return self.unpack(_INT32)[0]

    def int64(self) -> int:
        return self.unpack(_INT64)[0]

    def float64(self) -> float:
        return self.unpack(_FLOAT64)[0]

    def uvarint(self) -> int:
        if self.at < self.end and (byte := self.data[self.at]) < 0x80:
            self.at += 1
            return byte
        value = 0
        for index in range(_UVARINT_BYTES_MAX):
            byte = self.data[self._advance(1)]
            value |= (byte & 0x7F) << (7 * index)
            if byte < 0x80:
                return value
        raise MalformedRequestError("a varint is longer than five bytes")

    def _text(self, length: int) -> str:
        at = self._advance(length)
        try:
            return str(self.data[at : at + length], "utf-8")
        except UnicodeDecodeError as error:
            raise MalformedRequestError("a string is not UTF-8") from error

    def nullable_string(self) -> str | None:
        length = self.uvarint() - 1 if self.flexible else self.int16()
        return None if length == -1 else self._text(length)

    def string(self) -> str:
        value = self.nullable_string()
        if value is None:
            raise MalformedRequestError("a string that may not be null is null")
        return value

    def nullable_bytes(self) -> memoryview | None:
        """A view of the frame: no copy."""
        length = self.uvarint() - 1 if self.flexible else self.int32()
        if length == -1:
            return None
        at = self._advance(length)
        return self.data[at : at + length]

    def uuid(self) -> bytes:
        at = self._advance(16)
        return bytes(self.data[at : at + 16])

    def array_length(self, item_bytes_min: int) -> int:
        """The length of an array (null counts as empty) whose items take at least this many
        bytes."""
        return self.nullable_array_length(item_bytes_min) or 0

    def nullable_array_length(self, item_bytes_min: int) -> int | None:
        """As `array_length`; None for null."""
        length = self.uvarint() - 1 if self.flexible else self.int32()
        if length == -1:
            return None
        if length < -1:
            raise MalformedRequestError(f"an array of {length} items does not fit the frame")
        self._count(length, item_bytes_min)
        return length

    def skip(self, length: int) -> None:
        self._advance(length)

    def tags(self) -> None:
        """Skip tagged fields; nothing in the frame where it is not flexible."""
        if not self.flexible:
            return
        at = self.at
        if at < self.end and not self.data[at]:
            self.at = at + 1
            return
        for _ in range(self.tag_count()):
            self.uvarint()
            self._advance(self.uvarint())

    def tag_count(self) -> int:
        """The number of tagged fields that follow. They count as items, because each costs time.
        Kafka's clients send only a few."""
        count = self.uvarint()
        if count:
            self._count(count, _TAG_BYTES_MIN)
        return count

    def _count(self, items: int, item_bytes_min: int) -> None:
        if items * item_bytes_min > self.end - self.at:
            raise MalformedRequestError(f"an array of {items} items does not fit the frame")
        if items > self.items_left:
            raise MalformedRequestError(
                f"{items} items, of which {self.items_left} are left to this request: ask for less "
                "(BUCKETLOG_REQUEST_ITEMS_MAX)"
            )
        self.items_left -= items

    def finish(self) -> None:
        if self.at != self.end:
            raise MalformedRequestError(f"{self.end - self.at} bytes after the request's end")


def uvarint(value: int) -> bytes:
    if value <= 0x7F:
        return _SHORT_VARINTS[value]
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


class FrameWriter:
    """Builds small parts of a response; large ones are beside it as views."""

    __slots__ = ("data", "flexible")

    def __init__(self, *, flexible: bool) -> None:
        self.data = bytearray()
        self.flexible = flexible

    def pack(self, layout: struct.Struct, *values: int) -> None:
        self.data += layout.pack(*values)

    def int16(self, value: int) -> None:
        self.data += _INT16.pack(value)

    def int32(self, value: int) -> None:
        self.data += _INT32.pack(value)

    def int64(self, value: int) -> None:
        self.data += _INT64.pack(value)

    def nullable_string(self, value: str | None) -> None:
        raw = b"" if value is None else value.encode()
        if self.flexible:
            self.data += uvarint(0 if value is None else len(raw) + 1)
        else:
            self.data += _INT16.pack(-1 if value is None else len(raw))
        self.data += raw

    def error_message(self, message: str | None) -> None:
        self.nullable_string(None if message is None else shortened_message(message))

    def array_length(self, length: int) -> None:
        if self.flexible:
            self.data += uvarint(length + 1)
        else:
            self.data += _INT32.pack(length)

    def bytes_length(self, length: int) -> None:
        self.array_length(length)

    def tags(self) -> None:
        """No tagged fields."""
        if self.flexible:
            self.data.append(0)
