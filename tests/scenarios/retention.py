"""Retention on virtual time, held against a model that was written down naively: random steps of
producing, compacting, deleting and waiting, after each of which everything that a client can ask is
as computed. At full size, from the repository's root: `make prove WHAT=retention`.

The model knows nothing of the product's plans. What retention takes or leaves as a whole is one
batch while it stands in a log segment, and two batches afterwards: partition segments are full at
that size here. Rules: UnifiedLog.deleteOldSegments of Kafka 4.x.
"""

import asyncio
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from kio.schema.errors import ErrorCode

from bucketlog.log_format.batch import read_header
from bucketlog.log_format.model import TopicIdPartition
from bucketlog.log_format.records import decode_records
from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.tiered_storage import keys
from tests.proofs.shortfall import Figures
from tests.rigs.broker_rig import Rig
from tests.rigs.patience import Deadline
from tests.rigs.readable_log import PartitionContent, contents_of
from tests.rigs.several_brokers import Brokers
from tests.rigs.wire_client import build_batch, fetch_values
from tests.servers.own_valkey import OwnValkey

NONE = ErrorCode.none
BEGIN_MS = 1_700_000_000_000
SECOND_MS, HOUR_MS = 1_000, 3_600_000
SAFETY_AGE_HOURS = 24
BATCH_BYTES = 250
FRAMING_BYTES = 16 + 80 + 24 + 16
"""Of a partition segment of up to 64 KiB, beside its batches: header, index of one row, trailer."""
SETTINGS = {
    "compaction_interval_ms": 1,
    "compaction_age_ms_min": 1,
    "partition_segment_bytes": 2 * BATCH_BYTES - 1,
    "compaction_check_interval_ms": 0,
    "log_retention_check_interval_ms": 0,
    "checkpoint_interval_ms": 0,
}
"""Nothing is done but by hand; two batches are a full partition segment, and one is not merged."""
EARLIEST, LATEST = -2, -1
STEPS = {"write": 8, "wait": 4, "compact": 3, "retain": 4, "delete": 1, "sweep": 1}
"""How often each comes."""
TOPIC, OTHER = "t", "beside"
CONFIGS = (
    {"retention.ms": str(10 * HOUR_MS)},
    {"retention.ms": "-1", "retention.bytes": str(7 * BATCH_BYTES)},
    {"retention.ms": str(20 * HOUR_MS), "retention.bytes": str(20 * BATCH_BYTES)},
    {"retention.ms": "-1"},
)


@dataclass(frozen=True, slots=True)
class Batch:
    """Of one record."""

    offset: int
    timestamp_ms: int
    value: bytes


@dataclass
class Model:
    """A partition. `moved` parts stand in partition segments."""

    retention_ms: int
    retention_bytes: int
    log_start: int = 0
    end: int = 0
    moved: list[list[Batch]] = field(default_factory=list)
    waiting: list[Batch] = field(default_factory=list)

    def append(self, batch: Batch) -> None:
        self.waiting.append(batch)
        self.end += 1

    def compact(self) -> None:
        kept = [batch for batch in self.waiting if batch.offset >= self.log_start]
        self.moved += [kept[at : at + 2] for at in range(0, len(kept), 2)]
        self.waiting = []

    def parts(self) -> list[list[Batch]]:
        every = [*self.moved, *([batch] for batch in self.waiting)]
        return [part for part in every if part[-1].offset >= self.log_start]

    def live(self) -> list[Batch]:
        return [batch for part in self.parts() for batch in part if batch.offset >= self.log_start]

    def retain(self, now_ms: int) -> None:
        left = self.parts()

        def drop_first() -> None:
            left.pop(0)
            self.log_start = left[0][0].offset if left else self.end

        if self.retention_bytes >= 0:
            excess = sum(map(len, left)) * BATCH_BYTES - self.retention_bytes
            while left and excess >= len(left[0]) * BATCH_BYTES:
                excess -= len(left[0]) * BATCH_BYTES
                drop_first()
        if self.retention_ms >= 0:
            while left and now_ms - max(b.timestamp_ms for b in left[0]) > self.retention_ms:
                drop_first()

    def first_since(self, timestamp_ms: int) -> tuple[int, int]:
        """Offset and timestamp, as ListOffsets tells them."""
        for batch in self.live():
            if batch.timestamp_ms >= timestamp_ms:
                return batch.offset, batch.timestamp_ms
        return -1, -1

    def segment_sizes(self) -> list[int]:
        """Of the objects that its partition segments are."""
        live = [part for part in self.moved if part[-1].offset >= self.log_start]
        return sorted(len(part) * BATCH_BYTES + FRAMING_BYTES for part in live)


@dataclass
class RetentionFigures:
    seeds: int
    steps: int = 0
    batches: int = 0
    log_starts_moved: int = 0
    by_delete_records: int = 0
    objects_deleted: int = 0
    checked_batches: int = 0
    out_of_range: int = 0
    seconds: float = 0.0

    def as_json(self) -> Figures:
        return asdict(self)


def make_batch(timestamp_ms: int, number: int) -> tuple[bytes, bytes]:
    """`BATCH_BYTES` of one record, and its value."""
    value = b"%d" % number
    while len(made := build_batch([(None, value)], timestamps=[timestamp_ms])) < BATCH_BYTES:
        value += b"." * (BATCH_BYTES - len(made))
    while len(made) > BATCH_BYTES:
        value = value[:-1]
        made = build_batch([(None, value)], timestamps=[timestamp_ms])
    assert len(made) == BATCH_BYTES
    return made, value


class RetainedLog:
    """A broker whose duties are told when to run, topic `t` with a partition for each of
    `configs`, and the model of each; `hours` pass for broker and bucket alike."""

    def __init__(self, brokers: Brokers, figures: RetentionFigures) -> None:
        self.brokers = brokers
        self.figures = figures
        self.now_ms = BEGIN_MS
        brokers.memory._clock = lambda: self.now_ms
        self.models: dict[str, Model] = {}
        self._number = 0

    async def start(self, configs: Sequence[dict[str, str]]) -> Rig:
        """A topic of one partition for each, and one beside them that makes news."""
        self.rig = await self.brokers.start(**SETTINGS)
        self.rig.clock_ms = self.now_ms
        for number, values in enumerate(configs):
            await self._create(f"{TOPIC}{number}", values)
            self.models[f"{TOPIC}{number}"] = Model(
                int(values["retention.ms"]), int(values.get("retention.bytes", "-1"))
            )
        await self._create(OTHER, {"retention.ms": "0"})
        return self.rig

    async def _create(self, name: str, configs: dict[str, str]) -> None:
        rows = [{"name": key, "value": value} for key, value in configs.items()]
        topic = {"name": name, "num_partitions": 1, "replication_factor": 1}
        topic |= {"configs": rows, "assignments": ()}
        answer = await self.rig.call(
            ApiKey.CREATE_TOPICS, 5, topics=[topic], timeout=20_000, validate_only=False
        )
        assert answer.topics[0].error_code is NONE

    def key(self, name: str) -> TopicIdPartition:
        topic = self.rig.view.topic(name)
        assert topic is not None
        return TopicIdPartition(topic.topic_id, 0)

    def wait(self, milliseconds: int) -> None:
        self.now_ms += milliseconds
        self.rig.clock_ms = self.now_ms

    async def write(self, name: str, *, late_ms: int = 0) -> None:
        """A batch whose timestamp lies back so far."""
        self._number += 1
        data, value = make_batch(self.now_ms - late_ms, self._number)
        rows = [{"name": name, "partition_data": [{"index": 0, "records": data}]}]
        answer = await self.rig.call(ApiKey.PRODUCE, 9, acks=-1, timeout=20_000, topic_data=rows)
        row = answer.responses[0].partition_responses[0]
        assert row.error_code is NONE
        model = self.models.get(name)
        if model is not None:
            assert row.base_offset == model.end
            model.append(Batch(row.base_offset, self.now_ms - late_ms, value))
            self.figures.batches += 1

    async def compact(self) -> None:
        self.wait(SECOND_MS)
        await self.rig.duties.compactor.round()
        for model in self.models.values():
            model.compact()

    async def retain(self) -> None:
        await self.rig.duties.retention.round()
        for model in self.models.values():
            before = model.log_start
            model.retain(self.now_ms)
            self.figures.log_starts_moved += model.log_start > before

    async def delete_records(self, name: str, offset: int) -> None:
        rows = [{"partition_index": 0, "offset": offset}]
        answer = await self.rig.call(
            ApiKey.DELETE_RECORDS, 2, topics=[{"name": name, "partitions": rows}], timeout=20_000
        )
        model = self.models[name]
        self.figures.by_delete_records += offset > model.log_start
        model.log_start = max(model.log_start, offset)
        row = answer.topics[0].partitions[0]
        assert (row.error_code, row.low_watermark) == (NONE, model.log_start)

    async def delete_topic(self, name: str) -> TopicIdPartition:
        gone = self.key(name)
        answer = await self.rig.call(ApiKey.DELETE_TOPICS, 5, topic_names=[name], timeout=20_000)
        assert answer.responses[0].error_code is NONE
        del self.models[name]
        return gone

    async def delete_objects(self) -> int:
        """Two checkpoints with news, then the duty."""
        for _ in range(2):
            for _ in range(2):
                await self.write(OTHER)
            assert await self.rig.checkpointer.write() is not None
        deleted = await self.rig.duties.deleter.round()
        self.figures.objects_deleted += deleted
        return deleted

    async def delete_all_that_may_go(self) -> None:
        """What has left tiers by now goes, a safety age later. Floors are an hour apart."""
        self.wait(HOUR_MS)
        await self.delete_objects()
        self.wait(SAFETY_AGE_HOURS * HOUR_MS)
        await self.delete_objects()

    def segment_sizes(self, name: str) -> list[int]:
        """Of the partition segments in the bucket."""
        there = keys.tier_of(keys.SEGMENTS, self.key(name))
        return sorted(info.size_bytes for info in self.brokers.memory.list(there))

    # What a client and the bucket's reader are told ----------------------------------------------

    async def check(self) -> None:
        self.figures.steps += 1
        found = contents_of(self.brokers.memory)
        for name, model in self.models.items():
            assert await self.list_offset(name, EARLIEST) == (model.log_start, -1), name
            assert await self.list_offset(name, LATEST) == (model.end, -1), name
            live = model.live()
            assert await self.fetched(name, model.log_start) == live, name
            _check_bucket(found.get(self.key(name)), model)
            self.figures.checked_batches += len(live)
            if model.log_start:
                row = await self._fetch(name, model.log_start - 1)
                assert row.error_code is ErrorCode.offset_out_of_range
                assert row.log_start_offset == -1, "as in Kafka, an error has no watermarks"
                self.figures.out_of_range += 1

    async def check_times(self, name: str, times: Sequence[int]) -> None:
        for timestamp_ms in times:
            expected = self.models[name].first_since(timestamp_ms)
            assert await self.list_offset(name, timestamp_ms) == expected, (name, timestamp_ms)

    async def list_offset(self, name: str, timestamp: int) -> tuple[int, int]:
        rows = [{"partition_index": 0, "timestamp": timestamp}]
        topics = [{"name": name, "partitions": rows}]
        deadline = Deadline("the broker cannot look up offsets")
        while True:
            answer = await self.rig.call(
                ApiKey.LIST_OFFSETS, 7, replica_id=-1, isolation_level=0, topics=topics
            )
            row = answer.topics[0].partitions[0]
            if row.error_code is not ErrorCode.leader_not_available:  # Redis is slow: ask again
                assert row.error_code is NONE
                return int(row.offset), _ms(row.timestamp)
            await deadline.pause_async()

    async def _fetch(self, name: str, offset: int) -> Any:
        answer = await self.rig.call(ApiKey.FETCH, 11, **fetch_values(name, {0: offset}))
        return answer.responses[0].partitions[0]

    async def fetched(self, name: str, offset: int) -> list[Batch]:
        found: list[Batch] = []
        while True:
            row = await self._fetch(name, offset)
            assert row.error_code is NONE, row
            some = _batches(bytes(row.records or b""))
            if not some:
                return found
            found += [batch for batch in some if batch.offset >= offset]
            offset = some[-1].offset + 1


def _ms(moment: datetime | int) -> int:
    """kio gives -1 for none."""
    return moment if isinstance(moment, int) else round(moment.timestamp() * 1000)


def _batches(data: bytes) -> list[Batch]:
    found, at = [], 0
    while at < len(data):
        header = read_header(data, at)
        (record,) = decode_records(data[at : at + header.size_bytes], header)
        found.append(Batch(record.offset, record.timestamp, bytes(record.value or b"")))
        at += header.size_bytes
    return found


def _check_bucket(found: PartitionContent | None, model: Model) -> None:
    assert found is not None or not model.end
    if found is not None:
        assert (found.log_start, found.withheld) == (model.log_start, 0)
        batches = [each for data in found.batches for each in _batches(data)]
        assert [each for each in batches if each.offset >= model.log_start] == model.live()


async def walk(log: RetainedLog, chance: Random, steps: int) -> None:
    """Random steps, each checked; in the end all that may go is gone, to the byte."""
    await log.start(CONFIGS)
    names = list(log.models)
    for _ in range(steps):
        (step,) = chance.choices(list(STEPS), list(STEPS.values()))
        match step:
            case "write":
                for _ in range(chance.randrange(1, 7)):
                    await log.write(chance.choice(names), late_ms=chance.choice((0, 0, HOUR_MS)))
            case "wait":
                log.wait(chance.randrange(12 * HOUR_MS))
            case "compact":
                await log.compact()
            case "retain":
                await log.retain()
            case "delete":
                name = chance.choice(names)
                model = log.models[name]
                await log.delete_records(name, chance.randint(model.log_start, model.end))
            case "sweep":
                await log.delete_objects()
        await log.check()
        name = chance.choice(names)
        since = [batch.timestamp_ms for batch in log.models[name].live()]
        await log.check_times(name, [0, log.now_ms + 1, *chance.sample(since, min(3, len(since)))])
    gone = await log.delete_topic(names[0])
    await log.retain()
    await log.compact()
    await log.check()
    await log.delete_all_that_may_go()
    await log.check()
    for name, model in log.models.items():
        assert log.segment_sizes(name) == model.segment_sizes(), name
    assert not list(log.brokers.memory.list(keys.tier_of(keys.SEGMENTS, gone)))


def retention(seeds: int, steps: int) -> RetentionFigures:
    """Raises `AssertionError` where something is not as computed; nothing is left running."""
    began = time.perf_counter()
    figures = RetentionFigures(seeds)
    for seed in range(seeds):
        asyncio.run(_walk_alone(figures, seed, steps))
    figures.seconds = round(time.perf_counter() - began, 1)
    return figures


async def _walk_alone(figures: RetentionFigures, seed: int, steps: int) -> None:
    with TemporaryDirectory(prefix="bucketlog-retention-") as folder:
        valkey = OwnValkey(Path(folder))
        valkey.start()
        try:
            async with AsyncExitStack() as stack:
                await walk(RetainedLog(Brokers(valkey, stack), figures), Random(seed), steps)
        finally:
            valkey.stop()
