"""What a member of a group has handed out, by partition: being worked on, done, not committed."""

from collections.abc import Collection


class HandedOut:
    """Offsets by partition. `keeps_first`: remember where what is not committed begins."""

    def __init__(self, *, keeps_first: bool) -> None:
        self.has_lost_records = False
        """Whether partitions went to another member while the caller had records of them that were
        not committed; `settle` clears this."""
        self._keeps_first = keeps_first
        self._handed: dict[int, int] = {}
        """The next offset after what the caller has and may not be done with."""
        self._done: dict[int, int] = {}
        """The same after what the caller is done with and librdkafka was not told yet."""
        self._first: dict[int, int] = {}
        """The first offset that is not committed."""

    def note(self, partition: int, offset: int) -> None:
        """The caller is given this record."""
        self._handed[partition] = offset + 1
        if self._keeps_first:
            self._first.setdefault(partition, offset)

    def finish(self) -> None:
        """The caller is done with all that it was given."""
        self._done.update(self._handed)
        self._handed.clear()

    def take_done(self) -> dict[int, int]:
        """The next offset after what is done; this counts as told from now on."""
        done, self._done = self._done, {}
        return done

    def next_offsets(self) -> dict[int, int]:
        """The next offset after all that was handed out and is not settled."""
        return {**self._done, **self._handed}

    def settle(self) -> dict[int, int]:
        """All is committed, or is to be read again: from these offsets on."""
        first, self._first = self._first, {}
        self._handed.clear()
        self._done.clear()
        self.has_lost_records = False
        return first

    def drop(self, gone: Collection[int]) -> None:
        """These partitions are another member's now."""
        self.has_lost_records |= not self._first.keys().isdisjoint(gone)
        for name in gone:
            for account in (self._handed, self._done, self._first):
                account.pop(name, None)
