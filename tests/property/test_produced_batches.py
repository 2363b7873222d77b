"""Readers can read accepted batches; the compiled and the Python kernel agree."""

import ctypes
from random import Random
from typing import Any, cast

from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record import MemoryRecords

from bucketlog.log_format import record_check, record_kernel
from bucketlog.log_format.arrow import decode_batches
from bucketlog.log_format.batch import Codec, check_produced, read_header, set_max_timestamp
from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_format.record_check import RecordRules, check_records
from bucketlog.log_format.records import Header, decode_records
from tests.models.produced_batches import mutated, record, sound

RULES = RecordRules(max_bytes=1 << 20)
Row = tuple[int, int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]


def accepted(data: bytearray) -> bool:
    """Validates as a broker does, which then corrects the header's largest timestamp."""
    try:
        header = read_header(data)
        check_produced(header, max_records=1_000_000)
        largest = check_records(data, header, RULES, "t-0")
    except InvalidDataError:
        return False
    set_max_timestamp(memoryview(data), header, largest)
    return True


def ours(data: bytes) -> list[Row]:
    return [
        (each.offset, each.timestamp, each.key, each.value, [*map(_plain, each.headers)])
        for each in decode_records(data, read_header(data))
    ]


def _plain(header: Header) -> tuple[str, bytes | None]:
    return header.key, header.value


def kafka_pythons(data: bytes) -> list[Row]:
    found: Any = MemoryRecords(data)
    rows = []
    while (batch := found.next_batch()) is not None:
        assert batch.validate_crc()
        rows += [
            (each.offset, each.timestamp, each.key, each.value, list(each.headers))
            for each in batch
        ]
    return cast(list[Row], rows)


@settings(max_examples=3000, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(list(Codec)))
def test_what_is_accepted_can_be_read(seed: int, codec: Codec) -> None:
    data = bytearray(mutated(Random(seed), codec))
    if not accepted(data):
        return
    rows = ours(bytes(data))
    assert [row[0] for row in rows] == [*range(len(rows))]
    assert max(row[1] for row in rows) == read_header(data).max_timestamp or all(
        row[1] < -1 for row in rows
    )
    assert kafka_pythons(bytes(data)) == rows
    columns = decode_batches(data, [0], headers=True)
    assert columns.value is not None
    assert columns.value.to_pylist() == [row[3] for row in rows]
    assert columns.timestamp.to_pylist() == [row[1] for row in rows]


def checked_by(
    check: Any, data: Any, size: int, count: int, last_delta: int, base: int
) -> tuple[int, list[int]]:
    numbers = (ctypes.c_int64 * record_kernel.NUMBERS)()
    refused = (ctypes.c_int64 * 300)()
    fault = check(data, 0, size, count, last_delta, base, 1, -1000, 1000, refused, numbers)
    return fault, [*numbers[: record_kernel.AT + 1], *refused]


@settings(max_examples=3000, deadline=None)
@given(
    st.integers(0, 2**32),
    st.binary(max_size=40),
    st.integers(0, 40),
    st.sampled_from([0, 5, -1, 2**63 - 1, -(2**63)]),
)
def test_the_compiled_kernel_is_its_source(seed: int, noise: bytes, count: int, base: int) -> None:
    random = Random(seed)
    compiled = record_check._compiled()
    assert compiled is not None
    body, _ = sound(random, Codec.NONE, count)
    body += record(count, headers=[(noise, noise)], timestamp_delta=random.choice([1, 2**63 - 1]))
    cut = random.randrange(len(body) + 1)
    data = random.choice([body, body[:cut] + noise + body[cut:], body[:cut] + noise, noise])
    given_values = (data, len(data), count + 1, random.choice([count, count + 3]), base)
    assert checked_by(compiled.check, *given_values) == checked_by(
        record_kernel.check, *given_values
    )
