"""A log of many small batches is compacted by a real broker, and read by everybody as before.

At full size, from the repository's root: `make prove WHAT=compaction`. First one broker compacts
all of it and deletes what is left over; it answers pings meanwhile, which shows how long its event
loop stands still. Then, on a smaller log and slowed down, broker and Valkey are killed by SIGKILL
again and again in the middle of it, and come back, Valkey empty.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import Any

import psutil

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.metadata.checkpoint import restored
from bucketlog.metadata.fold import LogState, fold
from bucketlog.metadata.partition_tiers import partition_tiers
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import Body, Span, Suffix, SyncBucket
from bucketlog.tiered_storage.log_cut import readable
from bucketlog.tiered_storage.log_cut_reading import read_log
from bucketlog.tiered_storage.tier_plan import CompactionSettings, plan_merge
from bucketlog.tiered_storage.tier_reader import read_batches, read_rows
from tests.rigs.patience import PATIENCE_S, eventually, let_pass
from tests.rigs.wire_client import WireClient, build_batch, fetch_values
from tests.scenarios.failover import percentile
from tests.scenarios.small_batches import (
    BATCH_BYTES,
    FIRST_PRODUCER_ID,
    TOPIC,
    SmallBatch,
    SmallBatches,
    write_small_batches,
)
from tests.servers.cluster import Cluster, ClusterBroker, running_cluster

MIB = 1 << 20
TICKS = "ticks"
COMPACTED_WITHIN_S = 10 * PATIENCE_S
QUIET_S = 1.0
PING_PAUSE_S = 0.002
SAFETY_AGE_MS = 2_000
LOG_END_SEGMENTS = 100
IDLE = {
    "checkpoint_interval_ms": "0",
    "compaction_check_interval_ms": "0",
    "deletion_safety_age_ms": "0",
    "log_retention_check_interval_ms": "0",
}
"""No duty at work: whatever is read from the bucket, a client has asked for."""


class CountedGets:
    """`SyncBucket` around another one, which it borrows."""

    def __init__(self, bucket: SyncBucket) -> None:
        self._bucket = bucket
        self.gets = 0
        self.create, self.list = bucket.create, bucket.list
        self.delete, self.head, self.close = bucket.delete, bucket.head, bucket.close

    def get(self, key: str, span: Span | Suffix | None = None) -> Body:
        self.gets += 1
        return self._bucket.get(key, span)


@dataclass(frozen=True, slots=True)
class Found:
    """What a reader of the bucket alone finds: digests as in `SmallBatches`, the state after all,
    how many partition segments and objects in all are read by somebody who reads all of it, and the
    GETs of partition 0."""

    digests: tuple[str, ...]
    state: LogState
    rows: int
    referenced: int
    waiting_segments: int
    gets: int


def find(bucket: SyncBucket, wrote: SmallBatches) -> Found:
    snapshot = read_log(bucket)
    state = fold(snapshot.segments, onto=restored(snapshot.checkpoint))
    parts = readable(snapshot, partition_tiers(state))
    counted = CountedGets(bucket)
    digests, waiting, segments, manifests, gets = [], set(), 0, 0, 0
    for number in range(wrote.partitions):
        key = wrote.partition(number)
        digest = blake2b(digest_size=16)
        before = counted.gets
        rows = read_rows(counted, {key: parts[key].rows})[key]
        segments += len(rows)
        manifests += sum(row.manifest for row in parts[key].rows)
        for row in rows:
            for walked in read_batches(counted, key, row):
                for _, batch in walked.batches():
                    digest.update(batch)
        for segment, _, batch_row in parts[key].batches:
            digest.update(
                counted.get(keys.segment(segment), Span(batch_row.position, batch_row.length)).data
            )
            waiting.add(segment)
        gets = counted.gets - before if number == 0 else gets
        digests.append(digest.hexdigest())
    tail = {index.segment for index in snapshot.segments}
    beside = [
        info
        for kind in (keys.CHECKPOINTS, keys.FLOORS, keys.WRITERS, keys.EPOCHS, keys.CLUSTER)
        for info in bucket.list(kind)
    ]
    referenced = segments + manifests + len(waiting | tail) + len(beside)
    return Found(tuple(digests), state, segments, referenced, len(waiting), gets)


def check_same(found: Found, wrote: SmallBatches, before: LogState) -> None:
    """Every batch, and every producer's last sequences."""
    differing = [
        number
        for number, pair in enumerate(zip(found.digests, wrote.digests, strict=True))
        if len(set(pair)) > 1
    ]
    assert not differing, f"partitions {differing[:10]} are not what was written"
    for number in range(wrote.partitions):
        key = wrote.partition(number)
        producers = found.state.partitions[key].producers
        assert producers == before.partitions[key].producers, f"producers of partition {number}"


def fetch_digest(client: WireClient, wrote: SmallBatches, number: int) -> str:
    """As a consumer reads the partition, from its beginning to its end."""
    digest, offset = blake2b(digest_size=16), 0
    while offset < wrote.segments:
        answer = client.call(
            ApiKey.FETCH, 11, **fetch_values(TOPIC, {number: offset}, max_wait=500)
        )
        (row,) = answer.responses[0].partitions
        data = bytes(row.records or b"")
        assert data, f"partition {number} at {offset}: {row.error_code!r}"
        digest.update(data)
        offset += len(data) // BATCH_BYTES
    return digest.hexdigest()


def check_fetched(broker: ClusterBroker, wrote: SmallBatches, numbers: Iterator[int]) -> None:
    with WireClient(broker.bootstrap) as client:
        for number in numbers:
            found = fetch_digest(client, wrote, number)
            assert found == wrote.digests[number], f"fetches of partition {number} give other bytes"


def fetch_gets(broker: ClusterBroker, wrote: SmallBatches) -> int:
    """What reading partition 0 costs, by a broker that has just started and has no duties."""
    before = _metric(broker, 'bucketlog_bucket_requests_total{verb="get"}')
    check_fetched(broker, wrote, iter([0]))
    return round(_metric(broker, 'bucketlog_bucket_requests_total{verb="get"}') - before)


def _metric(broker: ClusterBroker, name: str) -> float:
    return broker.running.metrics().get(name, 0.0)


def produce(broker: ClusterBroker, number: int, offset: int) -> tuple[str, int]:
    """The batch of that offset; error and offset of the answer."""
    batch = bytes(8) + SmallBatch(number).at(offset, time.time_ns() // 1_000_000)[8:]
    rows = [{"name": TOPIC, "partition_data": [{"index": number, "records": batch}]}]
    with WireClient(broker.bootstrap) as client:
        answer = client.call(ApiKey.PRODUCE, 9, acks=-1, timeout=20_000, topic_data=rows)
    row = answer.responses[0].partition_responses[0]
    return row.error_code.name, row.base_offset


def check_producers_go_on(broker: ClusterBroker, wrote: SmallBatches, next_offset: int) -> None:
    """A repetition is answered as the first time, a gap is refused, what comes next is taken. The
    log has one batch of partition 0 more afterwards."""
    for number in (0, wrote.partitions - 1):
        last = next_offset - 1 if number == 0 else wrote.segments - 1
        told = produce(broker, number, last)
        assert told == ("none", last), f"a batch of producer {FIRST_PRODUCER_ID + number}: {told}"
    gap, _ = produce(broker, 0, next_offset + 5)
    assert gap == "out_of_order_sequence_number", gap
    told = produce(broker, 0, next_offset)
    assert told == ("none", next_offset), told


class Pings:
    """Asks the broker something that it answers at once, all the while."""

    def __init__(self, bootstrap: str) -> None:
        self._client = WireClient(bootstrap, timeout_s=PATIENCE_S)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pings")
        self.took_ms: list[float] = []

    def _run(self) -> None:
        while not self._over.wait(PING_PAUSE_S):
            began = time.perf_counter()
            self._client.call(ApiKey.API_VERSIONS, 0)
            self.took_ms.append((time.perf_counter() - began) * 1000)

    def __enter__(self) -> "Pings":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._client.close()

    def as_json(self) -> dict[str, float]:
        found = [percentile(self.took_ms, share) for share in (0.5, 0.99, 1.0)]
        return dict(
            zip(("p50_ms", "p99_ms", "max_ms"), (round(ms, 1) for ms in found), strict=True)
        )


@contextmanager
def _running(cluster: Cluster, **settings: str) -> Iterator[ClusterBroker]:
    """The cluster's one broker, with `settings` beside those that leave every duty idle."""
    (broker,) = cluster.brokers
    broker.settings |= IDLE | settings
    broker.start()
    yield broker
    broker.end()


def wait_until(what: str, done: Any) -> None:
    eventually(done, what, bound_s=COMPACTED_WITHIN_S, pause_s=QUIET_S)


@dataclass(frozen=True, slots=True)
class CompactionFigures:
    segments: int
    partitions: int
    log_bytes: int
    objects_before: int
    write_s: float
    compact_s: float
    broker_rss_idle_mib: int
    broker_rss_max_mib: int
    pings_idle: dict[str, float]
    pings_compacting: dict[str, float]
    referenced: int
    objects_after_deletion: int
    partition_bytes: int
    fetch_gets_before: int
    fetch_gets: int
    bucket_gets: int

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def compaction(segments: int, partitions: int) -> CompactionFigures:
    """Raises `AssertionError` where a record is not what it was; nothing is left running."""
    with running_cluster(0, late=1) as cluster:
        bucket = cluster.open_bucket()
        began = time.perf_counter()
        wrote = write_small_batches(bucket, segments, partitions)
        write_s = time.perf_counter() - began
        before = read_state(bucket)
        objects_before = sum(1 for _ in bucket.list(""))
        with _running(cluster) as broker:
            gets_before = fetch_gets(broker, wrote)
        compacted = _compact(cluster, wrote)
        found = find(bucket, wrote)
        check_same(found, wrote, before)
        with _running(cluster) as broker:
            gets = fetch_gets(broker, wrote)
            check_fetched(broker, wrote, iter(range(partitions)))
        objects_after = _delete(cluster, found.rows)
        check_same(find(bucket, wrote), wrote, before)
        cluster.valkey.wipe()
        with _running(cluster) as broker:
            check_fetched(broker, wrote, iter(range(0, partitions, 10)))
            check_producers_go_on(broker, wrote, segments)
            cluster.valkey.wipe()
            check_producers_go_on(broker, wrote, segments + 1)
        bucket.close()
    return CompactionFigures(
        segments=segments,
        partitions=partitions,
        log_bytes=wrote.log_bytes,
        objects_before=objects_before,
        write_s=round(write_s, 1),
        referenced=found.referenced,
        objects_after_deletion=objects_after,
        partition_bytes=wrote.partition_bytes,
        fetch_gets_before=gets_before,
        fetch_gets=gets,
        bucket_gets=found.gets,
        **compacted,
    )


def read_state(bucket: SyncBucket) -> LogState:
    snapshot = read_log(bucket)
    return fold(snapshot.segments, onto=restored(snapshot.checkpoint))


def is_compacted(bucket: SyncBucket, wrote: SmallBatches) -> bool:
    """Every batch stands in a tier, and what is still worth merging is merged."""
    state, plan = read_state(bucket), CompactionSettings()
    tiers = [state.partitions[wrote.partition(number)] for number in range(wrote.partitions)]
    return all(
        each.tier.end == wrote.segments
        and not plan_merge(each.tier.rows, quiet=True, settings=plan)
        for each in tiers
    )


def _compact(cluster: Cluster, wrote: SmallBatches) -> dict[str, Any]:
    """With the default settings but for looking more often. Checkpoints are written meanwhile."""
    bucket = cluster.open_bucket()
    every = {"checkpoint_interval_ms": "5000", "compaction_check_interval_ms": "5000"}
    with _running(cluster, **every) as broker, Pings(broker.bootstrap) as pings:
        process = psutil.Process(broker.running.process.pid)
        rss = [process.memory_info().rss]
        let_pass(QUIET_S)
        idle, pings.took_ms = pings.as_json(), []
        began = time.perf_counter()

        def done() -> bool:
            rss.append(process.memory_info().rss)
            return _metric(
                broker, "bucketlog_split_segments_total"
            ) >= wrote.segments and is_compacted(bucket, wrote)

        wait_until("the log is not compacted", done)
        took_s = time.perf_counter() - began
        busy = pings.as_json()
    return {
        "compact_s": round(took_s, 1),
        "broker_rss_idle_mib": rss[0] // MIB,
        "broker_rss_max_mib": max(rss) // MIB,
        "pings_idle": idle,
        "pings_compacting": busy,
    }


def _delete(cluster: Cluster, rows: int) -> int:
    """Until only what the tiers name is there, and the log's end; how many objects that are.
    Checkpoints are written only where there is news: somebody goes on producing."""
    bucket = cluster.open_bucket()
    settings = {
        "checkpoint_interval_ms": "1000",
        "deletion_safety_age_ms": str(SAFETY_AGE_MS),
    }
    with _running(cluster, **settings) as broker, WireClient(broker.bootstrap) as client:
        topic = {"name": TICKS, "num_partitions": 1, "replication_factor": 1}
        topic |= {"configs": (), "assignments": ()}
        client.call(ApiKey.CREATE_TOPICS, 5, topics=[topic], timeout=20_000, validate_only=False)
        batch = build_batch([(None, b"tick")])
        ticks = [{"name": TICKS, "partition_data": [{"index": 0, "records": batch}]}]

        def done() -> bool:
            client.call(ApiKey.PRODUCE, 9, acks=-1, timeout=20_000, topic_data=ticks)
            there = [sum(1 for _ in bucket.list(kind)) for kind in (keys.LOG, keys.SEGMENTS)]
            return there[0] < LOG_END_SEGMENTS and there[1] == rows

        wait_until("what is left over is not deleted", done)
    return sum(1 for _ in bucket.list(""))
