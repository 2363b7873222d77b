"""A received request, and the place of its response in the order of a connection.

Invariants: a frame gives its bytes back to the budget once. A response is sent through the
connection of its request, and the connection keeps the order. A change is settled with its
response; a Produce without a response (acks=0), when its batches are settled.
"""

from collections.abc import Sequence
from typing import Protocol

from kio.schema.errors import ErrorCode

from bucketlog.log_format.model import Buffer
from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.stateless_broker.network.answer_memory import AnswerLease
from bucketlog.stateless_broker.network.memory_budget import MemoryBudget


class Frame:
    """A received request, without its length prefix. The last user of `data` calls `release`."""

    __slots__ = ("_address", "_budget", "data", "is_taken", "size_bytes")

    def __init__(
        self, data: bytearray, budget: MemoryBudget, address: str = "", *, is_taken: bool = False
    ) -> None:
        """The bytes were acquired from `budget` for `address`, or taken if `is_taken`."""
        self.data = data
        self.size_bytes = len(data)
        self.is_taken = is_taken
        self._address = address
        self._budget = budget

    def grow(self, size_bytes: int) -> None:
        """Grow `data` to `size_bytes`, which the budget has already granted."""
        grown = bytearray(size_bytes)
        grown[: len(self.data)] = self.data
        self.data, self.size_bytes = grown, size_bytes

    def release(self) -> None:
        """Give the bytes back to the budget; safe to call twice."""
        size_bytes, self.size_bytes = self.size_bytes, 0
        self._budget.release(size_bytes, address=self._address, is_taken=self.is_taken)


class WaitHandle(Protocol):
    """A request that waits for changes."""

    def look(self) -> None: ...

    def drop(self) -> None: ...


class UnsettledChanges:
    """The changes of one connection that are under way: their numbers by API key."""

    __slots__ = ("by_api", "waiting")

    def __init__(self) -> None:
        self.by_api: dict[int, int] = {}
        self.waiting: WaitHandle | None = None

    def begin(self, api_key: int) -> None:
        self.by_api[api_key] = self.by_api.get(api_key, 0) + 1

    def settle(self, api_key: int) -> None:
        left = self.by_api.pop(api_key) - 1
        if left:
            self.by_api[api_key] = left
        elif self.waiting is not None:
            self.waiting.look()

    def drop(self) -> None:
        """The connection is closed: nothing begins any more."""
        waiting, self.waiting = self.waiting, None
        if waiting is not None:
            waiting.drop()


class AnswerOrder(Protocol):
    """The part of a connection that its responses use."""

    @property
    def changes(self) -> UnsettledChanges: ...

    @property
    def is_gone(self) -> bool: ...

    @property
    def muted_ms(self) -> int: ...

    def flush_answers(self) -> None: ...

    def queue_large_answer(self) -> None:
        """Watch the connection: its client may not read the response."""

    def hold(self, answer: "ResponseSlot | None") -> None: ...

    def end(self, reason: str) -> None: ...


class ResponseSlot:
    """The place of one response in the order of a connection."""

    __slots__ = (
        "_connection",
        "_is_unsettled",
        "api_key",
        "client_id",
        "correlation_id",
        "errors",
        "lease",
        "may_wait_s",
        "parts",
        "request_bytes",
        "taken_s",
    )

    def __init__(
        self, connection: AnswerOrder, *, api_key: int, request_bytes: int, taken_s: float
    ) -> None:
        self._connection = connection
        self.api_key = api_key
        self.request_bytes = request_bytes
        self.taken_s = taken_s
        """Time when the request was complete. It is not the loop's clock, which is fixed in an
        iteration."""
        self._is_unsettled = False
        self.correlation_id = 0
        self.client_id = ""
        self.may_wait_s = 0.0
        """The wait that the client asked for, as in a fetch's max wait."""
        self.errors: Sequence[ErrorCode] = ()  # only the errors that metrics count
        self.parts: Sequence[Buffer] | None = None
        self.lease: AnswerLease | None = None
        """The memory of the response, given back when the kernel has taken the response."""

    @property
    def is_not_produce(self) -> bool:
        """Whether this is a request other than Produce."""
        return self.api_key != ApiKey.PRODUCE

    @property
    def throttle_ms(self) -> int:
        """Time in which the broker will take no request of the connection. The response contains
        it."""
        return self._connection.muted_ms

    def begin_change(self) -> None:
        """Later requests may wait until this one is settled."""
        self._is_unsettled = True
        self._connection.changes.begin(self.api_key)

    def send(self, parts: Sequence[Buffer], *, is_settled: bool = True) -> None:
        """Send the complete response, without its length; empty for no response (acks=0). If the
        change is not settled yet, it is settled by another call."""
        self.parts = parts
        if is_settled and self._is_unsettled:
            self._is_unsettled = False
            self._connection.changes.settle(self.api_key)
        if self._connection.is_gone:
            self.give_back()
        elif self.lease is not None:
            self._connection.queue_large_answer()
        self._connection.flush_answers()

    def give_back(self) -> None:
        """Give the response's memory back."""
        if self.lease is not None:
            self.lease.release()

    def hold_back_later_requests(self) -> None:
        """Take no further request of this connection before this one is answered. One reason is a
        large response: a client must not make the broker build many at once. The other is a long
        request: later requests must not overtake it while it is decoded."""
        self._connection.hold(self)

    def let_later_requests_in(self) -> None:
        """Undo `hold_back_later_requests`."""
        self._connection.hold(None)

    def close(self, reason: str) -> None:
        """Close the connection without a response, as Kafka does for an invalid request."""
        self._connection.end(reason)
