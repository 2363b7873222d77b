"""The deadlines of members, by kind. Pure."""

from enum import StrEnum


class Timer(StrEnum):
    """Deadlines of a member. `SESSION`: the member must be heard of. `REBALANCE`: it must have
    revoked its partitions. `JOIN`, `SYNC`: a member of the classic protocol must send that
    request."""

    SESSION = "session"
    REBALANCE = "rebalance"
    JOIN = "join"
    SYNC = "sync"


class Timers:
    def __init__(self) -> None:
        self._deadlines_ms: dict[tuple[str, Timer], int] = {}

    @property
    def next_ms(self) -> int | None:
        return min(self._deadlines_ms.values(), default=None)

    def set(self, member_id: str, timer: Timer, deadline_ms: int) -> None:
        self._deadlines_ms[member_id, timer] = deadline_ms

    def set_if_absent(self, member_id: str, timer: Timer, deadline_ms: int) -> None:
        self._deadlines_ms.setdefault((member_id, timer), deadline_ms)

    def cancel(self, member_id: str, *timers: Timer) -> None:
        """Cancel these timers of the member, or all of them if none is named."""
        for timer in timers or Timer:
            self._deadlines_ms.pop((member_id, timer), None)

    def clear(self) -> None:
        self._deadlines_ms.clear()

    def due(self, now_ms: int) -> list[str]:
        """The members that have missed a deadline, each once, the earliest first."""
        late = sorted(
            (deadline_ms, member_id)
            for (member_id, _), deadline_ms in self._deadlines_ms.items()
            if deadline_ms <= now_ms
        )
        return list(dict.fromkeys(member_id for _, member_id in late))
