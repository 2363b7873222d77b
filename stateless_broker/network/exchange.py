"""A request as received, and the place of its answer in a connection's order.

Invariants: a frame gives its bytes back to the budget once; an answer is sent through the
connection that the request came from, which keeps the order.
"""

from collections.abc import Sequence
from typing import Protocol

from kio.schema.errors import ErrorCode

from bucketlog.log_format.model import Buffer
from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.stateless_broker.network.answer_memory import AnswerLease
from bucketlog.stateless_broker.network.memory_budget import MemoryBudget


class Frame:
    """A request as received, without its length. Whoever is done with `data` calls `release`."""

    __slots__ = ("_address", "_budget", "data", "is_taken", "size_bytes")

    def __init__(
        self, data: bytearray, budget: MemoryBudget, address: str = "", *, is_taken: bool = False
    ) -> None:
        """The bytes were acquired for `address`; taken, where `is_taken`."""
        self.data = data
        self.size_bytes = len(data)
        self.is_taken = is_taken
        self._address = address
        self._budget = budget

    def grow(self, size_bytes: int) -> None:
        """To so many bytes, which are granted."""
        grown = bytearray(size_bytes)
        grown[: len(self.data)] = self.data
        self.data, self.size_bytes = grown, size_bytes

    def release(self) -> None:
        """Give the bytes back to the budget; safe to call twice."""
        size_bytes, self.size_bytes = self.size_bytes, 0
        self._budget.release(size_bytes, address=self._address, is_taken=self.is_taken)


class AnswerOrder(Protocol):
    """The connection, as its answers see it."""

    @property
    def is_gone(self) -> bool: ...

    def flush_answers(self) -> None: ...

    def hold(self, answer: "ResponseSlot") -> None: ...

    def end(self, reason: str) -> None: ...


class ResponseSlot:
    """A place in the order of a connection's answers."""

    __slots__ = (
        "_connection",
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
        """When it was here. Not by the event loop's clock, which stands still within a round."""
        self.correlation_id = 0
        self.client_id = ""
        self.may_wait_s = 0.0
        """So long it may wait because the client wants it to."""
        self.errors: Sequence[ErrorCode] = ()  # as far as they are counted
        self.parts: Sequence[Buffer] | None = None
        self.lease: AnswerLease | None = None
        """The memory of the answer, which it gives back when the kernel has taken it."""

    @property
    def is_not_produce(self) -> bool:
        """Whether this is a request other than Produce."""
        return self.api_key != ApiKey.PRODUCE

    def send(self, parts: Sequence[Buffer]) -> None:
        """The whole response, without its length; empty where there is none to send (acks=0)."""
        self.parts = parts
        if self._connection.is_gone:
            self.give_back()
        self._connection.flush_answers()

    def give_back(self) -> None:
        """The answer's memory."""
        if self.lease is not None:
            self.lease.release()

    def hold_back_later_requests(self) -> None:
        """Take no further request of this connection before this one is answered: its answer is
        large, and a client may not have many of them made at once."""
        self._connection.hold(self)

    def close(self, reason: str) -> None:
        """No answer: the connection ends, as Kafka's does on a request it cannot take."""
        self._connection.end(reason)
