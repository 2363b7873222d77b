"""The sequencer's rules once more, in the plainest form: one list of reservations.

Written from the commit protocol ("Produce", "Words", "Control entries"), not from the scripts: it
keeps no derived state but `next`, and finds everything else by walking the whole history.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from bucketlog.log_format.model import TopicId, WriterId
from bucketlog.metadata.sequencer.requests import (
    BatchAnswer,
    BatchStatus,
    FactStatus,
    WantedBatch,
    WantedFact,
    WantedGroupEntry,
    WantedSecurityEntry,
    WantedShareEntry,
    WantedTierEntry,
    WantedTopicChange,
)
from bucketlog.metadata.sequencer.stored_groups import GroupTakeover

SEQUENCES = 2**31
DUPLICATES_KEPT = 5
PENDING, DECIDED, VISIBLE, VOID = "pending", "decided", "visible", "void"

Place = tuple[str, TopicId, int]
"""Topic name, topic id, partition."""


class Written(NamedTuple):
    topic_id: TopicId
    partition: int
    base: int
    batch: WantedBatch


@dataclass
class Entry:
    """One reservation."""

    ticket: int
    writer: WriterId
    state: str = PENDING
    batches: list[Written] = field(default_factory=list)
    control: list[WantedTopicChange] = field(default_factory=list)
    groups: set[str] = field(default_factory=set)
    tiers: bool = False
    security: bool = False
    shares: bool = False
    names: set[str] = field(default_factory=set)
    needs: set[int] = field(default_factory=set)
    low_ticket: int = -1
    stamps: list[int] = field(default_factory=list)

    @property
    def is_open(self) -> bool:
        return self.state in (PENDING, DECIDED)


class Answers(NamedTuple):
    batches: list[list[BatchAnswer]]
    control: list[FactStatus]


class SequencerModel:
    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.shown: list[int] = []
        self.next: dict[tuple[TopicId, int], int] = {}
        self.terms: dict[str, int] = {}
        """Who coordinates a group: the term of its last taking, none once it is forgotten."""
        self.takings = 0

    def _live(self, draft: Entry | None = None) -> Iterator[Entry]:
        yield from (entry for entry in self.entries if entry.state != VOID)
        if draft is not None:
            yield draft

    def pending(self, writer: WriterId) -> list[Entry]:
        return [e for e in self.entries if e.writer == writer and e.state == PENDING]

    def _topic(self, name: str, draft: Entry) -> tuple[Entry, WantedTopicChange] | None:
        """The last entry of the topic's key."""
        found = [(e, c) for e in self._live(draft) for c in e.control if c.topic_name == name]
        return found[-1] if found else None

    def partitions(self, topic_id: TopicId) -> int:
        """As far as it is visible; 0 of a deleted topic."""
        found = [
            change.partitions
            for ticket in self.shown
            for change in self.entries[ticket].control
            if change.topic_id == topic_id
        ]
        return found[-1] if found else 0

    def rows(
        self, producer: str, topic_id: TopicId, partition: int, draft: Entry | None = None
    ) -> list[tuple[Entry, Written]]:
        return [
            (entry, written)
            for entry in self._live(draft)
            for written in entry.batches
            if written[:2] == (topic_id, partition) and written.batch.producer_id == producer
        ]

    def reserve(
        self,
        writer: WriterId,
        parts: Mapping[Place, Sequence[WantedBatch]],
        facts: Sequence[WantedFact],
    ) -> tuple[Entry | None, Answers]:
        draft = Entry(len(self.entries), writer)
        statuses = [self._status(entry, draft) for entry in facts]
        answers = []
        for place, wanted in parts.items():
            waiting: set[str] = set()
            before = self.next.get(place[1:])
            rows = [self._batch(place, batch, draft, waiting) for batch in wanted]
            answers.append(rows)
            accepted = any(row.status is BatchStatus.OK for row in rows)
            if not accepted and before is not None:
                self.next[place[1:]] = before
            if not wanted:
                draft.stamps.append(self._fresh_stamp(place))
            else:
                draft.stamps.append(self._stamp(place, draft) if accepted else -1)
            if accepted:
                draft.names.add(place[0])
        own = draft.tiers or draft.security or draft.shares
        changes = draft.batches or draft.control or draft.groups or own
        if not changes and not any(s >= 0 for s in draft.stamps):
            return None, Answers(answers, statuses)
        draft.needs = {entry.ticket for entry in self.entries if self._is_needed(entry, draft)}
        open_tickets = [entry.ticket for entry in self.entries if entry.is_open]
        draft.low_ticket = min(open_tickets, default=draft.ticket)
        self.entries.append(draft)
        return draft, Answers(answers, statuses)

    def _fresh_stamp(self, place: Place) -> int:
        """The high watermark shown; -1 where the partition is not visible."""
        if self.partitions(place[1]) <= place[2]:
            return -1
        return self.shown_end(place)

    def shown_end(self, place: Place) -> int:
        """The end of the last visible batch."""
        ends = [
            written.base + written.batch.record_count
            for entry in self.entries
            if entry.state == VISIBLE
            for written in entry.batches
            if written[:2] == place[1:]
        ]
        return max(ends, default=0)

    def _stamp(self, place: Place, draft: Entry) -> int:
        bases = [
            written.base
            for entry in (*self.entries, draft)
            if entry.is_open
            for written in entry.batches
            if written[:2] == place[1:]
        ]
        return min(bases)

    def _is_needed(self, earlier: Entry, draft: Entry) -> bool:
        """Does it touch one of the draft's partitions or keys, or precede it in its chain?"""
        if not earlier.is_open:
            return False
        mine = [entry for entry in self.entries if entry.writer == draft.writer]
        changed = {change.topic_id for change in draft.control}
        return (
            earlier is (mine[-1] if mine else None)
            or any(w[:2] in {x[:2] for x in draft.batches} for w in earlier.batches)
            or any(w.topic_id in changed for w in earlier.batches)
            or bool(draft.groups & earlier.groups)
            or (draft.tiers and earlier.tiers)
            or (draft.security and earlier.security)
            or (draft.shares and earlier.shares)
            or any(
                c.topic_name in draft.names | {d.topic_name for d in draft.control}
                for c in earlier.control
            )
        )

    def take(self, group: str) -> GroupTakeover:
        """Nothing is stored of it."""
        self.takings += 1
        self.terms[group] = self.takings
        opened = [entry.ticket for entry in self.entries if entry.is_open and group in entry.groups]
        return GroupTakeover(self.takings, 0, None, frozenset(opened))

    def _status(self, entry: WantedFact, draft: Entry) -> FactStatus:
        match entry:
            case WantedTierEntry():
                draft.tiers = True
                return FactStatus.OK
            case WantedSecurityEntry():
                draft.security = True
                return FactStatus.OK
            case WantedShareEntry():
                draft.shares = True
                return FactStatus.OK
            case WantedGroupEntry():
                return self._group_entry(entry, draft)
            case WantedTopicChange():
                return self._control(entry, draft)
            case _:
                raise AssertionError("this model has no transactions")

    def _group_entry(self, wanted: WantedGroupEntry, draft: Entry) -> FactStatus:
        if self.terms.get(wanted.group) != wanted.term:
            return FactStatus.NOT_COORDINATOR
        draft.groups.add(wanted.group)
        return FactStatus.OK

    def _control(self, change: WantedTopicChange, draft: Entry) -> FactStatus:
        found = self._topic(change.topic_name, draft)
        if found and found[0].state == PENDING and found[0].writer != draft.writer:
            return FactStatus.WAIT
        current = found[1] if found and found[1].verb != "delete" else None
        if change.verb == "create":
            if current is not None:
                return FactStatus.EXISTS
        elif current is None or current.topic_id != change.topic_id:
            return FactStatus.UNKNOWN_TOPIC
        elif change.verb == "grow" and change.partitions <= current.partitions:
            return FactStatus.INVALID_PARTITIONS
        if change.verb == "configure" and current is not None:
            change = change._replace(partitions=current.partitions)
        draft.control.append(change)
        return FactStatus.OK

    def _batch(
        self, place: Place, batch: WantedBatch, draft: Entry, waiting: set[str]
    ) -> BatchAnswer:
        name, topic_id, partition = place
        found = self._topic(name, draft)
        if found and found[0].state == PENDING and found[0].writer != draft.writer:
            return BatchAnswer(BatchStatus.WAIT, -1)
        if found is None or found[1].verb == "delete" or found[1].topic_id != topic_id:
            return BatchAnswer(BatchStatus.UNKNOWN_TOPIC, -1)
        if partition >= self.partitions(topic_id):
            return BatchAnswer(BatchStatus.UNKNOWN_TOPIC, -1)
        if batch.producer_id:
            refusal = self._producer(place, batch, draft, waiting)
            if refusal is not None:
                return refusal
        if batch.placed_at is not None:
            refusal = self._place(place, batch.placed_at, draft)
            if refusal is not None:
                return refusal
        base = self.next.get((topic_id, partition), 0)
        self.next[topic_id, partition] = base + batch.record_count
        draft.batches.append(Written(topic_id, partition, base, batch))
        return BatchAnswer(BatchStatus.OK, base)

    def _place(self, place: Place, placed_at: int, draft: Entry) -> BatchAnswer | None:
        """None where a batch of a mirror is the partition's next."""
        is_held = any(
            change.topic_id == place[1] and change.verb in ("grow", "configure")
            for change in draft.control
        )
        for entry in self.entries:
            touches = any(written[:2] == place[1:] for written in entry.batches) or any(
                change.topic_id == place[1] and change.verb in ("grow", "configure")
                for change in entry.control
            )
            if entry.is_open and touches:
                if entry.writer != draft.writer:
                    return BatchAnswer(BatchStatus.WAIT, -1)
                is_held = True
        if not is_held and not any(written[:2] == place[1:] for written in draft.batches):
            self.next[place[1:]] = self.shown_end(place)
        end = self.next.get(place[1:], 0)
        if placed_at == end:
            return None
        return BatchAnswer(
            BatchStatus.WAIT if is_held else BatchStatus.MISPLACED, -1 if is_held else end
        )

    def _producer(
        self, place: Place, batch: WantedBatch, draft: Entry, waiting: set[str]
    ) -> BatchAnswer | None:
        """None where the batch is the producer's next."""
        if batch.producer_id in waiting:
            return BatchAnswer(BatchStatus.WAIT, -1)
        rows = self.rows(batch.producer_id, place[1], place[2], draft)
        if not rows:
            first = batch.base_sequence == 0
            return None if first else BatchAnswer(BatchStatus.UNKNOWN_PRODUCER, 0)
        visible = [row for row in rows if row[0].state == VISIBLE][-DUPLICATES_KEPT:]
        holder, newest = rows[-1]
        if newest.batch.producer_epoch == batch.producer_epoch:
            for entry, written in visible + [row for row in rows if row[0].state != VISIBLE]:
                if written.batch == batch:
                    status = BatchStatus.OPEN if entry.state != VISIBLE else BatchStatus.DUPLICATE
                    return BatchAnswer(status, written.base)
            known = visible + [row for row in rows if row[0].state != VISIBLE]
            epoch = batch.producer_epoch
            of_epoch = [each for _, each in known if each.batch.producer_epoch == epoch]
            forgotten = sum(
                each.batch.record_count
                for _, each in rows
                if each.batch.producer_epoch == epoch and each not in of_epoch
            )
            if _is_before(batch, of_epoch[0].batch, newest.batch):
                assert batch.base_sequence + batch.record_count <= forgotten, "it is in the log"
                return BatchAnswer(BatchStatus.FORGOTTEN_DUPLICATE, -1)
        if holder.state == PENDING and holder.writer != draft.writer:
            waiting.add(batch.producer_id)
            return BatchAnswer(BatchStatus.WAIT, -1)
        if newest.batch.producer_epoch > batch.producer_epoch:
            return BatchAnswer(BatchStatus.FENCED, -1)
        expected = 0
        if newest.batch.producer_epoch == batch.producer_epoch:
            expected = (newest.batch.base_sequence + newest.batch.record_count) % SEQUENCES
        if batch.base_sequence != expected:
            return BatchAnswer(BatchStatus.OUT_OF_ORDER, expected)
        return None

    def publish(self, entry: Entry) -> set[int]:
        """Returns the tickets that become visible."""
        entry.state = DECIDED
        return self._cascade()

    def void(self, writer: WriterId) -> set[int]:
        """All that the writer has pending; what waited for it moves on."""
        for entry in self.pending(writer):
            entry.state = VOID
        return self._cascade()

    def _cascade(self) -> set[int]:
        grown: set[int] = set()
        while True:
            ready = [
                entry
                for entry in self.entries
                if entry.state == DECIDED
                and all(not self.entries[need].is_open for need in entry.needs)
            ]
            if not ready:
                return grown
            for entry in ready:
                entry.state = VISIBLE
                grown.add(entry.ticket)
                self.shown.append(entry.ticket)


def _is_before(batch: WantedBatch, oldest: WantedBatch, newest: WantedBatch) -> bool:
    """Whether the batch is before all remembered ones of its epoch, of less than 2^30 records."""
    first, last = batch.base_sequence, batch.base_sequence + batch.record_count - 1
    following = newest.base_sequence + newest.record_count
    return last < min(oldest.base_sequence, SEQUENCES) and all(
        0 < (following - each) % SEQUENCES < SEQUENCES // 2 for each in (first, last)
    )
