"""Judges a broker's answers to the bytes that were sent.

Rules: answers come in the order of the requests, each with the correlation id of its request. kio
decodes each answer to its last byte, by the schema of its API and version. No answer has
UNKNOWN_SERVER_ERROR. Only requests that demand no answer (Produce with acks=0) may have none.
"""

import struct
from collections import OrderedDict
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

from kio.schema.errors import ErrorCode
from kio.serial.errors import OutOfBoundValue, SerialError

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.served_versions import SERVED_VERSIONS
from tests.fuzz.requests import WAITING_APIS, Frame
from tests.rigs.wire_client import decode_response

KNOWN_ANSWERS = 20_000
"""Judged answers are remembered, because many differ only in the correlation id."""
SERVER_ERROR = struct.pack(">h", ErrorCode.unknown_server_error)
NOT_BEGUN = struct.pack(">q", -1)
"""The start time that Kafka returns for a transaction that has not begun."""
HEADER = struct.Struct(">hhi")


class FuzzFailureError(AssertionError):
    """The broker broke a rule. `frame` is the request that seems to be the cause, if known."""

    def __init__(self, text: str, frame: Frame | None = None) -> None:
        super().__init__(text)
        self.frame = frame


class Sent(NamedTuple):
    """A request, as the broker reads it from the stream."""

    key: ApiKey | None
    version: int
    correlation_id: int

    @property
    def may_wait(self) -> bool:
        return self.key in WAITING_APIS


def sent_in(stream: bytes) -> tuple[list[Sent], bool]:
    """The requests in the sent bytes, and whether the last request is complete."""
    found: list[Sent] = []
    at = 0
    while len(stream) - at >= 4:
        (length,) = struct.unpack_from(">i", stream, at)
        if length < HEADER.size or len(stream) - at - 4 < length:
            return found, False
        number, version, correlation_id = HEADER.unpack_from(stream, at + 4)
        key = ApiKey(number) if number in SERVED_VERSIONS else None
        found.append(Sent(key, version, correlation_id))
        at += 4 + length
    return found, at == len(stream)


def has_server_error(answer: Any) -> bool:
    if answer is ErrorCode.unknown_server_error:
        return True
    if isinstance(answer, tuple):
        return any(has_server_error(item) for item in answer)
    if is_dataclass(answer):
        return any(has_server_error(getattr(answer, field.name)) for field in fields(answer))
    return False


class Judge:
    def __init__(self) -> None:
        self.answers = 0
        self.errors = 0
        """Answers with an error code, at any level; counted when judged for the first time."""
        self._known: OrderedDict[tuple[ApiKey, int, bytes], None] = OrderedDict()

    def match(self, expected: list[Sent], answer: bytes, frame: Frame) -> Sent:
        """Remove the request of `answer`, and those before, from `expected`, and return it."""
        (correlation_id,) = struct.unpack_from(">i", answer)
        while expected:
            sent = expected.pop(0)
            if sent.correlation_id == correlation_id:
                self.check(sent, answer, frame)
                return sent
            if sent.key is not ApiKey.PRODUCE:
                raise FuzzFailureError(f"correlation id {correlation_id} answers {sent}", frame)
        raise FuzzFailureError(f"correlation id {correlation_id} answers no request", frame)

    def check(self, sent: Sent, answer: bytes, frame: Frame) -> None:
        if sent.key is None:
            raise FuzzFailureError(f"an unknown API was answered: {sent}", frame)
        version = sent.version
        if version not in SERVED_VERSIONS[sent.key].each():
            if sent.key is not ApiKey.API_VERSIONS:
                raise FuzzFailureError(f"a version that is not served was answered: {sent}", frame)
            version = 0
        self.answers += 1
        known = (sent.key, version, answer[4:])
        if known in self._known:
            return
        self.decoded(sent.key, version, answer, frame)
        self._known[known] = None
        if len(self._known) > KNOWN_ANSWERS:
            self._known.popitem(last=False)

    def decoded(self, key: ApiKey, version: int, answer: bytes, frame: Frame) -> Any:
        try:
            _, message = decode_response(key, version, answer)
        except OutOfBoundValue as error:
            if key is ApiKey.DESCRIBE_TRANSACTIONS and NOT_BEGUN in answer:
                return None  # kio cannot read the time
            text = f"the answer to {key.message_name} v{version} has a wrong value: {error!r}: "
            raise FuzzFailureError(text + answer[:200].hex(), frame) from error
        except (SerialError, AssertionError, ValueError, struct.error) as error:
            text = f"the answer to {key.message_name} v{version} cannot be decoded: {error!r}: "
            raise FuzzFailureError(text + answer[:200].hex(), frame) from error
        if SERVER_ERROR in answer and has_server_error(message):
            text = f"UNKNOWN_SERVER_ERROR for {key.message_name} v{version}: {message}"
            raise FuzzFailureError(text[:2000], frame)
        return message
