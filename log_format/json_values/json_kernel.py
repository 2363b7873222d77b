"""The loop over JSON objects that become columns: the source of `json_kernel.ll`.

`scripts/kernels.py` compiles this file, `json_tokens.py` and `json_times.py` with numba into LLVM's
intermediate representation, under the rules of `log_format/record_kernel.py`. Invariants: a row
that `parse` does not mark as doubtful is one JSON object by RFC 8259, with nothing behind it. No
name is repeated in its object. The object has each needed field, with a value that the field's kind
allows. Reads end at the value's end. The texts of a field are never longer than all values.
"""

from bucketlog.log_format.json_values.json_times import date, moment
from bucketlog.log_format.json_values.json_tokens import (
    Bytes,
    Filled,
    exact,
    is_new,
    literal,
    name_end,
    number,
    skipped,
    space,
    text,
)

TEXT, INTEGER, REAL, FLAG, INSTANT, LOCAL, DATE, DECIMAL, JSON = range(9)
"""Kinds of fields. INSTANT and LOCAL are microseconds since 1970, with and without a zone. DATE is
days since 1970. DECIMAL is a number times 10**SCALE. JSON is the place of any value."""
KIND, NAME_AT, NAME_BYTES, OPTIONAL, MAY_MISS, SLOT, SCALE, BOUND, PLAN_COLUMNS = range(9)
"""Columns of a field's row in `plan`. SLOT is the field's row in its array of results. A DECIMAL is
between -BOUND and BOUND."""
SPAN_BITS = 32
"""The place of a JSON value is one integer. These low bits are its end, the others its begin."""
FIELDS_MAX = 60
"""Maximum number of fields: one integer has a bit for each field that a row has."""
HARD_ROW, HARD_FIELD, HARD_AT, HARD_END, HARD_COLUMNS = range(5)
"""Columns of `hard`, the places of numbers that one multiplication cannot make exactly."""
POWERS = 23
"""10**0 to 10**22 are exact as doubles."""

_EXACT_MAX = 2**53


def is_named(data: Bytes, at: int, end: int, plan: Filled, names: Bytes, field: int) -> bool:
    """Return True if the name of `field` and a quote are at `at`."""
    row = field * PLAN_COLUMNS
    first, count = plan[row + NAME_AT], plan[row + NAME_BYTES]
    if count >= end - at or data[at + count] != 0x22:
        return False
    more = 0
    while more < count and data[at + more] == names[first + more]:
        more += 1
    return bool(more == count)


def known(
    data: Bytes, at: int, end: int, plan: Filled, names: Bytes, fields: int, expected: int
) -> tuple[int, int]:
    """Return the field (-1: unknown) whose name begins at `at`, and the place behind its quote
    (-1: doubt, also for escapes)."""
    if expected < fields and is_named(data, at, end, plan, names, expected):
        return expected, at + plan[expected * PLAN_COLUMNS + NAME_BYTES] + 1
    for field in range(fields):
        if is_named(data, at, end, plan, names, field):
            return field, at + plan[field * PLAN_COLUMNS + NAME_BYTES] + 1
    behind = name_end(data, at, end)
    return -1, behind + 1 if behind >= 0 else -1


def member(
    data: Bytes,
    at: int,
    end: int,
    plan: Filled,
    names: Bytes,
    fields: int,
    expected: int,
    places: Filled,
) -> tuple[int, int]:
    """Return the field (-1: unknown) whose name with its quotes is at `at`, and the place of its
    value (-1: doubt, also for an unknown name that is repeated)."""
    if at >= end or data[at] != 0x22:
        return -1, -1
    begin = at + 1
    field, at = known(data, begin, end, plan, names, fields, expected)
    if at < 0 or (field < 0 and not is_new(data, begin, at - 1, places, 0)):
        return -1, -1
    at = space(data, at, end)
    if at >= end or data[at] != 0x3A:
        return -1, -1
    at = space(data, at + 1, end)
    return field, at if at < end else -1


def real(
    data: Bytes,
    at: int,
    end: int,
    row: int,
    field: int,
    to: int,
    reals: Filled,
    powers: Filled,
    hard: Filled,
    used: Filled,
    hards: int,
) -> int:
    """Write the double at `at`, or note its place in `hard`. Returns the place behind it, or -1."""
    mantissa, scale, form, behind = number(data, at, end)
    if behind < 0 or form & 4 or form == 2:
        return -1
    if form == 0:
        reals[to] = float(mantissa)
    elif form == 1 and -_EXACT_MAX <= mantissa <= _EXACT_MAX and -POWERS < scale < POWERS:
        reals[to] = (
            float(mantissa) / powers[-scale] if scale < 0 else float(mantissa) * powers[scale]
        )
    else:
        place = used[hards] * HARD_COLUMNS
        hard[place + HARD_ROW], hard[place + HARD_FIELD] = row, field
        hard[place + HARD_AT], hard[place + HARD_END] = at, behind
        used[hards] += 1
        reals[to] = 0.0
    return behind


def valued(
    data: Bytes,
    at: int,
    end: int,
    row: int,
    rows: int,
    field: int,
    fields: int,
    plan: Filled,
    ints: Filled,
    reals: Filled,
    flags: Filled,
    texts: Filled,
    room: int,
    valid: Filled,
    hard: Filled,
    used: Filled,
    powers: Filled,
    places: Filled,
) -> int:
    """Write the value of `field` at `at`. Returns the place behind the value, or -1."""
    spec = field * PLAN_COLUMNS
    kind, slot = plan[spec + KIND], plan[spec + SLOT]
    byte = data[at] & 0xFF
    if byte == 0x6E:
        return literal(data, at, end) if plan[spec + OPTIONAL] else -1
    valid[field * rows + row] = 1
    to = slot * rows + row
    if kind == TEXT:
        if byte != 0x22:
            return -1
        base = slot * room
        at, filled = text(data, at + 1, end, texts, base + used[slot], 1)
        used[slot] = filled - base
        return at
    if kind == INTEGER:
        mantissa, _, form, at = number(data, at, end)
        ints[to] = mantissa
        return -1 if form & 3 else at
    if kind == REAL:
        return real(data, at, end, row, field, to, reals, powers, hard, used, fields)
    if kind == FLAG:
        if byte != 0x74 and byte != 0x66:
            return -1
        flags[to] = 1 if byte == 0x74 else 0
        return literal(data, at, end)
    if kind == DECIMAL:
        ints[to], at = exact(data, at, end, plan[spec + SCALE] + 0, plan[spec + BOUND] + 0)
        return at
    if kind == JSON:
        behind = skipped(data, at, end, texts, places)
        ints[to] = at << SPAN_BITS | behind
        return behind
    if byte != 0x22:
        return -1
    if kind == DATE:
        ints[to], at = date(data, at + 1, end)
        return at
    ints[to], at = moment(data, at + 1, end, 1 if kind == INSTANT else 0)
    return at


def filled_row(
    data: Bytes,
    at: int,
    end: int,
    row: int,
    rows: int,
    fields: int,
    needed: int,
    plan: Filled,
    names: Bytes,
    ints: Filled,
    reals: Filled,
    flags: Filled,
    texts: Filled,
    room: int,
    valid: Filled,
    hard: Filled,
    used: Filled,
    powers: Filled,
    places: Filled,
) -> bool:
    """Write the fields of the object at `at`. Returns False if the row is doubtful."""
    seen, expected, places[0] = 0, 0, 0
    at = space(data, at, end)
    if at >= end or data[at] != 0x7B:
        return False
    at = space(data, at + 1, end)
    if at < end and data[at] == 0x7D:
        return needed == 0 and space(data, at + 1, end) == end
    while True:
        field, at = member(data, at, end, plan, names, fields, expected, places)
        if at < 0:
            return False
        if field < 0:
            at = skipped(data, at, end, texts, places)
        else:
            if seen >> field & 1:
                return False
            seen, expected = seen | 1 << field, field + 1
            at = valued(
                data,
                at,
                end,
                row,
                rows,
                field,
                fields,
                plan,
                ints,
                reals,
                flags,
                texts,
                room,
                valid,
                hard,
                used,
                powers,
                places,
            )
        if at < 0:
            return False
        at = space(data, at, end)
        if at >= end:
            return False
        byte = data[at] & 0xFF
        at = space(data, at + 1, end)
        if byte == 0x7D:
            return seen & needed == needed and at == end
        if byte != 0x2C:
            return False


def parse(
    data: Bytes,
    ends: Filled,
    rows: int,
    fields: int,
    needed: int,
    plan: Filled,
    names: Bytes,
    ints: Filled,
    reals: Filled,
    flags: Filled,
    text_ends: Filled,
    texts: Filled,
    room: int,
    valid: Filled,
    doubts: Filled,
    hard: Filled,
    used: Filled,
    powers: Filled,
    places: Filled,
) -> int:
    """Fill the columns from the values `data[ends[row]:ends[row + 1]]`. Before the call, `valid`,
    `doubts`, `used` and the first of each field's `text_ends` are zero. `used` gets the size of
    each text field, and at `fields` the number of rows in `hard`. Returns the number of doubtful
    rows."""
    doubtful = 0
    for row in range(rows):
        begin, end, hards = ends[row] + 0, ends[row + 1] + 0, used[fields]
        is_sure = filled_row(
            data,
            begin,
            end,
            row,
            rows,
            fields,
            needed,
            plan,
            names,
            ints,
            reals,
            flags,
            texts,
            room,
            valid,
            hard,
            used,
            powers,
            places,
        )
        if not is_sure:
            doubtful += 1
            doubts[row] = 1
            used[fields] = hards
        for field in range(fields):
            if not is_sure:
                valid[field * rows + row] = 0
            if plan[field * PLAN_COLUMNS + KIND] == TEXT:
                slot = plan[field * PLAN_COLUMNS + SLOT]
                place = slot * (rows + 1) + row
                if not is_sure:
                    used[slot] = text_ends[place]
                text_ends[place + 1] = used[slot]
    return doubtful
