"""Records that a group member has returned to its caller: in progress, done, not committed."""

from collections.abc import Collection

from bucketlog.log_format.errors import ConfigurationError


class HandedOut:
    """Offsets by partition. `keeps_first`: remember the first offset that is not committed."""

    def __init__(self, *, keeps_first: bool) -> None:
        self.has_lost_records = False
        """Whether the member has lost partitions whose returned records were not committed.
        `settle` resets it."""
        self.transactional_id: str | None = None
        """The id of the open transaction that commits the offsets; None if there is none."""
        self._keeps_first = keeps_first
        self._handed: dict[int, int] = {}
        """The offset after the last record that the caller may still be processing."""
        self._done: dict[int, int] = {}
        """The offset after the last processed record, if not yet stored in librdkafka."""
        self._first: dict[int, int] = {}
        """The first offset that is not committed."""

    def note(self, partition: int, offset: int) -> None:
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

    def take_done(self) -> dict[int, int]:
        """Return the offsets after the processed records, and count them as stored."""
        done, self._done = self._done, {}
        return done

    def next_offsets(self) -> dict[int, int]:
        """The offsets after all returned records that are not settled."""
        return {**self._done, **self._handed}

    def settle(self) -> dict[int, int]:
        """Forget all records: they are committed, or are read again from the returned offsets."""
        first, self._first = self._first, {}
        self._handed.clear()
        self._done.clear()
        self.has_lost_records = False
        return first

    def drop(self, gone: Collection[int]) -> None:
        """Forget partitions that have moved to another member."""
        self.has_lost_records |= not self._first.keys().isdisjoint(gone)
        for name in gone:
            for account in (self._handed, self._done, self._first):
                account.pop(name, None)
