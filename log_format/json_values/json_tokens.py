"""The tokens of JSON: the part of `json_kernel` that does not depend on fields.

The rules are those of `log_format/record_kernel.py`. Invariants: accepted bytes follow RFC 8259,
and RFC 3629 for UTF-8. Reads end at `end`. The result -1 is doubt: the bytes may be invalid, or
unusual. Long numbers, deep values and surrogates are unusual.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

_LEVELS_MAX, _NUMBER_BYTES_MAX, _SCALE_MAX, _DIGITS_MAX = 60, 60, 200, 18
_NULL, _TRUE, _FALSE = 0x6C6C756E, 0x65757274, 0x736C6166
"""The first four bytes of each word, in little-endian order."""
NAMES_MAX = 200
"""Maximum number of names that wait for a comparison with later names of their objects."""
PLACES = 1 + 2 * NAMES_MAX + _LEVELS_MAX
"""Size of `places`, which has the number of names, the begin and end of each name, and the number
of names before each level."""

Bytes: TypeAlias = Sequence[int]
Filled: TypeAlias = Any


def space(data: Bytes, at: int, end: int) -> int:
    """The place of the first byte that is not whitespace."""
    while at < end and (data[at] == 0x20 or data[at] == 0x0A or data[at] == 0x0D or data[at] == 9):
        at += 1
    return at


def utf8_bytes(data: Bytes, at: int, end: int) -> int:
    """The number of bytes of the character at `at`, which is not ASCII; 0 if it is not UTF-8."""
    first = data[at] & 0xFF
    if first < 0xC2 or first > 0xF4:
        return 0
    count = 2 if first < 0xE0 else 3 if first < 0xF0 else 4
    if count > end - at:
        return 0
    low = 0xA0 if first == 0xE0 else 0x90 if first == 0xF0 else 0x80
    high = 0x9F if first == 0xED else 0x8F if first == 0xF4 else 0xBF
    for more in range(1, count):
        byte = data[at + more] & 0xFF
        if byte < low or byte > high:
            return 0
        low, high = 0x80, 0xBF
    return count


def hex_digit(byte: int) -> int:
    """The digit's value, or -1."""
    if 0x30 <= byte <= 0x39:
        return byte - 0x30
    lower = byte | 0x20
    return lower - 0x57 if 0x61 <= lower <= 0x66 else -1


def code_point(data: Bytes, at: int, end: int) -> int:
    """The code point of four hexadecimal digits; -1 for other bytes and for surrogates."""
    if end - at < 4:
        return -1
    value = 0
    for more in range(4):
        digit = hex_digit(data[at + more] & 0xFF)
        if digit < 0:
            return -1
        value = value * 16 + digit
    return -1 if 0xD800 <= value <= 0xDFFF else value


def put(out: Filled, to: int, point: int) -> int:
    """Write a code point of at most 16 bits as UTF-8. Returns the end, at most 3 bytes on."""
    if point < 0x80:
        out[to] = point
        return to + 1
    if point < 0x800:
        out[to], out[to + 1] = 0xC0 | point >> 6, 0x80 | point & 0x3F
        return to + 2
    out[to], out[to + 1], out[to + 2] = (
        0xE0 | point >> 12,
        0x80 | point >> 6 & 0x3F,
        0x80 | point & 0x3F,
    )
    return to + 3


def escape(data: Bytes, at: int, end: int) -> int:
    """The code point of the escape whose backslash is before `at`, or -1."""
    if at >= end:
        return -1
    byte = data[at] & 0xFF
    if byte == 0x22 or byte == 0x5C or byte == 0x2F:
        return byte
    if byte == 0x75:
        return code_point(data, at + 1, end)
    if byte == 0x6E:
        return 0x0A
    if byte == 0x74:
        return 0x09
    if byte == 0x72:
        return 0x0D
    if byte == 0x62:
        return 0x08
    return 0x0C if byte == 0x66 else -1


def text(data: Bytes, at: int, end: int, out: Filled, to: int, keep: int) -> tuple[int, int]:
    """Read the string whose first quote is before `at`, and copy it if `keep` is 1. Returns the
    place behind the last quote (-1: doubt), and the end of the copy. The copy is never longer."""
    while at < end:
        byte = data[at] & 0xFF
        if byte == 0x22:
            return at + 1, to
        if byte < 0x20:
            return -1, to
        if byte == 0x5C:
            point = escape(data, at + 1, end)
            if point < 0:
                return -1, to
            if keep:
                to = put(out, to, point)
            at += 6 if data[at + 1] == 0x75 else 2
        elif byte < 0x80:
            if keep:
                out[to] = byte
                to += 1
            at += 1
        else:
            count = utf8_bytes(data, at, end)
            if count == 0:
                return -1, to
            for _ in range(count):
                if keep:
                    out[to] = data[at]
                    to += 1
                at += 1
    return -1, to


def number(data: Bytes, at: int, end: int) -> tuple[int, int, int, int]:
    """Mantissa, decimal exponent, form and end (-1: doubt) of a number. Bits of the form:
    0 is a fraction or an exponent, 1 is too many digits for the mantissa, 2 is a negative zero."""
    begin, form, mantissa, used, scale = at, 0, 0, 0, 0
    is_negative = at < end and data[at] == 0x2D
    if is_negative:
        at += 1
    first = at
    while at < end and data[at] >= 0x30 and data[at] <= 0x39 and at - begin < _NUMBER_BYTES_MAX:
        if used < _DIGITS_MAX:
            mantissa = mantissa * 10 + (data[at] & 0xFF) - 0x30
            used += 1
        else:
            form |= 2
        at += 1
    if at == first or (data[first] == 0x30 and at - first > 1):
        return 0, 0, 0, -1
    if at < end and data[at] == 0x2E:
        at += 1
        form |= 1
        first = at
        while at < end and data[at] >= 0x30 and data[at] <= 0x39 and at - begin < _NUMBER_BYTES_MAX:
            if used < _DIGITS_MAX:
                mantissa = mantissa * 10 + (data[at] & 0xFF) - 0x30
                used += 1
            else:
                form |= 2
            at += 1
        if at == first:
            return 0, 0, 0, -1
        scale = first - at
    if at < end and (data[at] | 0x20) == 0x65:
        at += 1
        form |= 1
        is_small = at < end and data[at] == 0x2D
        if at < end and (data[at] == 0x2D or data[at] == 0x2B):
            at += 1
        first, exponent = at, 0
        while at < end and data[at] >= 0x30 and data[at] <= 0x39 and at - first < 4:
            exponent = exponent * 10 + (data[at] & 0xFF) - 0x30
            at += 1
        if at == first:
            return 0, 0, 0, -1
        scale += -exponent if is_small else exponent
    if at - begin >= _NUMBER_BYTES_MAX or scale > _SCALE_MAX or scale < -_SCALE_MAX:
        return 0, 0, 0, -1
    if is_negative and mantissa == 0:
        form |= 4
    return -mantissa if is_negative else mantissa, scale, form, at


def word(data: Bytes, at: int, end: int) -> int:
    """Four bytes as an integer, or -1."""
    if end - at < 4:
        return -1
    low = (data[at] & 0xFF) | (data[at + 1] & 0xFF) << 8
    return low | (data[at + 2] & 0xFF) << 16 | (data[at + 3] & 0xFF) << 24


def literal(data: Bytes, at: int, end: int) -> int:
    """The end of `null`, `true` or `false`, or -1."""
    found = word(data, at, end)
    if found in (_NULL, _TRUE):
        return at + 4
    if found == _FALSE and at + 4 < end and data[at + 4] == 0x65:
        return at + 5
    return -1


def name_end(data: Bytes, at: int, end: int) -> int:
    """The place of the quote behind the name that begins at `at`, or -1 (also for escapes)."""
    while at < end:
        byte = data[at] & 0xFF
        if byte == 0x22:
            return at
        if byte < 0x20 or byte == 0x5C:
            return -1
        count = 1 if byte < 0x80 else utf8_bytes(data, at, end)
        if count == 0:
            return -1
        at += count
    return -1


def is_new(data: Bytes, begin: int, end: int, places: Filled, first: int) -> bool:
    """Return True if all names from number `first` on differ from the name at `begin`, and note
    this name. Return False for a repeated name, and if there are too many names."""
    count = places[0]
    if count == NAMES_MAX:
        return False
    for other in range(first, count):
        at, behind = places[1 + 2 * other] + 0, places[2 + 2 * other] + 0
        if behind - at == end - begin:
            more = 0
            while at + more < behind and data[at + more] == data[begin + more]:
                more += 1
            if at + more == behind:
                return False
    places[1 + 2 * count], places[2 + 2 * count] = begin, end
    places[0] = count + 1
    return True


def named(data: Bytes, at: int, end: int, places: Filled, first: int) -> int:
    """Return the end of a new name with its colon, or -1. The names from number `first` on are
    those of the object."""
    at = space(data, at, end)
    if at >= end or data[at] != 0x22:
        return -1
    behind = name_end(data, at + 1, end)
    if behind < 0 or not is_new(data, at + 1, behind, places, first):
        return -1
    at = space(data, behind + 1, end)
    return at + 1 if at < end and data[at] == 0x3A else -1


def skipped(data: Bytes, at: int, end: int, out: Filled, places: Filled) -> int:
    """Return the end of the value at `at`, or -1. Nothing is written to `out`. Names inside the
    value are forgotten."""
    objects, levels = 0, 0
    bases = 1 + 2 * NAMES_MAX
    while True:
        at = space(data, at, end)
        if at >= end:
            return -1
        byte = data[at] & 0xFF
        if byte == 0x7B or byte == 0x5B:
            if levels == _LEVELS_MAX:
                return -1
            at = space(data, at + 1, end)
            if at >= end:
                return -1
            if data[at] == byte + 2:
                at += 1
            else:
                objects = objects * 2 + (1 if byte == 0x7B else 0)
                places[bases + levels] = places[0]
                levels += 1
                if byte == 0x7B:
                    at = named(data, at, end, places, places[0] + 0)
                    if at < 0:
                        return -1
                continue
        elif byte == 0x22:
            at, _ = text(data, at + 1, end, out, 0, 0)
        elif byte > 0x60:
            at = literal(data, at, end)
        else:
            _, _, _, at = number(data, at, end)
        if at < 0:
            return -1
        while levels > 0:
            at = space(data, at, end)
            if at >= end:
                return -1
            if data[at] == 0x2C:
                at += 1
                if objects & 1:
                    at = named(data, at, end, places, places[bases + levels - 1] + 0)
                    if at < 0:
                        return -1
                break
            if data[at] != (0x7D if objects & 1 else 0x5D):
                return -1
            at, objects, levels = at + 1, objects >> 1, levels - 1
            places[0] = places[bases + levels]
        if levels == 0:
            return at


def exact(data: Bytes, at: int, end: int, scale: int, bound: int) -> tuple[int, int]:
    """Return a number, or the number in a string, times 10**`scale`, and the place behind it. The
    place is -1 for doubt, also if the product is not whole, or not between -`bound` and `bound`.
    `bound` is at most 10**18."""
    is_quoted = data[at] == 0x22
    if is_quoted:
        at += 1
    mantissa, shift, form, at = number(data, at, end)
    if at < 0 or form & 2:
        return 0, -1
    if is_quoted:
        if at >= end or data[at] != 0x22:
            return 0, -1
        at += 1
    shift += scale
    while shift > 0:
        if mantissa > bound // 10 or mantissa < -(bound // 10):
            return 0, -1
        mantissa, shift = mantissa * 10, shift - 1
    while shift < 0:
        if mantissa % 10 != 0:
            return 0, -1
        mantissa, shift = mantissa // 10, shift + 1
    if mantissa >= bound or mantissa <= -bound:
        return 0, -1
    return mantissa, at
