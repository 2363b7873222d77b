"""Random histories for tests of folding: topics come, grow and go, several writers in several
epochs write batches of producers, groups commit; offsets have gaps; tiers are swapped, by jobs that
were overtaken, too, and log starts move."""

import random
from uuid import UUID

from bucketlog.log_format.checkpoint import CoveredWriter
from bucketlog.log_format.model import (
    BatchIndex,
    PartitionIndex,
    SegmentId,
    SegmentIndex,
    Ticket,
    TopicIdPartition,
    WriterId,
)
from bucketlog.metadata.facts import Fact, SwapPayload, encode_fact
from bucketlog.metadata.fold import LogState
from tests.models.indexes import (
    begin,
    commit,
    create,
    delete,
    forget,
    grow,
    partition,
    row,
    swap,
    swapped,
    swept,
    tier_row,
)

NAMES = 3
GROUPS = ("g", "h", "Gruppe ü")


class RandomHistory:
    """`segments` in ticket order. Tickets have gaps, too: those of void reservations."""

    def __init__(self, seed: int, *, segments: int = 40, epochs: int = 3) -> None:
        self.random = random.Random(seed)
        self.live: dict[int, int] = {}
        """By name, the topic's number."""
        self.sizes: dict[int, int] = {}
        self.next_offset: dict[TopicIdPartition, int] = {}
        self.sequences: dict[tuple[int, TopicIdPartition], int] = {}
        self.segments: list[SegmentIndex] = []
        self.seqs: dict[WriterId, int] = {}
        self.epoch_of: dict[WriterId, int] = {}
        self.clock = random.Random(f"clock {seed}")
        """Separate from `random`, so that times do not change the rest of the history."""
        self.state = LogState()
        """What jobs are planned on."""
        ticket = Ticket(1, 0)
        for number in range(segments):
            epoch = 1 + number * epochs // segments
            if epoch > ticket.epoch:
                ticket = Ticket(epoch, 0)
            self.segments.append(self.segment(ticket))
            self.state.apply(self.segments[-1])
            ticket = Ticket(epoch, ticket.number + self.random.choice([1, 1, 1, 2, 3]))

    def segment(self, ticket: Ticket) -> SegmentIndex:
        writer = WriterId(UUID(int=ticket.epoch * 10 + self.random.randrange(3)).hex)
        self.epoch_of[writer] = ticket.epoch
        seq = self.seqs.get(writer, 0)
        self.seqs[writer] = seq + 1
        facts = [self.fact() for _ in range(self.random.choice([0, 0, 1, 2]))]
        if self.state.partitions and self.random.random() < 0.4:
            facts.append(self.tier_fact(ticket))
        places = [TopicIdPartition(*key) for key in self.existing()]
        chosen = self.random.sample(places, min(len(places), self.random.randint(0, 3)))
        position = 16
        parts = []
        for key in sorted(chosen):
            rows = []
            for _ in range(self.random.randint(1, 3)):
                rows.append(self.batch(key, position))
                position += rows[-1].length
            parts.append(PartitionIndex(key, rows[0].base_offset, tuple(rows)))
        control = tuple(encode_fact(fact) for fact in facts)
        return SegmentIndex(
            SegmentId(writer, seq), ticket, 0, self.created_ms(), tuple(parts), control
        )

    def created_ms(self) -> int:
        """About a second after the last segment. Each clock is wrong by up to 3 s, and one in
        fifty by years."""
        now = 1_000 * len(self.segments) + self.clock.randint(-3_000, 3_000)
        return now + (1 << 40) * self.clock.choice([-1, 1]) * (self.clock.random() < 0.02)

    def existing(self) -> list[TopicIdPartition]:
        return [
            partition(topic, number)
            for topic in self.live.values()
            for number in range(self.sizes[topic])
        ]

    def batch(self, key: TopicIdPartition, position: int) -> BatchIndex:
        base = self.next_offset.get(key, 0) + self.random.choice([0, 0, 0, 5])
        records = self.random.randint(1, 4)
        self.next_offset[key] = base + records
        producer = self.random.randrange(-1, 3)
        identity = (-1, -1, -1)
        if producer >= 0:
            sequence = self.sequences.get((producer, key), 0)
            self.sequences[producer, key] = sequence + records
            identity = (1 << 40 | producer, producer, sequence)
        length = self.random.randint(61, 500)
        timestamp = self.random.randint(-1, 10_000)
        return row(base, records, at=(position, length), timestamp=timestamp, producer=identity)

    def tier_fact(self, ticket: Ticket) -> Fact:
        """Planned on what was before this segment."""
        what = self.random.random()
        if what < 0.1:
            return swept(ticket.epoch, max(0, ticket.number - self.random.randint(0, 20)))
        known = self.random.sample(
            sorted(self.state.partitions), self.random.randint(0, len(self.state.partitions))
        )
        if what < 0.3:
            ends = {key: self.state.partitions[key].next_offset for key in known}
            return begin({key: self.random.randint(0, end) for key, end in ends.items()})
        planned = (ticket.epoch, max(0, ticket.number - self.random.randint(0, 25)))
        return swapped(*filter(None, map(self.swap, known)), planned=planned)

    def swap(self, key: TopicIdPartition) -> SwapPayload | None:
        state = self.state.partitions[key]
        rows = state.tier.rows
        name = f"{self.random.getrandbits(64):016x}"
        if len(rows) > 1 and self.random.random() < 0.5:
            first = self.random.randrange(len(rows) - 1)
            merged = rows[first : first + self.random.randint(2, 3)]
            start, end = merged[0].start, merged[-1].end
            manifest = self.random.random() < 0.3
            added = [tier_row(start, end, name, manifest=manifest)][: self.random.randint(0, 3)]
            removed = [(start, "old")] if self.random.random() < 0.2 else []
            replaced = [each.name for each in merged]
            if self.random.random() < 0.1:
                replaced.append("gone")
            return swap(
                key, start, end, *added, replaced=replaced, removed=removed, cleaned_to=end - 1
            )
        if state.next_offset <= state.tier.end:
            return None
        start = state.tier.end + self.random.choice([0, 0, 0, 0, 1])
        end = self.random.randint(start, state.next_offset) + 1
        return swap(key, start, min(end, state.next_offset), tier_row(start, end - 1, name))

    def fact(self) -> Fact:
        if self.live and self.random.random() < 0.5:
            return self.group_fact()
        name = self.random.randrange(NAMES)
        topic = self.live.get(name)
        if topic is None:
            topic = self.live[name] = len(self.sizes) + 1
            self.sizes[topic] = self.random.randint(1, 3)
            return create(topic, self.sizes[topic], name=f"n{name}")
        if self.random.random() < 0.4:
            del self.live[name]
            return delete(topic)
        self.sizes[topic] += 1
        return grow(topic, self.sizes[topic])

    def group_fact(self) -> Fact:
        group = self.random.choice(GROUPS)
        topic = self.random.choice(list(self.sizes))
        rows = [partition(topic, number) for number in range(self.sizes[topic])]
        if self.random.random() < 0.2:
            return forget(group, *self.random.sample(rows, self.random.randint(0, len(rows))))
        offsets = {key: self.random.randrange(1000) for key in rows}
        expires = self.random.choice([None, 0, 77])
        return commit(group, offsets, at=self.random.randrange(99), expires=expires, metadata="µ")

    def covered(self, below: Ticket) -> list[CoveredWriter]:
        """Of all segments below: writers of earlier epochs are closed."""
        ends: dict[WriterId, int] = {}
        for index in self.segments:
            if index.ticket < below:
                ends[index.segment.writer] = index.segment.seq + 1
        return [
            CoveredWriter(writer, self.epoch_of[writer], end, self.epoch_of[writer] < below.epoch)
            for writer, end in ends.items()
        ]
