"""The thread of an `AsyncProducer`, which serves librdkafka's delivery reports.

Invariants: the thread sleeps while no record is on its way. It wakes waiters in the event loop once
for each round of reports, not once for each record.
"""

import asyncio
import threading
from collections.abc import Callable, Sized
from typing import TypeAlias

from bucketlog.client.sending import Outbox

Waiter: TypeAlias = asyncio.Future[None]

_POLL_S = 0.1
_IDLE_S = 1.0


class ReportThread:
    """The thread that serves librdkafka's delivery reports."""

    def __init__(
        self,
        outbox: Outbox,
        loop: asyncio.AbstractEventLoop,
        line: Sized,
        advance: Callable[[], None],
    ) -> None:
        self.woken: list[Waiter] = []
        """Waiters that reports of this round wake. Only the thread adds to this list."""
        self._rounds: list[Waiter] = []
        self._outbox = outbox
        self._kafka = outbox.kafka
        self._loop = loop
        self._line = line
        self._advance = advance
        self._resuming = False
        """The loop was notified, and has not handled the notification yet."""
        self._news = threading.Event()
        self._hurried = 0
        self._stopped = False
        threading.Thread(target=self._run, daemon=True, name="bucketlog reports").start()

    def wake(self) -> None:
        """Wake the thread, because something was queued."""
        if not self._news.is_set():
            self._news.set()

    def stop(self) -> None:
        self._stopped = True
        self._news.set()

    async def round(self) -> None:
        """Wait until the thread has served the reports that are there."""
        waiter: Waiter = self._loop.create_future()
        self._rounds.append(waiter)
        self.wake()
        await waiter

    async def until_empty(self, look: Callable[[], None] = lambda: None) -> None:
        self._hurried += 1
        try:
            while len(self._kafka) or self._line:
                look()
                await self.round()
            await self.round()  # the last report may be on its way still
        finally:
            self._hurried -= 1

    def _run(self) -> None:
        kafka = self._kafka
        while not self._stopped:
            self._news.clear()
            if not len(kafka) and not self._is_loop_wanted([]) and not self._stopped:
                self._news.wait(_IDLE_S)
            wait_s = _POLL_S if len(kafka) else 0.0
            if self._hurried:
                self._outbox.flush(wait_s)
            else:
                self._outbox.poll(wait_s)
            if not self._hand_over():
                break
        self._outbox.close()
        self._hand_over()

    def _hand_over(self) -> bool:
        """Notify the loop, if it has work. Returns False if the loop is closed."""
        woken, self.woken = self.woken, []
        try:
            if self._is_loop_wanted(woken):
                rounds, self._rounds = self._rounds, []
                self._resuming = True
                self._loop.call_soon_threadsafe(self._resume, woken, rounds)
        except RuntimeError:
            return False
        return True

    def _is_loop_wanted(self, woken: list[Waiter]) -> bool:
        return bool(woken or self._rounds or (self._line and not self._resuming))

    def _resume(self, woken: list[Waiter], rounds: list[Waiter]) -> None:
        self._resuming = False
        self._advance()
        self.wake()
        for waiters in (woken, rounds):
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)
