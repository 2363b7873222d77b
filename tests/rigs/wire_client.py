"""A Kafka client that does as it is told: one socket, one request at a time, no retries.

Messages are encoded and decoded by `kio` (generated from Kafka's own schemas) and batches are built
by aiokafka, so that a broker's reading of the protocol is held against other people's.
"""

import datetime
import select
import socket
import ssl
import struct
import types
import typing
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from io import BytesIO
from typing import Any, NamedTuple, Self

from aiokafka.record.default_records import DefaultRecordBatchBuilder
from crc32c import crc32c
from kio.index import load_payload_module, load_response_schema
from kio.schema.index import schema_name_map
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType
from kio.static.protocol import Entity

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.rigs.patience import PATIENCE_S

CLIENT_ID = "wire-client"
RecordRow = tuple[bytes | None, bytes | None]
"""Key and value."""


@cache
def request_schema(key: ApiKey, version: int) -> type[Any]:
    """kio's class."""
    module = load_payload_module(key, version, EntityType.request)
    return typing.cast("type[Any]", getattr(module, f"{key.message_name}Request"))


def supported_versions(key: ApiKey) -> list[int]:
    """By kio."""
    return sorted(schema_name_map[key.name.lower()])


@cache
def _fields(schema: type[Entity]) -> dict[str, tuple[Any, bool]]:
    """By name: what is wanted there, None aside; whether it must be given, and is an array."""
    hints = typing.get_type_hints(schema)
    return {
        field.name: (
            _wanted(hints[field.name]),
            field.default is MISSING and typing.get_origin(hints[field.name]) is tuple,
        )
        for field in fields(schema)
    }


def _wanted(hint: Any) -> Any:
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        (hint,) = [arm for arm in typing.get_args(hint) if arm is not type(None)]
    return [_wanted(typing.get_args(hint)[0])] if typing.get_origin(hint) is tuple else hint


def build(schema: type[Entity], values: Mapping[str, Any]) -> Any:
    """An entity of `schema` from plain values: dicts for nested ones, milliseconds for spans of
    time; an array that is not given is empty."""
    known = _fields(schema)
    if not known.keys() >= values.keys():
        unknown = values.keys() - known.keys()
        raise TypeError(f"{schema.__module__} has no field {unknown}, only {set(known)}")
    arguments = {}
    for name, (wanted, is_array) in known.items():
        if name in values:
            arguments[name] = _value(wanted, values[name])
        elif is_array:
            arguments[name] = ()
    return schema(**arguments)


def _value(wanted: Any, value: Any) -> Any:
    if value is None:
        return None
    if isinstance(wanted, list):
        return tuple(_value(wanted[0], item) for item in value)
    if isinstance(value, Mapping) and is_dataclass(wanted):
        return build(typing.cast("type[Entity]", wanted), value)
    if "Timedelta" in getattr(wanted, "__name__", ""):
        return datetime.timedelta(milliseconds=value)
    return value


def encode_request(
    key: ApiKey,
    version: int,
    correlation_id: int,
    values: Mapping[str, Any],
    client_id: str = CLIENT_ID,
) -> bytes:
    """Header and body, without the frame's length."""
    schema = request_schema(key, version)
    header_schema = schema.__header_schema__
    header = header_schema(
        request_api_key=schema.__api_key__,
        request_api_version=schema.__version__,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    return encode_entity(header) + encode_entity(build(schema, values))


def encode_entity(entity: Any) -> bytes:
    buffer = BytesIO()
    entity_writer(type(entity))(buffer, entity)
    return buffer.getvalue()


@cache
def _response_schema(key: ApiKey, version: int) -> Any:
    return load_response_schema(key, version)


_WITH_NO_TIME = {
    ApiKey.CREATE_DELEGATION_TOKEN,
    ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN,
    ApiKey.DESCRIBE_TRANSACTIONS,
}
"""Their refusals, and transactions that have not begun, have the time -1, which kio does not read.
The time becomes `NO_TIME_MS`."""
NO_TIME_MS = 1


def decode_response(key: ApiKey, version: int, frame: bytes) -> tuple[int, Any]:
    """The correlation id and the response; every byte must be used."""
    if key in _WITH_NO_TIME:
        frame = frame.replace(b"\xff" * 8, NO_TIME_MS.to_bytes(8, "big"))
    schema = _response_schema(key, version)
    header, at = entity_reader(schema.__header_schema__)(frame, 0)
    response, size = entity_reader(schema)(frame, at)
    if at + size != len(frame):
        raise AssertionError(
            f"{key.message_name} v{version}: {len(frame) - at - size} bytes are left over"
        )
    return header.correlation_id, response


def fetch_values(
    topic: str,
    offsets: Mapping[int, int],
    *,
    partition_bytes: int = 1 << 20,
    max_wait: int = 0,
) -> dict[str, Any]:
    """A Fetch of version 11 of one topic's partitions, each from its offset on."""
    rows = [
        {"partition": number, "fetch_offset": offset, "partition_max_bytes": partition_bytes}
        for number, offset in offsets.items()
    ]
    return {
        "replica_id": -1,
        "max_wait": max_wait,
        "min_bytes": 1,
        "max_bytes": 1 << 20,
        "isolation_level": 0,
        "session_id": 0,
        "session_epoch": -1,
        "rack_id": "",
        "topics": [{"topic": topic, "partitions": rows}],
    }


class WireClient:
    """A connection to one broker; use it as a context manager. A request that is never answered
    (acks=0) goes through `send_unanswered`."""

    def __init__(
        self,
        bootstrap: str,
        *,
        client_id: str = CLIENT_ID,
        timeout_s: float = PATIENCE_S,
        tls: ssl.SSLContext | None = None,
        server_name: str | None = None,
    ) -> None:
        """`server_name` is what TLS asks for; by default the host."""
        self._client_id = client_id
        host, _, port = bootstrap.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=timeout_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None:
            self._socket = tls.wrap_socket(self._socket, server_hostname=server_name or host)
        self._correlation_id = 0
        self._expected: deque[int] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def call(self, key: ApiKey, version: int, /, **values: Any) -> Any:
        """Send a request and wait for its answer."""
        self.send(key, version, **values)
        return self.receive(key, version)

    def send(self, key: ApiKey, version: int, /, **values: Any) -> None:
        self._correlation_id += 1
        self._expected.append(self._correlation_id)
        self.send_frame(encode_request(key, version, self._correlation_id, values, self._client_id))

    def send_unanswered(self, key: ApiKey, version: int, /, **values: Any) -> None:
        self.send(key, version, **values)
        self._expected.pop()

    def expect(self, *correlation_ids: int) -> None:
        """Requests with these ids went through `send_bytes`; `receive` takes their answers."""
        self._expected.extend(correlation_ids)

    def receive(self, key: ApiKey, version: int) -> Any:
        """The answer to the oldest request that has none yet."""
        frame = self.read_frame()
        if frame is None:
            raise ConnectionError(f"closed instead of an answer to {key.message_name} v{version}")
        correlation_id, response = decode_response(key, version, frame)
        expected = self._expected.popleft()
        assert correlation_id == expected, "answers are not in the order of the requests"
        return response

    def send_frame(self, payload: bytes) -> None:
        self.send_bytes(struct.pack(">i", len(payload)) + payload)

    def send_bytes(self, data: bytes) -> None:
        self._socket.sendall(data)

    def has_answer(self) -> bool:
        """Whether bytes of an answer are here."""
        return bool(select.select([self._socket], [], [], 0)[0])

    def read_frame(self) -> bytes | None:
        """The next answer; None where the broker has closed the connection."""
        head = self._read(4)
        return None if head is None else self._read(int.from_bytes(head, "big"))

    def _read(self, count: int) -> bytes | None:
        data = bytearray()
        while len(data) < count:
            try:
                piece = self._socket.recv(count - len(data))
            except ConnectionResetError:
                return None
            if not piece:
                return None
            data += piece
        return bytes(data)


class Keyed(NamedTuple):
    """A record with a key; None for a tombstone."""

    key: bytes
    value: bytes | None


def build_batch(
    records: Sequence[RecordRow],
    *,
    codec: int = 0,
    timestamps: Sequence[int] | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
) -> bytes:
    """A record batch of magic 2, by aiokafka."""
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=int(transactional),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        batch_size=2**30,
    )
    for number, (key, value) in enumerate(records):
        timestamp = timestamps[number] if timestamps else 1_700_000_000_000 + number
        builder.append(number, timestamp=timestamp, key=key, value=value, headers=[])
    return bytes(builder.build())


def transactional_values(
    transactional_id: str,
    pair: tuple[int, int],
    topic: str,
    partition: int,
    value: bytes,
    *,
    sequence: int = 0,
    timeout_ms: int = 20_000,
) -> dict[str, Any]:
    """The fields of a Produce request with one record of a transaction."""
    batch = build_batch(
        [(None, value)],
        producer_id=pair[0],
        producer_epoch=pair[1],
        base_sequence=sequence,
        transactional=True,
    )
    rows = [{"index": partition, "records": batch}]
    return {
        "transactional_id": transactional_id,
        "acks": -1,
        "timeout": timeout_ms,
        "topic_data": [{"name": topic, "partition_data": rows}],
    }


def patch_batch(batch: bytes, position: int, layout: str, value: int, *, crc: bool = True) -> bytes:
    """`batch` with one header field set; with `crc` its checksum is made to hold again."""
    changed = bytearray(batch)
    struct.pack_into(layout, changed, position, value)
    if crc:
        struct.pack_into(">I", changed, 17, crc32c(bytes(changed[21:])))
    return bytes(changed)
