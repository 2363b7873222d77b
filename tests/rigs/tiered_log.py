"""One partition whose batches stand in log segments, partition segments and manifests of a bucket
in memory, as a test lays them out; and the broker's own handlers to read it with."""

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple, cast
from uuid import UUID

from kio.schema.errors import ErrorCode

from bucketlog.log_format.batch import read_header
from bucketlog.log_format.model import (
    BatchIndex,
    Buffer,
    SegmentIndex,
    TierObject,
    TierRow,
    TopicIdPartition,
)
from bucketlog.log_format.wire import fetch
from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.fetch import FetchRequest
from bucketlog.log_format.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from bucketlog.metadata.facts import Fact, TopicCreated
from bucketlog.metadata.sequencer.client import Sequencer
from bucketlog.metadata.sequencer.live_brokers import BrokerAddress
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.authorization.authorizer import Access
from bucketlog.stateless_broker.fetch.read_ahead import ReadAhead
from bucketlog.stateless_broker.fetch.reading import RangeReader, ReadLimits
from bucketlog.stateless_broker.fetch.segment_cache import SegmentCache
from bucketlog.stateless_broker.fetch.session_cache import FetchSessions, SessionLimits
from bucketlog.stateless_broker.fetch.tier_objects import TierObjects
from bucketlog.stateless_broker.fetch.tier_reading import TierReader
from bucketlog.stateless_broker.fetch.tier_times import TierTimes
from bucketlog.stateless_broker.fetch.watching import Watchers
from bucketlog.stateless_broker.handlers.fetch import FetchHandler
from bucketlog.stateless_broker.handlers.fetch_lookup import FetchLookup
from bucketlog.stateless_broker.handlers.fetch_waiting import FetchWaiting
from bucketlog.stateless_broker.handlers.list_offsets import ListOffsetsHandler
from bucketlog.stateless_broker.handlers.partition_reads import (
    BatchSources,
    FetchLimits,
    PartitionReads,
)
from bucketlog.stateless_broker.health import Health
from bucketlog.stateless_broker.membership.membership import Membership, MembershipTimeouts
from bucketlog.stateless_broker.network.apis import Request, RequestHeader
from bucketlog.stateless_broker.network.connection import Connection
from bucketlog.stateless_broker.network.turns import Turns
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from bucketlog.tiered_storage.backends.threaded import ThreadedBucket
from bucketlog.tiered_storage.bucket import Body, Bucket, Span, Suffix
from bucketlog.tiered_storage.counting import CountingBucket
from bucketlog.tiered_storage.manifest import encode_manifest
from bucketlog.tiered_storage.segment import batch_row
from tests.models.indexes import begin, segment, swap, swapped
from tests.models.partition_batches import PARTITION, next_of, written
from tests.rigs.access import EVERYTHING
from tests.rigs.broker_rig import Client
from tests.rigs.topic_keys import topic_keys
from tests.rigs.wire_client import decode_response

MIB = 1 << 20
SECOND = TopicIdPartition(PARTITION.topic_id, PARTITION.partition + 1)
TOPIC = "t"


class FetchAnswer(NamedTuple):
    error: ErrorCode
    high_watermark: int
    log_start: int
    data: bytes
    last_stable_offset: int = -1
    aborted: Sequence[tuple[int, int]] | None = None
    """Producer ids and first offsets."""


class InLoop(ThreadedBucket):
    """Answers in the event loop, after giving others their turn: fast, and in one order."""

    def __init__(self, objects: MemoryBucket) -> None:
        super().__init__(objects)
        self._objects = objects

    async def get(self, key: str, span: Span | Suffix | None = None) -> Body:
        await asyncio.sleep(0)
        return self._objects.get(key, span)


class TieredLog:
    def __init__(
        self,
        *,
        ahead: int = 8 * MIB,
        history: int = 64 * MIB,
        index_bytes: int = MIB,
        places: int = 1000,
        bytes_max: int = 64 * MIB,
        partitions: int = 2,
        around: "type[BucketAroundLog] | None" = None,
    ) -> None:
        self.objects = MemoryBucket()
        inner: Bucket = InLoop(self.objects)
        self.bucket = CountingBucket(inner if around is None else around(inner, self))
        self.view = View()
        self.partition = PARTITION
        self.cache = SegmentCache(recent_bytes_max=0, history_bytes_max=history)
        self.reader = RangeReader(
            self.bucket, self.cache, Health(), limits=ReadLimits(4, 4, 60_000)
        )
        tier_objects = TierObjects(self.reader, bytes_max=index_bytes)
        self.tier = TierReader(self.reader, tier_objects, bytes_ahead=ahead, places_max=places)
        self.watchers = Watchers()
        self.turns = Turns()
        limits = FetchLimits(bytes_max, 60_000, 60_000)
        reads = PartitionReads(
            view=self.view,
            sources=BatchSources(self.reader, ReadAhead(self.reader, bytes_ahead=ahead), self.tier),
            keys=topic_keys(self.view),
            limits=limits,
            turns=self.turns,
        )
        self.sessions = FetchSessions(
            view=self.view,
            watchers=self.watchers,
            limits=SessionLimits(1_000, 64 * MIB, 10_000),
            random=Random(1),
            now_ms=lambda: 0,
        )
        self._fetch = FetchHandler(
            lookup=FetchLookup(
                view=self.view, membership=_alone(), catch_up=self._caught_up, turns=self.turns
            ),
            waiting=FetchWaiting(
                reads=reads, watchers=self.watchers, limits=limits, turns=self.turns
            ),
            reads=reads,
            sessions=self.sessions,
            turns=self.turns,
        )
        self._list_offsets = ListOffsetsHandler(
            view=self.view,
            reader=self.reader,
            tier=TierTimes(self.reader, tier_objects),
            keys=topic_keys(self.view),
            catch_up=self._caught_up,
            turns=Turns(),
        )
        self.catch_ups = 0
        """How often a request has asked the sequencer."""
        self.answered: list[Buffer] = []
        """The parts of the last answer."""
        self._ticket = 0
        topic_id = UUID(bytes=PARTITION.topic_id)
        self.tell(
            TopicCreated(topic_id=topic_id, name=TOPIC, partitions=PARTITION.partition + partitions)
        )

    async def _caught_up(self) -> bool:
        self.catch_ups += 1
        return True

    @property
    def gets(self) -> int:
        return self.bucket.snapshot().gets

    @property
    def rows(self) -> list[TierRow]:
        log = self.view.log(PARTITION)
        assert log is not None
        return log.tier.rows

    def tell(self, *facts: Fact) -> None:
        self._apply(segment(self._ticket, {}, *facts))
        self._ticket += 1

    def _apply(self, index: SegmentIndex) -> None:
        change = self.view.apply(index)
        self.watchers.notify(change.partitions)
        self.watchers.notify(change.moved)

    def append(
        self,
        batches: Sequence[bytes],
        partition: TopicIdPartition = PARTITION,
        *,
        facts: Sequence[Fact] = (),
    ) -> None:
        """A log segment of them."""
        rows: list[BatchIndex] = []
        position = 16
        for batch in batches:
            header = read_header(batch)
            rows.append(batch_row(header, header.base_offset, position, len(batch)))
            position += len(batch)
        index = segment(self._ticket, {partition: rows}, *facts)
        assert self.objects.create(keys.segment(index.segment), [bytes(16), *batches])
        self._apply(index)
        self._ticket += 1

    def split(self, batches: Sequence[bytes], start: int, end: int | None = None) -> TierRow:
        """They stand in a partition segment from now on, of which the tier ends at `end`."""
        end = next_of(batches, start) if end is None else end
        if not batches:
            self.tell(swapped(swap(PARTITION, start, end)))
            return TierRow(start, end, "", False, 0, 0, 0)
        row = self.write(batches, start, end)
        self.tell(swapped(swap(PARTITION, start, end, row)))
        return row

    def write(self, batches: Sequence[bytes], start: int, end: int) -> TierRow:
        """A partition segment that no row names yet."""
        made = written(batches, start, end, self._name())
        assert self.objects.create(keys.tier_object(made.there), made.parts)
        return made.row

    def list_in_manifest(self, rows: Sequence[TierRow]) -> TierRow:
        made = encode_manifest(PARTITION, rows, self._name())
        assert self.objects.create(keys.tier_object(made.there), [made.data])
        self.replace(rows, made.row)
        return made.row

    def replace(self, rows: Sequence[TierRow], *added: TierRow) -> None:
        names = [row.name for row in rows]
        self.tell(swapped(swap(PARTITION, rows[0].start, rows[-1].end, *added, replaced=names)))

    def begin_at(self, offset: int) -> None:
        self.tell(begin({PARTITION: offset}))

    def delete(self, row: TierRow) -> None:
        self.objects.delete([keys.tier_object(self.there(row))])

    @staticmethod
    def there(row: TierRow) -> TierObject:
        return TierObject.of(PARTITION, row)

    def _name(self) -> str:
        return keys.tier_name(segment(self._ticket).ticket, f"{self._ticket:016x}")

    async def fetch(
        self,
        offset: int,
        max_bytes: int = MIB,
        *,
        wait_ms: int = 0,
        min_bytes: int = 1,
        isolation: int = 0,
    ) -> FetchAnswer:
        (found,) = await self.fetch_all(
            [(PARTITION, offset, max_bytes)],
            wait_ms=wait_ms,
            min_bytes=min_bytes,
            isolation=isolation,
        )
        return found

    async def fetch_all(
        self,
        wanted: Sequence[tuple[TopicIdPartition, int, int]],
        *,
        max_bytes: int = 64 * MIB,
        wait_ms: int = 0,
        min_bytes: int = 1,
        isolation: int = 0,
    ) -> list[FetchAnswer]:
        """Partition, offset and bytes of each."""
        partitions = fetch.FetchPartitions(
            fetch.FetchedPartition(TOPIC, None, partition.partition, -1, offset, most)
            for partition, offset, most in wanted
        )
        message = fetch.FetchRequest(
            wait_ms, min_bytes, max_bytes, isolation, 0, -1, partitions.each_once()
        )
        answer = await self.exchange(message)
        assert answer.error_code is ErrorCode.none
        return [
            FetchAnswer(
                row.error_code,
                row.high_watermark,
                row.log_start_offset,
                row.records or b"",
                row.last_stable_offset,
                None
                if row.aborted_transactions is None
                else [(each.producer_id, each.first_offset) for each in row.aborted_transactions],
            )
            for row in answer.responses[0].partitions
        ]

    async def exchange(
        self,
        message: FetchRequest,
        *,
        version: int = 12,
        access: Access = EVERYTHING,
        client: Client | None = None,
    ) -> Any:
        """The response of the handler, decoded."""
        header = RequestHeader(ApiKey.FETCH, version, 7, "")
        request = Request(header, cast(Connection, client or Client()), access)
        self.answered = parts = await self._fetch(request, message)
        _, answer = decode_response(ApiKey.FETCH, version, b"\0\0\0\x07\0" + b"".join(parts))
        return answer

    async def list_offset(
        self, timestamp: int, *, isolation: int = 0, name: str = TOPIC, number: int | None = None
    ) -> tuple[ErrorCode, int, int]:
        """Error, offset, timestamp."""
        number = PARTITION.partition if number is None else number
        row = ListOffsetsPartition(partition_index=number, timestamp=timestamp)
        topic = ListOffsetsTopic(name=name, partitions=(row,))
        message = ListOffsetsRequest(replica_id=-1, isolation_level=isolation, topics=(topic,))
        header = RequestHeader(ApiKey.LIST_OFFSETS, 8, 7, "")
        request = Request(header, cast(Connection, Client()), EVERYTHING)
        answer = await self._list_offsets(request, message)
        (told,) = answer["topics"][0]["partitions"]
        return told["error_code"], told["offset"], told["timestamp"]


class BucketAroundLog(CountingBucket):
    """A bucket of a test of its own, around the one that the log stands in."""

    def __init__(self, inner: Bucket, log: TieredLog) -> None:
        super().__init__(inner)
        self.log = log


def _alone() -> Membership:
    """Of a broker that has not handed over; nothing else is asked of it."""
    return Membership(
        sequencer=cast(Sequencer, None),
        cluster_id="",
        incarnation="",
        node_id=None,
        address=BrokerAddress("127.0.0.1", 0, ""),
        timeouts=MembershipTimeouts(0, 0, 0),
        health=Health(),
    )
