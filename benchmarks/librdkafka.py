"""librdkafka's C API by ctypes, as little of it as a load generator needs.

The library is the one inside the confluent-kafka wheel. Going past its Python layer takes the cost
of a Python call from each record to each batch of records, so that two cores are enough for client
and broker at several hundred MB/s. Invariant: payloads are borrowed (no copy, no free), so the
buffer given to `Producer` lives as long as it.

Source: rdkafka.h of librdkafka 2.x.
"""

import ctypes
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import confluent_kafka

EVENT_DELIVERY = 0x1
EVENT_ERROR = 0x8
PRODUCER, CONSUMER = 0, 1
CONF_OK = 0
FLAG_PARTITION = 0x8
QUEUE_FULL = -184
PARTITION_EOF = -191
BEGINNING = -2
_TEXT_BYTES = 512


class Message(ctypes.Structure):
    """rd_kafka_message_t"""

    _fields_ = (
        ("err", ctypes.c_int),
        ("topic", ctypes.c_void_p),
        ("partition", ctypes.c_int32),
        ("payload", ctypes.c_void_p),
        ("length", ctypes.c_size_t),
        ("key", ctypes.c_void_p),
        ("key_length", ctypes.c_size_t),
        ("offset", ctypes.c_int64),
        ("opaque", ctypes.c_void_p),
    )


_SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "rd_kafka_version_str": (ctypes.c_char_p, []),
    "rd_kafka_conf_new": (ctypes.c_void_p, []),
    "rd_kafka_conf_set": (
        ctypes.c_int,
        [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t],
    ),
    "rd_kafka_conf_set_events": (None, [ctypes.c_void_p, ctypes.c_int]),
    "rd_kafka_new": (
        ctypes.c_void_p,
        [ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t],
    ),
    "rd_kafka_destroy": (None, [ctypes.c_void_p]),
    "rd_kafka_topic_new": (ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]),
    "rd_kafka_topic_destroy": (None, [ctypes.c_void_p]),
    "rd_kafka_queue_get_main": (ctypes.c_void_p, [ctypes.c_void_p]),
    "rd_kafka_queue_new": (ctypes.c_void_p, [ctypes.c_void_p]),
    "rd_kafka_queue_destroy": (None, [ctypes.c_void_p]),
    "rd_kafka_queue_poll": (ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_int]),
    "rd_kafka_produce_batch": (
        ctypes.c_int,
        [ctypes.c_void_p, ctypes.c_int32, ctypes.c_int, ctypes.POINTER(Message), ctypes.c_int],
    ),
    "rd_kafka_outq_len": (ctypes.c_int, [ctypes.c_void_p]),
    "rd_kafka_event_type": (ctypes.c_int, [ctypes.c_void_p]),
    "rd_kafka_event_message_count": (ctypes.c_size_t, [ctypes.c_void_p]),
    "rd_kafka_event_message_array": (
        ctypes.c_size_t,
        [ctypes.c_void_p, ctypes.POINTER(ctypes.POINTER(Message)), ctypes.c_size_t],
    ),
    "rd_kafka_event_error_string": (ctypes.c_char_p, [ctypes.c_void_p]),
    "rd_kafka_event_destroy": (None, [ctypes.c_void_p]),
    "rd_kafka_message_latency": (ctypes.c_int64, [ctypes.POINTER(Message)]),
    "rd_kafka_message_destroy": (None, [ctypes.POINTER(Message)]),
    "rd_kafka_err2str": (ctypes.c_char_p, [ctypes.c_int]),
    "rd_kafka_consume_start_queue": (
        ctypes.c_int,
        [ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64, ctypes.c_void_p],
    ),
    "rd_kafka_consume_stop": (ctypes.c_int, [ctypes.c_void_p, ctypes.c_int32]),
    "rd_kafka_consume_batch_queue": (
        ctypes.c_ssize_t,
        [
            ctypes.c_void_p,
            ctypes.c_int,
            ctypes.POINTER(ctypes.POINTER(Message)),
            ctypes.c_size_t,
        ],
    ),
}


@cache
def _library() -> ctypes.CDLL:
    folder = Path(confluent_kafka.__file__).parent.with_name("confluent_kafka.libs")
    found = sorted(folder.glob("librdkafka-*.so*")) or [Path("librdkafka.so.1")]
    library = ctypes.CDLL(str(found[0]))
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
    return library


def version() -> str:
    text: bytes = _library().rd_kafka_version_str()
    return text.decode()


class ClientError(RuntimeError):
    """librdkafka refused a setting or reported an error."""


def _error(code: int) -> ClientError:
    text: bytes = _library().rd_kafka_err2str(code)
    return ClientError(text.decode())


@contextmanager
def _client(kind: int, settings: Mapping[str, str], events: int = 0) -> Iterator[int]:
    library = _library()
    text = ctypes.create_string_buffer(_TEXT_BYTES)
    conf = library.rd_kafka_conf_new()
    for name, value in settings.items():
        if library.rd_kafka_conf_set(conf, name.encode(), value.encode(), text, len(text)):
            raise ClientError(text.value.decode())
    if events:
        library.rd_kafka_conf_set_events(conf, events)
    handle = library.rd_kafka_new(kind, conf, text, len(text))
    if not handle:
        raise ClientError(text.value.decode())
    try:
        yield handle
    finally:
        library.rd_kafka_destroy(handle)


class Delivered(NamedTuple):
    """Records acknowledged since the last poll, and the latencies of some of them: from the call
    that handed a record over to its acknowledgement, in microseconds."""

    records: int
    sampled_us: list[int]


class Producer:
    """Sends records that are slices of one buffer; made by `open_producer`."""

    def __init__(
        self, handle: int, topic: int, queue: int, record_bytes: int, sample_every: int
    ) -> None:
        self._handle = handle
        self._topic = topic
        self._queue = queue
        self._record_bytes = record_bytes
        self._sample_every = sample_every
        self._until_sample = 0
        self._array = (ctypes.POINTER(Message) * 100_000)()

    def send(self, partition: int, payload_address: int, count: int) -> int:
        """Hand `count` records over, which lie one after another at `payload_address`; returns how
        many were taken (fewer where librdkafka's queue is full)."""
        size = self._record_bytes
        rows = (Message * count)()
        for number in range(count):
            row = rows[number]
            row.payload = payload_address + number * size
            row.length = size
        return self.send_rows(partition, rows, count)

    def send_rows(self, partition: int, rows: "ctypes.Array[Message]", count: int) -> int:
        """The same for the first `count` of `rows`; keys are copied, values are not."""
        taken: int = _library().rd_kafka_produce_batch(self._topic, partition, 0, rows, count)
        if taken < count:
            code = next(row.err for row in rows if row.err)
            if code != QUEUE_FULL:
                raise _error(code)
        return taken

    def poll(self, timeout_ms: int) -> Delivered:
        """Acknowledgements, after waiting so long for the first. Raises `ClientError`."""
        library = _library()
        records = 0
        sampled: list[int] = []
        while event := library.rd_kafka_queue_poll(self._queue, timeout_ms):
            timeout_ms = 0
            try:
                match library.rd_kafka_event_type(event):
                    case kind if kind == EVENT_DELIVERY:
                        records += self._take(event, sampled)
                    case kind if kind == EVENT_ERROR:
                        raise ClientError(library.rd_kafka_event_error_string(event).decode())
            finally:
                library.rd_kafka_event_destroy(event)
        return Delivered(records, sampled)

    def _take(self, event: int, sampled: list[int]) -> int:
        library = _library()
        total = 0
        while count := library.rd_kafka_event_message_array(event, self._array, len(self._array)):
            total += count
            if self._array[0].contents.err:
                raise _error(self._array[0].contents.err)
            at = self._until_sample
            while at < count:
                message = self._array[at]
                if message.contents.err:
                    raise _error(message.contents.err)
                sampled.append(library.rd_kafka_message_latency(message))
                at += self._sample_every
            self._until_sample = at - count
        return total

    @property
    def waiting(self) -> int:
        """Records handed over and not yet acknowledged (and polled)."""
        count: int = _library().rd_kafka_outq_len(self._handle)
        return count


@contextmanager
def open_producer(
    settings: Mapping[str, str], topic: str, *, record_bytes: int, sample_every: int
) -> Iterator[Producer]:
    library = _library()
    with _client(PRODUCER, settings, EVENT_DELIVERY | EVENT_ERROR) as handle:
        topic_handle = library.rd_kafka_topic_new(handle, topic.encode(), None)
        queue = library.rd_kafka_queue_get_main(handle)
        try:
            yield Producer(handle, topic_handle, queue, record_bytes, sample_every)
        finally:
            library.rd_kafka_queue_destroy(queue)
            library.rd_kafka_topic_destroy(topic_handle)


class Consumed(NamedTuple):
    records: int
    value_bytes: int
    ended: int
    """Partitions that said that they are at their end."""


class Reader:
    """Reads partitions from their beginnings; made by `open_reader`."""

    def __init__(self, queue: int) -> None:
        self._queue = queue
        self._array = (ctypes.POINTER(Message) * 10_000)()

    def poll(self, timeout_ms: int) -> Consumed:
        library = _library()
        count = library.rd_kafka_consume_batch_queue(
            self._queue, timeout_ms, self._array, len(self._array)
        )
        records = value_bytes = ended = 0
        destroy = library.rd_kafka_message_destroy
        for number in range(count):
            message = self._array[number]
            row = message.contents
            if not row.err:
                records += 1
                value_bytes += row.length
            elif row.err == PARTITION_EOF:
                ended += 1
            else:
                raise _error(row.err)
            destroy(message)
        return Consumed(records, value_bytes, ended)


@contextmanager
def open_reader(settings: Mapping[str, str], topic: str, partitions: int) -> Iterator[Reader]:
    library = _library()
    with _client(CONSUMER, settings) as handle:
        topic_handle = library.rd_kafka_topic_new(handle, topic.encode(), None)
        queue = library.rd_kafka_queue_new(handle)
        try:
            for partition in range(partitions):
                library.rd_kafka_consume_start_queue(topic_handle, partition, BEGINNING, queue)
            yield Reader(queue)
            for partition in range(partitions):
                library.rd_kafka_consume_stop(topic_handle, partition)
        finally:
            library.rd_kafka_queue_destroy(queue)
            library.rd_kafka_topic_destroy(topic_handle)
