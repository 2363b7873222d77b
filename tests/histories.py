"""Random histories for tests of folding: topics come, grow and go, several writers in several
epochs write batches of producers, groups commit; offsets have gaps."""

import random
from uuid import UUID

from bucketlog.checkpoint import CoveredWriter
from bucketlog.model import (
    BatchIndex,
    PartitionIndex,
    SegmentId,
    SegmentIndex,
    Ticket,
    TopicPartition,
    WriterId,
)
from metadata.facts import Fact, encode_fact
from tests.indexes import commit, create, delete, forget, grow, partition, row

NAMES = 3
GROUPS = ("g", "h", "Gruppe ü")


class RandomHistory:
    """`segments` in ticket order. Tickets have gaps, too: those of void reservations."""

    def __init__(self, seed: int, *, segments: int = 40, epochs: int = 3) -> None:
        self.random = random.Random(seed)
        self.live: dict[int, int] = {}
        """By name, the topic's number."""
        self.sizes: dict[int, int] = {}
        self.next_offset: dict[TopicPartition, int] = {}
        self.sequences: dict[tuple[int, TopicPartition], int] = {}
        self.segments: list[SegmentIndex] = []
        self.seqs: dict[WriterId, int] = {}
        self.epoch_of: dict[WriterId, int] = {}
        ticket = Ticket(1, 0)
        for number in range(segments):
            epoch = 1 + number * epochs // segments
            if epoch > ticket.epoch:
                ticket = Ticket(epoch, 0)
            self.segments.append(self.segment(ticket))
            ticket = Ticket(epoch, ticket.number + self.random.choice([1, 1, 1, 2, 3]))

    def segment(self, ticket: Ticket) -> SegmentIndex:
        writer = WriterId(UUID(int=ticket.epoch * 10 + self.random.randrange(3)).hex)
        self.epoch_of[writer] = ticket.epoch
        seq = self.seqs.get(writer, 0)
        self.seqs[writer] = seq + 1
        facts = [self.fact() for _ in range(self.random.choice([0, 0, 1, 2]))]
        places = [TopicPartition(*key) for key in self.existing()]
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
        return SegmentIndex(SegmentId(writer, seq), ticket, 0, 0, tuple(parts), control)

    def existing(self) -> list[TopicPartition]:
        return [
            partition(topic, number)
            for topic in self.live.values()
            for number in range(self.sizes[topic])
        ]

    def batch(self, key: TopicPartition, position: int) -> BatchIndex:
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
