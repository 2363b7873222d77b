"""Dates and times in JSON strings: a part of `json_kernel`.

The rules are those of `log_format/record_kernel.py`. Reads end at `end`. The result -1 means doubt:
the string may be invalid, or has an unusual form.
"""

from bucketlog.log_format.json_values.json_tokens import Bytes

_NO_DAY = -1_000_000


def digits(data: Bytes, at: int, count: int) -> int:
    """Return the number that `count` digits at `at` make, or `_NO_DAY` for other bytes."""
    value = 0
    for more in range(count):
        byte = data[at + more] & 0xFF
        if byte < 0x30 or byte > 0x39:
            return _NO_DAY
        value = value * 10 + byte - 0x30
    return value


def days(year: int, month: int, day: int) -> int:
    """Return the days since 1970, or `_NO_DAY` if the day does not exist. `year` is at least 1."""
    if month < 1 or month > 12 or day < 1:
        return _NO_DAY
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    last = 30 + ((month + (month >> 3)) & 1)
    if month == 2:
        last = 29 if is_leap else 28
    if day > last:
        return _NO_DAY
    shifted = year - 1 if month <= 2 else year
    of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    return shifted * 365 + shifted // 4 - shifted // 100 + shifted // 400 + of_year - 719_468


def clock(data: Bytes, at: int, end: int) -> tuple[int, int]:
    """Return the microseconds since midnight of a time such as 12:30:59 or 12:30:59.123456, and its
    end. Other bytes of the value follow the time. At least nine bytes are at `at`."""
    hour, minute, second = digits(data, at, 2), digits(data, at + 3, 2), digits(data, at + 6, 2)
    if data[at + 2] != 0x3A or data[at + 5] != 0x3A:
        return 0, -1
    if hour < 0 or hour > 23 or minute < 0 or minute > 59 or second < 0 or second > 59:
        return 0, -1
    at += 8
    fraction = 0
    if data[at] == 0x2E:
        at, unit = at + 1, 1_000_000
        first = at
        while at < end and data[at] >= 0x30 and data[at] <= 0x39 and at - first < 7:
            unit //= 10
            fraction += ((data[at] & 0xFF) - 0x30) * unit
            at += 1
        if at in (first, end) or at - first > 6:
            return 0, -1
    return (hour * 3600 + minute * 60 + second) * 1_000_000 + fraction, at


def zone(data: Bytes, at: int, end: int) -> tuple[int, int]:
    """Return the minutes of a zone such as Z or +01:00, and its end. Hours are at most 18."""
    if data[at] == 0x5A:
        return 0, at + 1
    if (data[at] != 0x2B and data[at] != 0x2D) or end - at < 7 or data[at + 3] != 0x3A:
        return 0, -1
    hours, minutes = digits(data, at + 1, 2), digits(data, at + 4, 2)
    if hours < 0 or hours > 18 or minutes < 0 or minutes > 59:
        return 0, -1
    found = hours * 60 + minutes
    return -found if data[at] == 0x2D else found, at + 6


def day(data: Bytes, at: int) -> int:
    """Return the days since 1970 of a date of ten bytes in the years 2 to 9998, or `_NO_DAY`."""
    year = digits(data, at, 4)
    if data[at + 4] != 0x2D or data[at + 7] != 0x2D or year < 2 or year > 9998:
        return _NO_DAY
    return days(year, digits(data, at + 5, 2), digits(data, at + 8, 2))


def date(data: Bytes, at: int, end: int) -> tuple[int, int]:
    """Return the days since 1970 of a date in a string, and the place behind the last quote (-1:
    doubt). The first quote is before `at`."""
    if end - at < 11 or data[at + 10] != 0x22:
        return 0, -1
    found = day(data, at)
    return found, -1 if found == _NO_DAY else at + 11


def moment(data: Bytes, at: int, end: int, zoned: int) -> tuple[int, int]:
    """Return the microseconds since 1970 of a time in a string, and the place behind the last quote
    (-1: doubt). The first quote is before `at`."""
    if end - at < 20 or (data[at + 10] != 0x54 and data[at + 10] != 0x20):
        return 0, -1
    found = day(data, at)
    of_day, at = clock(data, at + 11, end)
    if found == _NO_DAY or at < 0:
        return 0, -1
    ahead = 0
    if zoned:
        ahead, at = zone(data, at, end)
        if at < 0 or at >= end:
            return 0, -1
    if data[at] != 0x22:
        return 0, -1
    return found * 86_400_000_000 + of_day - ahead * 60_000_000, at + 1
