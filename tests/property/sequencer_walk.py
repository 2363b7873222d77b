"""A random walk over the real scripts, held against a model of the protocol, and then the fold.

Three writers, two topics, idempotent and plain batches, duplicates, gaps, new producer epochs,
topics created, grown and deleted, groups taken and forgotten, entries of theirs by coordinators of
now and before, stamps alone, publishing in every legal order and on others' behalf, fences, and
what fenced writers try still. Every answer is compared.
"""

import random
from collections.abc import Sequence
from uuid import UUID

import pytest

from bucketlog.log_format.errors import SequencerLostError, WriterFencedError
from bucketlog.log_format.model import (
    BatchIndex,
    PartitionIndex,
    SegmentId,
    SegmentIndex,
    Ticket,
    TopicId,
    TopicIdPartition,
    WriterId,
)
from bucketlog.metadata.facts import (
    Fact,
    OffsetRow,
    OffsetsCommitted,
    PartitionsAdded,
    TopicConfigured,
    TopicCreated,
    TopicDeleted,
    encode_fact,
)
from bucketlog.metadata.fold import LogState, fold
from bucketlog.metadata.sequencer.requests import (
    FenceResult,
    FenceStatus,
    Position,
    PublishResult,
    PublishStatus,
    WantedBatch,
    WantedFact,
    WantedGroupEntry,
    WantedSecurityEntry,
    WantedShareEntry,
    WantedTierEntry,
    WantedTopicChange,
)
from tests.property.sequencer_model import (
    SEQUENCES,
    VISIBLE,
    Entry,
    Place,
    SequencerModel,
)
from tests.servers.sequencing import NOW_MS, Sequencing, plain

NAMES = ("x", "y")
GROUPS = ("g", "h")
PARTITIONS_MAX = 3
STEPS = 120
OPEN_MAX = 12


class Walk:
    """One random walk: every step is told to the server and to the model."""

    def __init__(self, seed: int, sequencing: Sequencing) -> None:
        self.random = random.Random(seed)
        self.plain_share = self.random.choice([0.1, 0.4, 0.9])
        self.placed_share = self.random.choice([0, 0.2, 0.9])
        self.control_share = self.random.choice([0.05, 0.2, 0.4])
        self.group_share = self.random.choice([0, 0.2, 0.5])
        self.void_weight = self.random.choice([2, 6, 15])
        self.real = sequencing
        self.model = SequencerModel()
        self.segments: dict[int, SegmentIndex] = {}
        self.seqs: dict[WriterId, int] = {}
        self.writers: list[WriterId] = []
        self.fenced: list[tuple[SegmentId, FenceResult]] = []
        self.ids: dict[str, list[TopicId]] = {name: [TopicId(bytes(16))] for name in NAMES}

    async def run(self) -> None:
        await self.real.activate(1)
        for _ in range(3):
            await self.add_writer()
        for _ in range(STEPS):
            open_now = sum(entry.is_open for entry in self.model.entries)
            kinds = ("reserve", "publish", "early", "void", "refused", "too late", "take", "forget")
            weights = (50 if open_now < OPEN_MAX else 0, 40, 3, self.void_weight, 3, 3, 4, 1)
            match self.random.choices(kinds, weights)[0]:
                case "reserve":
                    await self.reserve()
                case "publish":
                    await self.publish()
                case "early":
                    await self.publish_early()
                case "void":
                    await self.void()
                case "refused":
                    await self.fence_wrongly()
                case "too late":
                    await self.act_fenced()
                case "take":
                    await self.take_group()
                case "forget":
                    await self.forget_group()
        while any(entry.is_open for entry in self.model.entries):
            await self.publish()
        await self.compare_with_the_fold()

    async def add_writer(self) -> None:
        writer = await self.real.writer()
        self.writers.append(writer)
        self.seqs[writer] = 0

    # Requests ----------------------------------------------------------------------------------

    def wanted_batch(self, place: Place) -> WantedBatch:
        if self.random.random() < self.placed_share:
            ends = self.model.next.get(place[1:], 0), self.model.shown_end(place)
            at = self.random.choice([*ends, ends[0] + self.random.choice([-1, 1, 2])])
            return plain(self.random.choice([1, 2, 3]))._replace(placed_at=max(at, 0))
        if self.random.random() < self.plain_share:
            return plain(self.random.choice([1, 2, 3]))
        producer = self.random.choice(["7", "8"])
        rows = [row for _, row in self.model.rows(producer, place[1], place[2])]
        count = self.random.choice([1, 2, 3, SEQUENCES - 4])
        if not rows:
            return WantedBatch(count, producer, 0, self.random.choice([0, 0, 0, 3]))
        newest = rows[-1].batch
        after = (newest.base_sequence + newest.record_count) % SEQUENCES
        follow = newest._replace(record_count=count, base_sequence=after)
        match self.random.choices(("follow", "again", "gap", "bump", "old"), (60, 25, 5, 5, 5))[0]:
            case "again":
                return self.random.choice(rows[-8:]).batch
            case "gap":
                return follow._replace(base_sequence=(after + 1) % SEQUENCES)
            case "bump":
                first = self.random.choice([0, 0, 0, 5])
                epoch = newest.producer_epoch + 1
                return follow._replace(base_sequence=first, producer_epoch=epoch)
            case "old" if newest.producer_epoch > 0:
                return follow._replace(producer_epoch=newest.producer_epoch - 1)
        return follow

    def wanted_control(self) -> WantedTopicChange:
        name = self.random.choice(NAMES)
        verb = self.random.choices(("create", "grow", "delete", "configure"), (50, 35, 15, 20))[0]
        count = 0 if verb in ("delete", "configure") else self.random.randint(1, PARTITIONS_MAX)
        if verb == "create":
            self.ids[name].append(TopicId(self.real.fresh_id().bytes))
            return WantedTopicChange(verb, name, self.ids[name][-1], count)
        topic_id = self.topic_id(name)
        if verb == "grow":
            count = self.model.partitions(topic_id) + self.random.randint(0, 2)
        return WantedTopicChange(verb, name, topic_id, count)

    def topic_id(self, name: str) -> TopicId:
        """Mostly one that stands, now and then one that was."""
        standing = [one for one in self.ids[name] if self.model.partitions(one)]
        if standing and self.random.random() < 0.9:
            return standing[-1]
        return self.random.choice(self.ids[name][-2:])

    async def reserve(self) -> None:
        writer = self.random.choice(self.writers)
        parts: dict[Place, list[WantedBatch]] = {}
        if self.random.random() < 0.9:
            for _ in range(self.random.choice([1, 1, 2])):
                name = self.random.choice(NAMES)
                place = (name, self.topic_id(name), self.random.choice([0, 0, 1, 1, 2]))
                wanted = parts.setdefault(place, [])
                for _ in range(self.random.choice([0, 1, 1, 1, 2, 3])):
                    wanted.append(self.wanted_batch(place))
        few = self.random.random() < (self.control_share if self.model.shown else 0.9)
        control: list[WantedFact] = []
        control += [self.wanted_control() for _ in range(self.random.choice([1, 2]) if few else 0)]
        while self.random.random() < self.group_share:
            control.append(self.wanted_entry())
        if self.random.random() < self.group_share / 3:
            kinds: list[WantedFact]
            kinds = [WantedTierEntry(), WantedSecurityEntry(), WantedShareEntry()]
            control.append(self.random.choice(kinds))
        self.random.shuffle(control)
        for name, topic_id, _ in parts:
            self.real.topic_ids[name] = topic_id
        await self.ask(writer, parts, control)

    async def ask(
        self,
        writer: WriterId,
        parts: dict[Place, list[WantedBatch]],
        control: Sequence[WantedFact],
    ) -> None:
        one_id: dict[str, TopicId] = {}
        parts = {
            place: batches
            for place, batches in parts.items()
            if one_id.setdefault(place[0], place[1]) == place[1]
        }
        self.real.topic_ids |= one_id
        asked = {(name, number): batches for (name, _, number), batches in parts.items()}
        request = f"request {len(self.model.entries)} {self.random.random()}"
        got = await self.real.ask(writer, asked, control, request=request)
        entry, answers = self.model.reserve(writer, parts, control)
        assert [list(part) for part in got.batches] == answers.batches
        assert list(got.fact_statuses) == answers.control
        if entry is None:
            assert got.ticket is None
            return
        assert got.ticket == Ticket(1, entry.ticket)
        assert got.low_ticket == entry.low_ticket
        assert list(got.hw_stamps) == entry.stamps
        seq = self.seqs[writer]
        self.seqs[writer] += 1
        if self.random.random() < 0.1:
            again = await self.real.ask(writer, asked, control, seq=seq, request=request)
            assert again == got
        standing = [one for ids in self.ids.values() for one in ids if self.model.partitions(one)]
        self.segments[entry.ticket] = segment_of(entry, SegmentId(writer, seq), standing)

    # Groups ------------------------------------------------------------------------------------

    def wanted_entry(self) -> WantedGroupEntry:
        """Mostly by the coordinator, now and then by an earlier one, or of a group without one."""
        group = self.random.choice(GROUPS)
        term = self.model.terms.get(group, 0)
        return WantedGroupEntry(group, term if self.random.random() < 0.8 else max(term - 1, 0))

    async def take_group(self) -> None:
        group = self.random.choice(GROUPS)
        assert await self.real.sequencer.take_group(1, group, "broker") == self.model.take(group)

    async def forget_group(self) -> None:
        group = self.random.choice(GROUPS)
        term = self.model.terms.pop(group, 0)
        assert await self.real.sequencer.forget_group(1, group, term)

    # Outcomes ----------------------------------------------------------------------------------

    async def publish(self) -> None:
        writers = [writer for writer in self.writers if self.model.pending(writer)]
        if not writers:
            return
        writer = self.random.choice(writers)
        entry = self.model.pending(writer)[0]
        status = await self.real.publish(writer, self.segments[entry.ticket].segment.seq)
        await self.compare_shown(self.model.publish(entry))
        assert status is (
            PublishStatus.VISIBLE if entry.state == VISIBLE else PublishStatus.DECIDED
        )

    async def publish_early(self) -> None:
        for writer in self.writers:
            for entry in self.model.pending(writer)[1:2]:
                with pytest.raises(SequencerLostError, match="early"):
                    await self.real.publish(writer, self.segments[entry.ticket].segment.seq)

    def next_seq(self, writer: WriterId) -> int:
        """Its first pending seq, or its next."""
        pending = self.model.pending(writer)
        return self.segments[pending[0].ticket].segment.seq if pending else self.seqs[writer]

    async def void(self) -> None:
        writer = self.random.choice(self.writers)
        segment = SegmentId(writer, self.next_seq(writer))
        answer = await self.real.fence(*segment)
        await self.compare_shown(self.model.void(writer))
        assert answer == FenceResult(FenceStatus.FENCED, segment.seq)
        self.fenced.append((segment, answer))
        self.writers.remove(writer)
        await self.add_writer()

    async def fence_wrongly(self) -> None:
        writer = self.random.choice(self.writers)
        first = self.next_seq(writer)
        for seq in {max(first - 1, 0), first + 1, self.seqs[writer]} - {first}:
            assert await self.real.fence(writer, seq) == FenceResult(FenceStatus.REFUSED, first)

    async def act_fenced(self) -> None:
        """A fenced writer has no way back, and a fence may be repeated."""
        for (writer, seq), answer in self.fenced[-3:]:
            assert await self.real.fence(writer, seq) == answer
            assert await self.real.fence(writer, seq + 1) == FenceResult(FenceStatus.REFUSED, seq)
            with pytest.raises(WriterFencedError):
                await self.real.ask(writer, {("x", 0): [plain()]}, seq=self.seqs[writer])
            for late in range(seq, self.seqs[writer] + 1):
                published = await self.real.sequencer.publish(
                    1, SegmentId(writer, late), footer=b"", object_size_bytes=1
                )
                assert published == PublishResult(PublishStatus.VOID, seq)
            await self.compare_shown(set())

    async def compare_shown(self, grown: set[int]) -> None:
        """The same become visible; among them, each after what it needs."""
        stream = await self.real.shown()
        assert [entry.number for entry in stream] == list(range(1, len(stream) + 1))
        shown = [entry.ticket.number for entry in stream]
        before = len(self.model.shown) - len(grown)
        assert set(shown[before:]) == grown
        assert len(shown) == len(self.model.shown)
        for at, ticket in enumerate(shown):
            later = set(shown[at:])
            assert not self.model.entries[ticket].needs & later
        self.model.shown[before:] = shown[before:]
        open_tickets = {entry.ticket for entry in self.model.entries if entry.is_open}
        assert await self.real.sequencer.position(1) == Position(
            len(shown), len(self.model.entries), frozenset(open_tickets)
        )

    async def compare_with_the_fold(self) -> None:
        """What is folded from the log, in both orders, is what the server holds."""
        committed = [self.segments[ticket] for ticket in self.model.shown]
        state = fold(committed)
        as_shown = LogState()
        for index in committed:
            as_shown.apply(index)
        assert as_shown.partitions == state.partitions
        assert as_shown.topics == state.topics
        assert as_shown.groups == state.groups
        topics = await self.real.records("topics")
        partitions = await self.real.records("partitions")
        producers = await self.real.records("producers")
        groups = await self.real.records("groups")
        assert await self.real.open_tickets() == []
        assert {name: (record["term"], record["open"]) for name, record in groups.items()} == {
            f"g:{group}": (term, "") for group, term in self.model.terms.items()
        }
        assert topics == {
            topic.name: [[-1, topic.topic_id.hex(), topic.partitions, False]]
            for topic in state.topics.values()
        }
        assert set(partitions) == {f"{key[0].hex()}:{key[1]}" for key in state.partitions}
        for key, entry in state.partitions.items():
            name = f"{key[0].hex()}:{key[1]}"
            assert partitions[name]["next"] == self.model.next.get((key[0], key[1]), 0)
            assert partitions[name]["visible_end"] == entry.next_offset
            assert partitions[name]["open"] == ""
            kept = {
                field.split(":")[0]: rows
                for field, rows in producers.items()
                if field.endswith(name)
            }
            kept = {producer: [row[:5] for row in rows] for producer, rows in kept.items()}
            assert kept == {
                str(producer): [[-1, *row[:-1]] for row in rows]
                for producer, rows in entry.producers.items()
            }


def fact_of(change: WantedTopicChange) -> Fact:
    topic_id, name = UUID(bytes=change.topic_id), change.topic_name
    match change.verb:
        case "create":
            return TopicCreated(topic_id=topic_id, name=name, partitions=change.partitions)
        case "grow":
            return PartitionsAdded(topic_id=topic_id, name=name, partitions=change.partitions)
        case "configure":
            return TopicConfigured(topic_id=topic_id, name=name, configs={"retention.ms": "1"})
    return TopicDeleted(topic_id=topic_id, name=name)


def commit_of(group: str, ticket: int, topics: Sequence[TopicId]) -> Fact:
    """In partition 0 of all `topics`: which commit it was is seen by its offset."""
    rows = tuple(OffsetRow(UUID(bytes=topic), 0, ticket, -1, "") for topic in topics)
    return OffsetsCommitted(group=group, committed_ms=NOW_MS, offsets=rows)


def segment_of(entry: Entry, segment: SegmentId, topics: Sequence[TopicId]) -> SegmentIndex:
    """`topics` are visible when it is reserved: a coordinator commits of no others."""
    facts = [commit_of(group, entry.ticket, topics) for group in sorted(entry.groups)]
    facts += [fact_of(change) for change in entry.control]
    rows: dict[TopicIdPartition, list[BatchIndex]] = {}
    for topic_id, partition, base, batch in entry.batches:
        rows.setdefault(TopicIdPartition(topic_id, partition), []).append(
            BatchIndex(
                base,
                0,
                0,
                batch.record_count,
                batch.record_count - 1,
                NOW_MS,
                int(batch.producer_id or -1),
                batch.producer_epoch,
                0,
                batch.base_sequence,
            )
        )
    return SegmentIndex(
        segment,
        Ticket(1, entry.ticket),
        entry.low_ticket,
        NOW_MS,
        tuple(PartitionIndex(key, 0, tuple(batches)) for key, batches in rows.items()),
        tuple(encode_fact(fact) for fact in facts),
    )
