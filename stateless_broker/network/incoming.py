"""Assembles the received bytes of one connection into complete requests.

Invariants: a frame's length is checked before memory is allocated. Memory is requested as bytes
arrive: up to `GROWTH` times the received bytes, never the announced size. The kernel receives a
large frame directly into the frame's memory. Bytes that wait for their turn are counted, too: a
connection is closed if its address has too many of them.
"""

import struct
from collections.abc import Callable

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.frames import MalformedRequestError
from bucketlog.stateless_broker.network.exchange import Frame
from bucketlog.stateless_broker.network.memory_budget import MemoryBudget

_LENGTH = struct.Struct(">i")
_LENGTH_AND_API_KEY = struct.Struct(">ih")
_TLS_HANDSHAKE = 0x1603
"""The first two bytes of a TLS client, where Kafka's have a length."""
RECEIVE_BYTES = 64 * 1024
REQUEST_BYTES_MIN = 8
FIRST_BYTES = 4 * 1024
"""The memory that a partly received frame may hold, however few of its bytes have arrived."""
GROWTH = 4
UNCOUNTED_BYTES = 4 * 1024
"""Bytes of waiting requests on one connection that the budget does not count."""


class Incoming:
    """`receive_buffer` has `RECEIVE_BYTES`. All connections of an event loop share it, so no bytes
    stay in it. `wake` is called when `next_frame` may have a frame again."""

    def __init__(
        self,
        *,
        budget: MemoryBudget,
        receive_buffer: memoryview,
        request_bytes_max: int,
        other_request_bytes_max: int,
        wake: Callable[[], None],
    ) -> None:
        self.address = ""
        self.received_bytes = 0
        """Number of bytes received since the connection was opened."""
        self.login_bytes_max: int | None = None
        """Limit of a request before the login; None: the client is known."""
        self.is_waiting_for_room = False
        self._budget = budget
        self._receive_buffer = receive_buffer
        self._request_bytes_max = request_bytes_max
        self._other_request_bytes_max = other_request_bytes_max
        self._wake = wake
        self._left = bytearray()
        self._counted_bytes = 0
        self._frame: Frame | None = None
        self._filled = 0
        self._length = 0

    @property
    def has_frame(self) -> bool:
        """Whether a request is partly received and has a frame."""
        return self._frame is not None

    @property
    def left_bytes(self) -> int:
        """Received bytes that do not belong to a frame yet."""
        return len(self._left)

    @property
    def held_bytes(self) -> int:
        """Bytes of the budget that the current frame holds."""
        return 0 if self._frame is None else self._frame.size_bytes

    @property
    def missing_bytes(self) -> int:
        """Bytes of the current frame that have not arrived."""
        return 0 if self._frame is None else self._length - self._filled

    def buffer(self) -> memoryview:
        """The buffer for the next received bytes; not empty."""
        if self._frame is not None and self._filled < len(self._frame.data):
            return memoryview(self._frame.data)[self._filled :]
        return self._receive_buffer[: max(RECEIVE_BYTES - len(self._left), FIRST_BYTES)]

    def arrived(self, count: int) -> None:
        """Note that `count` bytes were received into `buffer`."""
        self.received_bytes += count
        if self._frame is not None and self._filled < len(self._frame.data):
            self._filled += count
        else:
            self._left += self._receive_buffer[:count]

    def next_frame(self) -> Frame | None:
        """The next complete request; None: bytes or memory are missing. Raises
        `MalformedRequestError`."""
        if self._frame is None and (not self._left or not self._begin()):
            return None
        frame = self._frame
        assert frame is not None
        if self._filled < self._length:
            if self._filled == len(frame.data):
                self._grow(frame)
            return None
        self._frame = None
        return frame

    def _begin(self) -> bool:
        """Allocate the next request's frame, and move its received bytes into the frame."""
        available = len(self._left)
        if available < _LENGTH.size:
            return False
        length, api_key = self._next_length(available)
        if available < _LENGTH_AND_API_KEY.size:
            return False
        here = min(length, available - _LENGTH.size)
        room = min(length, max(FIRST_BYTES, here * GROWTH)) if here < length else length
        is_small = api_key != ApiKey.PRODUCE and length + _LENGTH.size <= RECEIVE_BYTES
        # Small requests other than Produce do not wait behind Produce requests.
        is_taken = is_small and self._budget.take(room, address=self.address)
        if is_taken:
            self.wait_no_more()
        if not is_taken and not self._granted(room, own_bytes=0):
            return False
        end = _LENGTH.size + here
        if here == room:
            data = self._left[_LENGTH.size : end]
        else:
            data = bytearray(room)
            data[:here] = memoryview(self._left)[_LENGTH.size : end]
        del self._left[:end]
        self._frame = Frame(data, self._budget, self.address, is_taken=is_taken)
        self._filled, self._length = here, length
        return True

    def _grow(self, frame: Frame) -> None:
        room = min(self._length, len(frame.data) * GROWTH)
        more = room - len(frame.data)
        if frame.is_taken:
            if not self._budget.take(more, address=self.address):
                raise MalformedRequestError(
                    "its address has too many requests that have begun "
                    "(BUCKETLOG_PRODUCE_BUFFER_ADDRESS_PERCENT_MAX)"
                )
        elif not self._granted(more, own_bytes=frame.size_bytes):
            return
        frame.grow(room)

    def _granted(self, size_bytes: int, *, own_bytes: int) -> bool:
        granted = self._budget.acquire(
            size_bytes, self, self._wake, address=self.address, own_bytes=own_bytes
        )
        self.is_waiting_for_room = not granted
        return granted

    def _next_length(self, available: int) -> tuple[int, int]:
        """The length and the API key (-1: not received yet). Raises `MalformedRequestError`."""
        (length,) = _LENGTH.unpack_from(self._left)
        api_key, longest = -1, self._request_bytes_max
        if available >= _LENGTH_AND_API_KEY.size:
            _, api_key = _LENGTH_AND_API_KEY.unpack_from(self._left)
            if api_key != ApiKey.PRODUCE:
                longest = self._other_request_bytes_max
        before_login = self.login_bytes_max
        if before_login is not None and before_login < longest:
            longest = before_login
        if not REQUEST_BYTES_MIN <= length <= longest:
            if length >> 16 == _TLS_HANDSHAKE:
                raise MalformedRequestError(
                    "its client speaks TLS, but the listener is for plain text "
                    "(BUCKETLOG_LISTENERS)"
                )
            text = f"a request of {length} bytes for api {api_key}; {REQUEST_BYTES_MIN} to "
            text += f"{longest} are accepted"
            if length > longest:
                which = "" if longest == self._request_bytes_max else "OTHER_"
                if longest == before_login:
                    which = "SASL_"
                text += f" (BUCKETLOG_{which}REQUEST_BYTES_MAX)"
            raise MalformedRequestError(text)
        return length, api_key

    def count_left(self) -> None:
        """Count the waiting bytes in the budget. Raises `MalformedRequestError`."""
        counted = len(self._left) if len(self._left) > UNCOUNTED_BYTES else 0
        more = counted - self._counted_bytes
        if more > 0 and not self._budget.take(more, address=self.address):
            raise MalformedRequestError(
                "its address has too many requests that wait for answers "
                "(BUCKETLOG_PRODUCE_BUFFER_ADDRESS_PERCENT_MAX)"
            )
        if more < 0:
            self._budget.release(-more, address=self.address, is_taken=True)
        self._counted_bytes = counted

    def wait_no_more(self) -> None:
        """Leave the budget's queue, where others wait behind this connection; ask again later."""
        if self.is_waiting_for_room:
            self.is_waiting_for_room = False
            self._budget.forget(self)

    def pay_as(self, address: str) -> None:
        """Hold memory for this address from now on, between two requests."""
        self._budget.release(self._counted_bytes, address=self.address, is_taken=True)
        self._counted_bytes = 0
        self.wait_no_more()
        self.address = address

    def drop(self) -> None:
        """The connection is closed: return all memory, and forget the connection, so that no
        reference cycle remains."""
        self._budget.forget(self)
        self._wake = _nothing
        self.is_waiting_for_room = False
        self._left = bytearray()
        self.count_left()
        if self._frame is not None:
            self._frame.release()
            self._frame = None


def _nothing() -> None:
    """Wakes nobody."""
