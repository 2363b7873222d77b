"""Records of a group member that are acknowledged one by one, in any order, from any thread.

Invariant: an offset is committed only if every record before it that was returned is acknowledged,
or was passed over, or the caller has sought beyond it. A record that was returned before its
partition was sought or lost is never acknowledged, even if its offset was returned again. `room`
bounds the records in flight, so memory stays bounded whatever the callers do.
"""

import threading
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field

from bucketlog.client.handed_out import HandedOut
from bucketlog.client.sources import Part

LATEST_EPOCH = 1 << 62


@dataclass(slots=True)
class _InFlight:
    """The returned records of one partition, from the first unacknowledged one on."""

    since: int
    """The epoch from which on records of the partition are acknowledged."""
    order: deque[int] = field(default_factory=deque)
    open: set[int] = field(default_factory=set)
    """Offsets of records that are not acknowledged."""
    committable: int | None = None
    """The offset after the last record that is acknowledged together with all before it, if it is
    not stored in librdkafka yet."""

    def advance(self) -> None:
        while self.order and self.order[0] not in self.open:
            self.committable = self.order.popleft() + 1


class Acknowledged(HandedOut):
    """`records_max`: how many records may be in flight."""

    def __init__(self, records_max: int) -> None:
        super().__init__(keeps_first=False)
        self._records_max = records_max
        self._partitions: dict[Part, _InFlight] = {}
        self._changed = threading.Condition()
        self._open = 0
        self._passed: set[tuple[Part, int]] = set()
        self._since: dict[Part, int] = {}
        """The epoch in which each partition was last sought or lost."""

    @property
    def has_open(self) -> bool:
        """Records count as processed when they are acknowledged, not by the next call."""
        return False

    @property
    def room(self) -> int:
        """Number of records that may be returned now."""
        return max(0, self._records_max - self._open)

    def note(self, partition: Part, offset: int) -> None:
        with self._changed:
            mine = self._partitions.get(partition)
            if mine is None:
                mine = self._partitions[partition] = _InFlight(self._since.get(partition, 0))
            mine.order.append(offset)
            if (partition, offset) in self._passed:
                self._passed.discard((partition, offset))
                mine.advance()
            else:
                mine.open.add(offset)
                self._open += 1

    def pass_over(self, partition: Part, offset: int) -> None:
        """Skip a record that nobody gets, so nobody acknowledges it."""
        with self._changed:
            self._passed.add((partition, offset))

    def acknowledge(self, partition: Part, offset: int, epoch: int = LATEST_EPOCH) -> bool:
        """Note that a record of this epoch is processed. False: it is not in flight, because it was
        acknowledged before, or because the partition was sought or has moved to another member."""
        with self._changed:
            mine = self._partitions.get(partition)
            if mine is None or epoch < mine.since or offset not in mine.open:
                return False
            mine.open.remove(offset)
            self._open -= 1
            mine.advance()
            self._changed.notify_all()
            return True

    def is_in_flight(self, partition: Part, offset: int, epoch: int = LATEST_EPOCH) -> bool:
        """Whether this record of this epoch was returned and is not acknowledged."""
        with self._changed:
            mine = self._partitions.get(partition)
            return mine is not None and epoch >= mine.since and offset in mine.open

    def wait_for_room(self, timeout_s: float) -> None:
        """Return once there is room, or after the timeout."""
        with self._changed:
            self._changed.wait_for(lambda: self.room > 0, timeout_s)

    def wait_until_acknowledged(self, partitions: Collection[Part], timeout_s: float) -> None:
        """Return once all returned records of the partitions are acknowledged, or after the
        timeout."""

        def all_are() -> bool:
            found = (self._partitions.get(partition) for partition in partitions)
            return not any(mine.open for mine in found if mine is not None)

        with self._changed:
            self._changed.wait_for(all_are, timeout_s)

    def finish(self) -> None:
        """The next call says nothing about earlier records."""

    def settle(self) -> dict[Part, int]:
        """What is in flight stays in flight."""
        return {}

    def take_done(self) -> dict[Part, int]:
        with self._changed:
            done = {}
            for partition, mine in self._partitions.items():
                if mine.committable is not None:
                    done[partition], mine.committable = mine.committable, None
            return done

    def seek(self, partition: Part, offset: int, undone_at: int | None) -> None:
        """Records before `offset` need no acknowledgement any more."""
        self.drop({partition})
        with self._changed:
            self._partitions[partition] = _InFlight(self.epoch, committable=offset)
            self._sought.add(partition)

    def drop(self, gone: Collection[Part]) -> None:
        with self._changed:
            self.epoch += 1
            self._sought.difference_update(gone)
            for partition in gone:
                self._since[partition] = self.epoch
                mine = self._partitions.pop(partition, None)
                if mine is not None:
                    self._open -= len(mine.open)
            self._passed = {spot for spot in self._passed if spot[0] not in gone}
            self._changed.notify_all()
