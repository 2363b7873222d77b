"""Random walks over the real scripts, held against a model of the protocol, and then the fold.

Three writers, two topics, idempotent and plain batches, duplicates, gaps, new producer epochs,
topics created, grown and deleted, publishing in every legal order, voided writers. Every answer is
compared. `test_a_broken_rule_is_found` shows that the walks can fail.
"""

import random
from collections.abc import Sequence
from uuid import UUID

import pytest
from redis.exceptions import RedisError

from bucketlog.errors import BucketlogError
from bucketlog.model import (
    BatchIndex,
    PartitionIndex,
    SegmentId,
    SegmentIndex,
    Ticket,
    TopicId,
    TopicPartition,
    WriterId,
)
from metadata.facts import Fact, PartitionsAdded, TopicCreated, TopicDeleted, encode_fact
from metadata.fold import LogState, fold
from metadata.sequencer import script_runner
from metadata.sequencer.requests import PublishStatus, WantedBatch, WantedControl
from metadata.sequencer.scripts import Verb, script_text
from tests.property.sequencer_model import (
    SEQUENCES,
    VISIBLE,
    Entry,
    Place,
    SequencerModel,
)
from tests.sequencing import NOW_MS, Sequencing, plain

NAMES = ("x", "y")
PARTITIONS_MAX = 3
STEPS = 120
OPEN_MAX = 12


class Walk:
    """One random walk: every step is told to the server and to the model."""

    def __init__(self, seed: int, sequencing: Sequencing) -> None:
        self.random = random.Random(seed)
        self.plain_share = self.random.choice([0.1, 0.4, 0.9])
        self.control_share = self.random.choice([0.05, 0.2, 0.4])
        self.void_weight = self.random.choice([2, 6, 15])
        self.real = sequencing
        self.model = SequencerModel()
        self.segments: dict[int, SegmentIndex] = {}
        self.seqs: dict[WriterId, int] = {}
        self.writers: list[WriterId] = []
        self.ids: dict[str, list[TopicId]] = {name: [TopicId(bytes(16))] for name in NAMES}

    async def run(self) -> None:
        await self.real.activate(1)
        for _ in range(3):
            await self.add_writer()
        for _ in range(STEPS):
            open_now = sum(entry.is_open for entry in self.model.entries)
            kinds = ("reserve", "publish", "early", "void")
            weights = (50 if open_now < OPEN_MAX else 0, 40, 3, self.void_weight)
            match self.random.choices(kinds, weights)[0]:
                case "reserve":
                    await self.reserve()
                case "publish":
                    await self.publish()
                case "early":
                    await self.publish_early()
                case "void":
                    await self.void()
        while any(entry.is_open for entry in self.model.entries):
            await self.publish()
        await self.compare_with_the_fold()

    async def add_writer(self) -> None:
        writer = await self.real.writer()
        self.writers.append(writer)
        self.seqs[writer] = 0

    # Requests ----------------------------------------------------------------------------------

    def wanted_batch(self, place: Place) -> WantedBatch:
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

    def wanted_control(self) -> WantedControl:
        name = self.random.choice(NAMES)
        verb = self.random.choices(("create", "grow", "delete"), (50, 35, 15))[0]
        count = 0 if verb == "delete" else self.random.randint(1, PARTITIONS_MAX)
        if verb == "create":
            self.ids[name].append(TopicId(self.real.fresh_id().bytes))
            return WantedControl(verb, name, self.ids[name][-1], count)
        topic_id = self.topic_id(name)
        if verb == "grow":
            count = self.model.partitions(topic_id) + self.random.randint(0, 2)
        return WantedControl(verb, name, topic_id, count)

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
                for _ in range(self.random.choice([1, 1, 2, 3])):
                    parts.setdefault(place, []).append(self.wanted_batch(place))
        few = self.random.random() < (self.control_share if self.model.shown else 0.9)
        control = [self.wanted_control() for _ in range(self.random.choice([1, 2]) if few else 0)]
        for name, topic_id, _ in parts:
            self.real.topic_ids[name] = topic_id
        await self.ask(writer, parts, control)

    async def ask(
        self,
        writer: WriterId,
        parts: dict[Place, list[WantedBatch]],
        control: Sequence[WantedControl],
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
        assert list(got.control) == answers.control
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
        self.segments[entry.ticket] = segment_of(entry, SegmentId(writer, seq))

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
                with pytest.raises(BucketlogError, match="early"):
                    await self.real.publish(writer, self.segments[entry.ticket].segment.seq)

    async def void(self) -> None:
        writer = self.random.choice(self.writers)
        pending = self.model.pending(writer)
        if not pending:
            return
        await self.real.void(writer, self.segments[pending[0].ticket].segment.seq)
        await self.compare_shown(self.model.void(writer))
        self.writers.remove(writer)
        await self.add_writer()

    async def compare_shown(self, grown: set[int]) -> None:
        """The same become visible; among them, each after what it needs."""
        shown = await self.real.tickets_shown()
        before = len(self.model.shown) - len(grown)
        assert set(shown[before:]) == grown
        assert len(shown) == len(self.model.shown)
        for at, ticket in enumerate(shown):
            later = set(shown[at:])
            assert not self.model.entries[ticket].needs & later
        self.model.shown[before:] = shown[before:]

    async def compare_with_the_fold(self) -> None:
        """What is folded from the log, in both orders, is what the server holds."""
        committed = [self.segments[ticket] for ticket in self.model.shown]
        state = fold(committed)
        as_shown = LogState()
        for index in committed:
            as_shown.apply(index)
        assert as_shown.partitions == state.partitions
        assert as_shown.topics == state.topics
        topics = await self.real.records("topics")
        partitions = await self.real.records("partitions")
        producers = await self.real.records("producers")
        assert await self.real.open_tickets() == []
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
            assert kept == {
                str(producer): [[-1, *row] for row in rows]
                for producer, rows in entry.producers.items()
            }


def fact_of(change: WantedControl) -> Fact:
    topic_id, name = UUID(bytes=change.topic_id), change.topic_name
    match change.verb:
        case "create":
            return TopicCreated(topic_id=topic_id, name=name, partitions=change.partitions)
        case "grow":
            return PartitionsAdded(topic_id=topic_id, name=name, partitions=change.partitions)
    return TopicDeleted(topic_id=topic_id, name=name)


def segment_of(entry: Entry, segment: SegmentId) -> SegmentIndex:
    rows: dict[TopicPartition, list[BatchIndex]] = {}
    for topic_id, partition, base, batch in entry.batches:
        rows.setdefault(TopicPartition(topic_id, partition), []).append(
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
        tuple(encode_fact(fact_of(change)) for change in entry.control),
    )


@pytest.mark.parametrize("seed", range(40))
async def test_the_scripts_do_what_the_protocol_says(fresh: Sequencing, seed: int) -> None:
    await Walk(seed, fresh).run()


# Each breaks one rule in the scripts' text: what is replaced, and by what.
BROKEN: dict[str, tuple[str, str]] = {
    "only the last open segment of a partition is a dependency": (
        "for j = 1, #record.open, 2 do\n      dependencies[record.open[j]] = true\n",
        "for j = 1, #record.open, 2 do\n"
        "      if j == #record.open - 1 then dependencies[record.open[j]] = true end\n",
    ),
    "no dependency by partition": (
        "dependencies[record.open[j]] = true\n      if record",
        "if record",
    ),
    "no dependency on the previous of the chain": ("dependencies[me.last] = true", ""),
    "a topic entry does not touch its partitions": (
        "for j = 1, #record.open, 2 do dependencies[record.open[j]] = true end",
        "",
    ),
    "a batch does not depend on its topic's open entry": (
        "for _, version in ipairs(versions) do dependencies[version[1]] = true end\n  return 'ok'",
        "return 'ok'",
    ),
    "nobody waits for another writer": (
        "foreign[other] = holder and",
        "foreign[other] = false and",
    ),
    "later batches of a waiting producer do not wait": ("waiting[field] = true", ""),
    "decided counts as pending": ("holder:sub(1, 1) == 'p' and", ""),
    "no topic waits": ("if current and pending_elsewhere(current[1]) then return 'wait' end", ""),
    "no control entry waits": (
        "if current and pending_elsewhere(current[1]) then status = 'wait'\n  elseif",
        "if",
    ),
    "an old producer epoch is accepted": (
        "if producer_epoch < newest[2] then return 'fenced' end",
        "",
    ),
    "a new producer epoch may start anywhere": (
        "(newest[4] + 1) % 2147483648 or 0",
        "(newest[4] + 1) % 2147483648 or first",
    ),
    "sequences do not wrap": ("(newest[4] + 1) % 2147483648 or 0", "(newest[4] + 1) or 0"),
    "unknown producers may start anywhere": (
        "if first ~= 0 then return 'unknown_producer' end",
        "",
    ),
    "an open duplicate has its offset already": (
        "row[1] < 0 and 'duplicate' or 'open'",
        "'duplicate'",
    ),
    "six batches are kept": ("PRODUCER_BATCHES_KEPT = 5", "PRODUCER_BATCHES_KEPT = 6"),
    "four batches are kept": ("PRODUCER_BATCHES_KEPT = 5", "PRODUCER_BATCHES_KEPT = 4"),
    "the stamp is next": (
        "if record.open[j + 1] < stamps[i] then stamps[i] = record.open[j + 1] end",
        "",
    ),
    "the low ticket is one's own": ("lowest ~= '' and tonumber(lowest) or ticket", "ticket"),
    "any pending segment may be published": ("if seq ~= me.first then", "if false then"),
    "visible as soon as decided": ("if #cmsgpack.unpack(waits) > 0 then", "if false then"),
    "visible by the first dependency": ("if #left == 0 and decided", "if decided"),
    "visible before it is decided": ("if #left == 0 and decided", "if #left == 0"),
    "a void producer row stays": (
        "if visible then row[1] = VISIBLE; kept[#kept + 1] = row end",
        "row[1] = VISIBLE; kept[#kept + 1] = row",
    ),
    "a void topic entry stays": (
        "elseif visible then\n        local before",
        "else\n        local before",
    ),
    "a void tail counts as visible": (
        "if visible then record.visible_end",
        "if true then record.visible_end",
    ),
    "a deleted topic keeps its partitions": (
        "partitions[partition_field(version[2], p)] = false end",
        "end",
    ),
    "a grown topic starts all its partitions again": (
        "for p = had, version[3] - 1 do",
        "for p = 0, version[3] - 1 do",
    ),
    "a repeat is reserved anew": ("if seq ~= me.next then", "if false then"),
}
SEEDS_TO_FIND = 150
WALKED = (Verb.RESERVE, Verb.PUBLISH, Verb.FENCE)


@pytest.mark.parametrize("rule", BROKEN)
async def test_a_broken_rule_is_found(
    rule: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad = BROKEN[rule]
    assert {script_text(verb).count(good) for verb in WALKED} in ({0, 1}, {1})
    monkeypatch.setattr(
        script_runner, "script_text", lambda verb: script_text(verb).replace(good, bad)
    )
    for seed in range(SEEDS_TO_FIND):
        sequencing = Sequencing(redis_url)
        try:
            await Walk(seed, sequencing).run()
        except (AssertionError, BucketlogError, pytest.fail.Exception, RedisError):
            return
        finally:
            await sequencing.close()
    pytest.fail(f"{SEEDS_TO_FIND} walks did not notice")
