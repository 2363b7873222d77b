"""The part of a fetch session that a request examines.

Invariant: the plan has the pending partitions of the session and those that change while the
request waits, and no others.
"""

from collections.abc import Awaitable, Callable, Iterable

from bucketlog.log_format.wire import fetch
from bucketlog.stateless_broker.fetch.fetch_session import FetchSession, SessionPartition
from bucketlog.stateless_broker.handlers.fetch_plan import PlannedPartitions


class SessionPlan:
    """`epoch` is what `session.advance` returned for the request. `look_up` plans the wanted
    partitions that are not planned yet."""

    def __init__(
        self,
        session: FetchSession,
        epoch: int,
        look_up: Callable[[PlannedPartitions], Awaitable[None]],
        *,
        committed_only: bool,
    ) -> None:
        self._session = session
        self._epoch = epoch
        self._look_up = look_up
        self.planned = PlannedPartitions(fetch.FetchPartitions(), committed_only=committed_only)
        self.parts: list[SessionPartition] = []
        """Partitions of the session, by row of the plan."""
        self._rows: dict[int, int] = {}
        """The rows of the plan, by the rows of the session."""

    @property
    def is_over(self) -> bool:
        """Whether a later request of the session has come, or the session was closed."""
        return self._session.epoch != self._epoch

    @property
    def is_due(self) -> bool:
        if self.is_over or self.planned.has_failed_reads:
            return True
        return len(self.parts) == len(self._session) and not self.planned.has_logs

    @property
    def is_in_order(self) -> bool:
        """Whether the partitions are in the order of a response."""
        places = [part.place for part in self.parts]
        return places == sorted(places)

    async def extend(self, rows: Iterable[int]) -> list[int]:
        """Plan the partitions in these rows of the session. Returns their rows of the plan."""
        parts = self._session.in_order(rows)
        for part in parts:
            if part.row not in self._rows:
                self._rows[part.row] = len(self.parts)
                self.parts.append(part)
                self.planned.wanted.append(part.wanted)
        await self._look_up(self.planned)
        return [self._rows[part.row] for part in parts]

    async def next_rows(self, wait_s: float) -> Iterable[int] | None:
        """Wait for the next rows, as `GrowingPlan.next_rows` does."""
        if self.is_over:  # a pause before the wait may have been long
            return None
        if not await self._session.changes.wait(wait_s) or self.is_over:
            return None
        changed = self._session.changes.take()
        self._session.pending |= changed
        rows = await self.extend(changed)
        return None if self._session.has_deleted(changed) else rows
