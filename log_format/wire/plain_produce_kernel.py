"""Decodes and checks a plain Produce request: the source of `plain_produce_kernel.ll`.

A plain request has one batch for one partition, outside of a transaction, and expects a response.
The batch is uncompressed, and its records are valid. `scan` does not say what is wrong with other
requests: `frames`, `produce`, `batch` and `record_check` decode and check these requests again.
The rules for this code are those of `record_kernel`, whose functions it may call. Invariant: every
read is bounded by `size`.
"""

from bucketlog.log_format.record_kernel import Bytes, Filled, check

(
    VERSION,
    CORRELATION_ID,
    CLIENT_ID_AT,
    CLIENT_ID_BYTES,
    ACKS,
    TIMEOUT_MS,
    TOPIC_AT,
    TOPIC_BYTES,
    PARTITION,
    RECORDS_AT,
    RECORDS_END,
) = range(4, 15)
"""Indexes of `scan`'s `numbers`. `record_kernel.check` uses the indexes below `VERSION`."""
(
    BASE_OFFSET,
    BATCH_LENGTH,
    LEADER_EPOCH,
    MAGIC,
    CRC,
    ATTRIBUTES,
    LAST_OFFSET_DELTA,
    BASE_TIMESTAMP,
    MAX_TIMESTAMP,
    PRODUCER_ID,
    PRODUCER_EPOCH,
    BASE_SEQUENCE,
    RECORD_COUNT,
    SCANNED,
) = range(15, 29)
"""Indexes of the batch header's fields, in their order. `SCANNED` is the count of all numbers."""

_HEADER_BYTES = 61
_CLIENT_ID_FROM = 10
_FLEXIBLE_FROM_VERSION, _TOPIC_IDS_FROM_VERSION = 9, 13
_FIXED_BYTES = 24
"""`body` reads fewer bytes than this before its first check of the bounds. With the header of a
batch, every plain request has more bytes behind its client id."""
_MIN_TIMESTAMP, _MAX_TIMESTAMP = 0, 2**63 - 1


def int16(data: Bytes, at: int) -> int:
    value = (data[at] & 0xFF) << 8 | (data[at + 1] & 0xFF)
    return value - 0x10000 if value > 0x7FFF else value


def uint32(data: Bytes, at: int) -> int:
    high = (data[at] & 0xFF) << 24 | (data[at + 1] & 0xFF) << 16
    return high | (data[at + 2] & 0xFF) << 8 | (data[at + 3] & 0xFF)


def int32(data: Bytes, at: int) -> int:
    value = uint32(data, at)
    return value - 0x100000000 if value > 0x7FFFFFFF else value


def int64(data: Bytes, at: int) -> int:
    return int32(data, at) * 0x100000000 + uint32(data, at + 4)


def small_uvarint(data: Bytes, at: int, end: int) -> tuple[int, int]:
    """The number at `at`, in one to three bytes, and its end; the end is -1 if `data[at:end]` does
    not begin with such a number."""
    value = shift = 0
    while at < end and shift < 21:
        byte = data[at] & 0xFF
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    return 0, -1


def in_single_item(data: Bytes, at: int, flexible: bool) -> int:
    """Where the item of the array at `at` begins; -1 if the array does not have one item."""
    if flexible:
        return at + 1 if data[at] == 2 else -1
    return at + 4 if int32(data, at) == 1 else -1


def has_plain_header(data: Bytes, at: int, size: int, numbers: Filled) -> bool:
    """Fill in the numbers of the batch header at `at`. Returns whether the header fits a batch of
    `size` bytes, and has no attributes, a base offset of 0, and counts and sequences that agree.
    The CRC is not checked."""
    numbers[BASE_OFFSET], numbers[BATCH_LENGTH] = int64(data, at), int32(data, at + 8)
    numbers[LEADER_EPOCH], numbers[MAGIC] = int32(data, at + 12), data[at + 16] & 0xFF
    numbers[CRC], numbers[ATTRIBUTES] = uint32(data, at + 17), int16(data, at + 21)
    numbers[LAST_OFFSET_DELTA], numbers[BASE_TIMESTAMP] = int32(data, at + 23), int64(data, at + 27)
    numbers[MAX_TIMESTAMP], numbers[PRODUCER_ID] = int64(data, at + 35), int64(data, at + 43)
    numbers[PRODUCER_EPOCH], numbers[BASE_SEQUENCE] = int16(data, at + 51), int32(data, at + 53)
    count = int32(data, at + 57)
    numbers[RECORD_COUNT] = count
    has_sequence = numbers[PRODUCER_EPOCH] >= 0 and numbers[BASE_SEQUENCE] >= 0
    return (
        numbers[BASE_OFFSET] == 0
        and numbers[BATCH_LENGTH] == size - 12
        and numbers[MAGIC] == 2
        and numbers[ATTRIBUTES] == 0
        and count > 0
        and count * 7 <= size - _HEADER_BYTES
        and numbers[LAST_OFFSET_DELTA] == count - 1
        and (numbers[PRODUCER_ID] < 0 or has_sequence)
    )


def body(data: Bytes, at: int, size: int, version: int, numbers: Filled) -> int:
    """Fill in the numbers of the request's body, which begins at `at` and has at least
    `_FIXED_BYTES`. Returns the size of the records in bytes; -1 if the request is not plain."""
    flexible = version >= _FLEXIBLE_FROM_VERSION
    if flexible:
        if data[at] != 0 or data[at + 1] != 0:  # tagged fields of the header, transactional id
            return -1
        at += 2
    else:
        if int16(data, at) != -1:
            return -1
        at += 2
    acks = int16(data, at)
    if acks != -1 and acks != 1:
        return -1
    numbers[ACKS], numbers[TIMEOUT_MS] = acks, int32(data, at + 2)
    at += 6
    at = in_single_item(data, at, flexible)
    if at < 0:
        return -1
    if version >= _TOPIC_IDS_FROM_VERSION:
        name = 16
    elif flexible:
        name, at = small_uvarint(data, at, size)
        name -= 1
    else:
        name = int16(data, at)
        at += 2
    if at < 0 or name < 0 or name > size - at:
        return -1
    numbers[TOPIC_AT], numbers[TOPIC_BYTES] = at, name
    at += name
    if size - at < 12:  # the number of partitions, the partition, and the length of the records
        return -1
    at = in_single_item(data, at, flexible)
    if at < 0:
        return -1
    numbers[PARTITION] = int32(data, at)
    at += 4
    if flexible:
        records, at = small_uvarint(data, at, size)
        records -= 1
        end = size - 3  # tagged fields of the partition, the topic and the request
        if at < 0 or data[end] != 0 or data[end + 1] != 0 or data[end + 2] != 0:
            return -1
    else:
        records = int32(data, at)
        at += 4
        end = size
    if records < _HEADER_BYTES or records != end - at:
        return -1
    numbers[RECORDS_AT], numbers[RECORDS_END] = at, end
    return records


def scan(data: Bytes, size: int, refused: Filled, numbers: Filled) -> int:
    """Return 1 if `data[:size]` is a plain Produce request, else 0. `numbers` has room for
    `SCANNED` numbers, and `refused` is as in `check`. The data begin with the request header. The
    version must be 3 to 13. `scan` checks neither the version nor the CRC. Timestamps of a plain
    request are -1 or not negative, and the batch header has the largest timestamp."""
    if size < _CLIENT_ID_FROM or int16(data, 0) != 0:
        return 0
    version = int16(data, 2)
    client = int16(data, 8)
    at = _CLIENT_ID_FROM
    if client < -1 or client > size - at:
        return 0
    numbers[VERSION], numbers[CORRELATION_ID] = version, int32(data, 4)
    numbers[CLIENT_ID_AT], numbers[CLIENT_ID_BYTES] = at, client
    if client > 0:
        at += client
    if size - at < _FIXED_BYTES + _HEADER_BYTES:
        return 0
    records = body(data, at, size, version, numbers)
    if records < 0:
        return 0
    at = numbers[RECORDS_AT]
    if not has_plain_header(data, at, records, numbers):
        return 0
    fault = check(
        data,
        at + _HEADER_BYTES,
        at + records,
        numbers[RECORD_COUNT],
        numbers[LAST_OFFSET_DELTA],
        numbers[BASE_TIMESTAMP],
        0,
        _MIN_TIMESTAMP,
        _MAX_TIMESTAMP,
        refused,
        numbers,
    )
    if fault != 0 or numbers[1] != 0 or numbers[0] != numbers[MAX_TIMESTAMP]:
        return 0
    return 1
