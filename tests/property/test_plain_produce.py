"""The compiled scan of plain Produce requests agrees with the decoder and the checks in Python."""

import ctypes
import mmap
import struct
from random import Random
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from bucketlog.log_format.batch import Codec, check_produced, crc_holds, read_header
from bucketlog.log_format.model import TopicId
from bucketlog.log_format.record_check import RecordRules, check_records
from bucketlog.log_format.wire import plain_produce, plain_produce_kernel, produce
from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.frames import FrameReader
from bucketlog.log_format.wire.plain_produce import PlainProduce, PlainProduceScanner
from tests.models.produced_batches import NOW_MS, batch, mutated, sealed, sound
from tests.rigs.wire_client import encode_request

VERSIONS = st.integers(produce.MIN_VERSION, produce.MAX_VERSION)
RULES = RecordRules(earliest_ms=0, max_bytes=1 << 20)
HEADER = struct.Struct(">hhi")


def request(
    version: int, records: bytes, *, topic: str = "topic", client_id: str = "client", acks: int = -1
) -> bytearray:
    named: dict[str, object] = {"name": topic}
    if version >= produce.TOPIC_IDS_FROM:
        named = {"topic_id": UUID(bytes=topic.encode().ljust(16, b"\1")[:16])}
    rows = [{"index": 3, "records": records}]
    values = {"acks": acks, "timeout": 77, "topic_data": [{**named, "partition_data": rows}]}
    return bytearray(encode_request(ApiKey.PRODUCE, version, 7, values, client_id))


def plain_batch(random: Random, count: int) -> bytes:
    body, _ = sound(random, Codec.NONE, count)
    made = batch(body, count, producer=random.choice([(-1, -1, -1), (9, 0, 0), (1 << 40, 3, 17)]))
    header = read_header(made)
    largest = check_records(made, header, RULES, "t-0")
    found = bytearray(made)
    struct.pack_into(">q", found, 35, largest)
    return sealed(found)


def by_python(frame: bytearray) -> PlainProduce:
    """The request after the decoder and the checks of the general path. Raises
    `InvalidDataError`."""
    data = memoryview(frame)
    key, version, _ = HEADER.unpack_from(data)
    assert key == ApiKey.PRODUCE
    reader = FrameReader(data, HEADER.size)
    client_id = reader.nullable_string() or ""
    reader.flexible = version >= produce.FLEXIBLE_FROM
    reader.tags()
    wire = produce.read_request(reader, version, lambda topic_id: "")
    (part,) = wire.partitions
    assert (wire.transactional_id, wire.is_mirror) == (None, False)
    assert part.records is not None
    header = read_header(part.records)
    assert header.size_bytes == len(part.records)
    assert crc_holds(part.records, header)
    check_produced(header, max_records=1_000_000)
    assert check_records(part.records, header, RULES, "t-0") == header.max_timestamp
    assert (header.base_offset, header.attributes) == (0, 0)
    topic: str | TopicId = part.topic if part.topic_id is None else part.topic_id
    return PlainProduce(
        client_id, wire.acks, wire.timeout_ms, topic, part.partition, part.records, header
    )


@settings(max_examples=600, deadline=None)
@given(
    VERSIONS,
    st.integers(0, 2**32),
    st.integers(1, 40),
    st.text(min_size=1, max_size=249).filter(lambda name: len(name.encode()) < 2**15),
    st.text(max_size=200),
    st.sampled_from([1, -1]),
)
def test_plain_requests_are_decoded_alike(
    version: int, seed: int, count: int, topic: str, client_id: str, acks: int
) -> None:
    records = plain_batch(Random(seed), count)
    frame = request(version, records, topic=topic, client_id=client_id, acks=acks)
    found = PlainProduceScanner(request_bytes_max=1 << 20).scan(frame)
    assert found == by_python(frame)


def changed(random: Random, frame: bytearray) -> bytearray:
    """The frame with changed, cut or added bytes. Half of the batches get a correct CRC again."""
    found = bytearray(frame)
    for _ in range(random.choice([1, 1, 2, 5])):
        at = random.randrange(len(found))
        found[at] = random.choice([found[at] ^ 1 << random.randrange(8), 0, 1, 2, 0x7F, 0x80, 0xFF])
    match random.randrange(6):
        case 0:
            del found[random.randrange(len(found)) :]
        case 1:
            found += random.randbytes(random.choice([1, 3, 20]))
    start = frame.find(b"\xff\xff\xff\xff\x02") - 12
    end = len(frame) - (3 if frame[3] >= produce.FLEXIBLE_FROM else 0)
    if random.random() < 0.5 and len(found) == len(frame):
        found[start:end] = sealed(found[start:end])
    return found


@settings(max_examples=2000, deadline=None)
@given(VERSIONS, st.integers(0, 2**32), st.booleans())
def test_nothing_else_is_accepted(version: int, seed: int, has_mutated_records: bool) -> None:
    random = Random(seed)
    records = plain_batch(random, random.randrange(1, 5))
    if has_mutated_records:
        records = mutated(random, Codec.NONE)
    frame = changed(random, request(version, records))
    found = PlainProduceScanner(request_bytes_max=1 << 20).scan(frame)
    _, still, _ = HEADER.unpack_from(frame.ljust(HEADER.size, b"\0"))
    if found is not None and produce.MIN_VERSION <= still <= produce.MAX_VERSION:
        assert found == by_python(frame)


@settings(max_examples=800, deadline=None)
@given(VERSIONS, st.integers(0, 2**32), st.booleans())
def test_the_compiled_kernel_is_its_source(version: int, seed: int, is_changed: bool) -> None:
    random = Random(seed)
    frame = request(version, plain_batch(random, random.randrange(1, 5)))
    if is_changed:
        frame = changed(random, frame)
    compiled = plain_produce._compiled()
    assert compiled is not None
    numbers = [(ctypes.c_int64 * plain_produce_kernel.SCANNED)() for _ in range(2)]
    refused = (ctypes.c_int64 * 300)()
    address = ctypes.byref(ctypes.c_ubyte.from_buffer(frame)) if frame else b""
    first = compiled.scan(address, len(frame), refused, numbers[0])
    assert first == plain_produce_kernel.scan(frame, len(frame), refused, numbers[1])
    assert [*numbers[0]] == [*numbers[1]]


@settings(max_examples=500, deadline=None)
@given(
    VERSIONS,
    st.text(max_size=249),
    st.tuples(st.integers(0, 9), st.sampled_from([0, 3, 45]), st.integers(-1, 2**62)),
    st.tuples(st.sampled_from([-1, NOW_MS]), st.sampled_from([-1, 0, 5])),
    st.sampled_from([None, "", "a reason"]),
    st.integers(0, 2**31 - 1),
)
def test_the_response_of_one_partition_is_encoded_alike(
    version: int,
    topic: str,
    outcome: tuple[int, int, int],
    log: tuple[int, int],
    message: str | None,
    throttle_ms: int,
) -> None:
    topic_id = TopicId(bytes(range(16))) if version >= produce.TOPIC_IDS_FROM else None
    result = produce.ProduceResult(topic, *outcome, *log, message, (), topic_id)
    found = produce.write_single_response(version, result, throttle_ms=throttle_ms)
    assert found == produce.write_response(version, [result], throttle_ms=throttle_ms)


class GuardedMemory:
    """Memory whose next byte is not readable: a read beyond the end kills the process."""

    def __init__(self) -> None:
        self._pages = mmap.mmap(-1, 2 * mmap.PAGESIZE)
        self._end = ctypes.addressof(ctypes.c_ubyte.from_buffer(self._pages)) + mmap.PAGESIZE
        no_access = ctypes.CDLL(None).mprotect
        no_access.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
        assert no_access(self._end, mmap.PAGESIZE, 0) == 0

    def holding(self, data: bytearray) -> int:
        """The address of a copy that ends where the readable memory ends."""
        start = self._end - len(data)
        ctypes.memmove(start, bytes(data), len(data))
        return start


@settings(max_examples=2000, deadline=None)
@given(VERSIONS, st.integers(0, 2**32), st.booleans())
def test_no_byte_behind_the_request_is_read(version: int, seed: int, is_cut: bool) -> None:
    random = Random(seed)
    frame = changed(random, request(version, plain_batch(random, random.randrange(1, 4))))
    if is_cut:
        del frame[random.randrange(len(frame) + 1) :]
    compiled = plain_produce._compiled()
    assert compiled is not None
    numbers = (ctypes.c_int64 * plain_produce_kernel.SCANNED)()
    refused = (ctypes.c_int64 * 300)()
    frame = frame[: mmap.PAGESIZE]
    compiled.scan(GUARDED.holding(frame), len(frame), refused, numbers)


GUARDED = GuardedMemory()


def test_long_requests_are_not_scanned() -> None:
    frame = request(9, plain_batch(Random(1), 1))
    assert PlainProduceScanner(request_bytes_max=len(frame)).scan(frame) is not None
    assert PlainProduceScanner(request_bytes_max=len(frame) - 1).scan(frame) is None
