"""Records that a group member has returned to its caller: in progress, done, not committed."""

from collections.abc import Collection

from bucketlog.client.sources import Part
from bucketlog.log_format.errors import ConfigurationError

UNBOUNDED = 1 << 62


class HandedOut:
    """Offsets by partition. `keeps_first`: remember the first offset that is not committed."""

    def __init__(self, *, keeps_first: bool) -> None:
        self.has_lost_records = False
        """Whether the member has lost partitions whose returned records were not committed.
        `settle` resets it."""
        self.transactional_id: str | None = None
        """The id of the open transaction that commits the offsets; None if there is none."""
        self.epoch = 0
        """Number of times that partitions were sought or lost."""
        self._keeps_first = keeps_first
        self._handed: dict[Part, int] = {}
        """The offset after the last record that the caller may still be processing."""
        self._done: dict[Part, int] = {}
        """The offset after the last processed record, if not yet stored in librdkafka."""
        self._first: dict[Part, int] = {}
        """The first offset that is not committed."""
        self._sought: set[Part] = set()
        """Partitions whose position after a seek is not stored in librdkafka yet."""

    @property
    def room(self) -> int:
        """Number of records that may be returned now."""
        return UNBOUNDED

    def wait_for_room(self, timeout_s: float) -> None:
        """Return once there is room, or after the timeout."""

    def pass_over(self, partition: Part, offset: int) -> None:
        """Note that the caller does not get this record."""

    @property
    def has_open(self) -> bool:
        """Whether the caller has records that do not count as processed yet."""
        return bool(self._handed)

    def note(self, partition: Part, offset: int) -> None:
        """Note that the caller gets this record."""
        self._handed[partition] = offset + 1
        if self._keeps_first:
            self._first.setdefault(partition, offset)

    def finish(self) -> None:
        """Note that the caller has processed all records that it got."""
        self._done.update(self._handed)
        self._handed.clear()

    def check_no_transaction(self) -> None:
        """Raise `ConfigurationError` if an open transaction commits the offsets."""
        if self.transactional_id is not None:
            raise ConfigurationError(
                f"transaction {self.transactional_id!r} is open, and commits its offsets",
                remedy="remove commit(): the end of the block commits the offsets",
            )

    def take_done(self) -> dict[Part, int]:
        """Return the offsets after the processed records, and count them as stored."""
        done, self._done = self._done, {}
        return done

    def take_sought(self, stored: Collection[Part]) -> set[Part]:
        """Which of the stored partitions were sought: their offsets may be lower than those that
        are committed."""
        sought = self._sought.intersection(stored)
        self._sought -= sought
        return sought

    def seek(self, partition: Part, offset: int, undone_at: int | None) -> None:
        """Reading continues at `offset`. The caller is done with the records before it when it is
        done with those that it got. `undone_at`: where an abort of the open transaction continues;
        None without a transaction."""
        self._handed[partition] = offset
        self._sought.add(partition)
        if self._keeps_first:
            if undone_at is None:
                self._first[partition] = offset
            else:
                self._first.setdefault(partition, undone_at)

    def next_offsets(self) -> dict[Part, int]:
        """The offsets after all returned records that are not settled."""
        return {**self._done, **self._handed}

    def settle(self) -> dict[Part, int]:
        """Forget all records: they are committed, or are read again from the returned offsets."""
        first, self._first = self._first, {}
        self._handed.clear()
        self._done.clear()
        self._sought.clear()
        self.has_lost_records = False
        return first

    def drop(self, gone: Collection[Part]) -> None:
        """Forget partitions that have moved to another member."""
        self.epoch += 1
        self.has_lost_records |= not self._first.keys().isdisjoint(gone)
        self._sought.difference_update(gone)
        for name in gone:
            for account in (self._handed, self._done, self._first):
                account.pop(name, None)
