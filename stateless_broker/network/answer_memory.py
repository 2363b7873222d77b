"""The memory of answers, from before they are read until the kernel has taken them.

Invariants: a large answer is made only after its bytes were granted; all answers of a broker
together, and those to one address, are bounded; whoever waits for room and goes leaves its place.
"""

import asyncio

from bucketlog.stateless_broker.network.memory_budget import MemoryBudget

SMALL_ANSWER_BYTES = 16 * 1024
"""Smaller answers are not counted, but for a fetch's."""


class AnswerLease:
    """What one answer to a client at `address` holds of the budget."""

    __slots__ = ("_address", "_budget", "held_bytes")

    def __init__(self, budget: MemoryBudget, address: str) -> None:
        self._budget = budget
        self._address = address
        self.held_bytes = 0

    async def acquire(self, size_bytes: int) -> bool:
        """Take so many bytes more. Whether others had to give theirs back first."""
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
        """The answer has so many bytes: less than was thought, or more."""
        if size_bytes > self.held_bytes:
            self._budget.exceed(size_bytes - self.held_bytes, address=self._address)
        else:
            self._budget.release(self.held_bytes - size_bytes, address=self._address)
        self.held_bytes = size_bytes

    def release(self) -> None:
        """Safe to call twice."""
        size_bytes, self.held_bytes = self.held_bytes, 0
        self._budget.release(size_bytes, address=self._address)


def uncounted() -> AnswerLease:
    """For an answer that no budget bounds."""
    return AnswerLease(MemoryBudget(1 << 62), "")
