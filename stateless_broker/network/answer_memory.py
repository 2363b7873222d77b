"""The memory of responses, from before their data is read until the kernel has taken them.

Invariants: a large response is built only after its bytes were granted. All responses of a broker
together, and those to one address, are bounded. A cancelled waiter leaves the queue.
"""

import asyncio

from bucketlog.stateless_broker.network.memory_budget import MemoryBudget

SMALL_ANSWER_BYTES = 16 * 1024
"""Smaller responses are not counted, except those of fetches."""


class AnswerLease:
    """The share of the budget that one response to a client at `address` holds."""

    __slots__ = ("_address", "_budget", "held_bytes")

    def __init__(self, budget: MemoryBudget, address: str) -> None:
        self._budget = budget
        self._address = address
        self.held_bytes = 0

    async def acquire(self, size_bytes: int) -> bool:
        """Acquire `size_bytes` more. Returns whether the call had to wait for other responses."""
        if size_bytes <= 0:
            return False
        waiter = object()
        woken = asyncio.Event()
        has_waited = False
        while not self._budget.acquire(
            size_bytes, waiter, woken.set, address=self._address, own_bytes=self.held_bytes
        ):
            has_waited = True
            try:
                await woken.wait()
            except asyncio.CancelledError:
                self._budget.forget(waiter)
                raise
            woken.clear()
        self.held_bytes += size_bytes
        return has_waited

    def settle(self, size_bytes: int) -> None:
        """Correct the lease to the actual size of the response, smaller or larger."""
        if size_bytes > self.held_bytes:
            self._budget.exceed(size_bytes - self.held_bytes, address=self._address)
        else:
            self._budget.release(self.held_bytes - size_bytes, address=self._address)
        self.held_bytes = size_bytes

    def release(self) -> None:
        """Give all bytes back. Safe to call twice."""
        size_bytes, self.held_bytes = self.held_bytes, 0
        self._budget.release(size_bytes, address=self._address)


def uncounted() -> AnswerLease:
    """A lease for a response that no budget bounds."""
    return AnswerLease(MemoryBudget(1 << 62), "")
