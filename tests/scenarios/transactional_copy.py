"""A transactional copy job while brokers and instances of the job are killed, and Redis has faults.

At full size, from the repository's root: `make prove WHAT=transactions`. Three brokers reach a
Valkey with a replica through ways. Each slot kills a process (kill -9) and starts it again: a
broker at the same port, or an instance of the job. The first slots also have one fault each: Redis
is wiped or fails over, or a coordinator is paused.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from random import Random

from confluent_kafka import Producer

import bucketlog
from bucketlog.inspect.verify import verify_log
from bucketlog.metadata.facts import TransactionEnded, decode_fact
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import SyncBucket
from bucketlog.tiered_storage.segment import check_segment, is_seal
from tests.models.fault_plan import Target
from tests.proofs.shortfall import Figures
from tests.rigs.patience import PATIENCE_S, Deadline, let_pass
from tests.scenarios.committed_watch import CommittedReader, Shown, committed_log
from tests.scenarios.copy_job import GROUP, SOURCE, CopyJob
from tests.scenarios.faults import broker_of
from tests.scenarios.round_trip import create_topic
from tests.servers.cluster import Cluster, Store, running_cluster
from tests.servers.replicated_valkey import ReplicatedValkey

BROKERS = 3
PARTITIONS = 6
SETTINGS = {
    "transactions": "true",
    "checkpoint_interval_ms": "5000",
    "flush_interval_ms": "0",
    "group_initial_rebalance_delay_ms": "0",
}
PAUSED_S = 10.0
LAG_S = 1.0
LOOK_S = 0.1
MOST_COMPLAINTS = 5

Place = tuple[str, int]
"""A topic and a partition number."""
Log = Mapping[Place, Shown]


@dataclass(slots=True)
class CopyFigures:
    store: str
    records: int
    batch: int
    transactions_committed: int = 0
    transactions_aborted: int = 0
    broker_kills: int = 0
    instance_kills: int = 0
    faults: dict[str, int] = field(default_factory=dict)
    longest_without_commit_s: float = 0.0
    """The longest pause that the consumer saw while the job ran."""
    producers_stuck: int = 0
    """The number of replaced librdkafka producers: see tests/scenarios/copier.py."""
    epochs: int = 0
    problems: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def as_json(self) -> Figures:
        return asdict(self)


def transactional_copy(
    store: Store,
    job: Callable[..., CopyJob],
    records: int,
    *,
    batch: int,
    slot_s: float,
    seed: int = 1,
) -> CopyFigures:
    """Run the scenario; `problems` lists what went wrong. Raises `AssertionError` if the job makes
    no progress, or ends before all faults have come. Stops all processes."""
    began = time.perf_counter()
    figures = CopyFigures(store, records, batch)
    with ExitStack() as closing:
        valkey = closing.enter_context(ReplicatedValkey().running())
        cluster = closing.enter_context(
            running_cluster(
                BROKERS, store=store, settings=SETTINGS, by_ways=True, replicated=valkey
            )
        )
        running = job(cluster.bootstrap, cluster.folder, batch=batch)
        for topic in (SOURCE, *running.targets):
            create_topic(cluster.brokers[0].bootstrap, topic, PARTITIONS)
        _fill(cluster, records)
        reader = CommittedReader(cluster.bootstrap, running.targets, PARTITIONS)
        reader.start()
        closing.callback(reader.stop)
        with running:
            wanted = records * len(running.targets)
            _Run(cluster, valkey, running, reader, figures, Random(seed)).go(wanted, slot_s)
            figures.producers_stuck = running.stuck
        reader.stop()
        figures.longest_without_commit_s = round(reader.longest_pause_s(), 1)
        figures.problems += [*running.problems, *reader.failures]
        _judge(cluster, reader.shown, running.targets, figures)
    figures.seconds = round(time.perf_counter() - began, 1)
    return figures


def _fill(cluster: Cluster, records: int) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True})
    for number in range(records):
        while True:
            try:
                producer.produce(SOURCE, b"%d" % number, partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(PATIENCE_S) == 0


class _Run:
    """Kills processes in turn while `reader` counts the copied records."""

    def __init__(
        self,
        cluster: Cluster,
        valkey: ReplicatedValkey,
        job: CopyJob,
        reader: CommittedReader,
        figures: CopyFigures,
        source: Random,
    ) -> None:
        self._cluster = cluster
        self._valkey = valkey
        self._job = job
        self._reader = reader
        self._figures = figures
        self._source = source
        self._faults: list[Callable[[], None]] = [
            self._wipe,
            self._pause_coordinator,
            self._fail_over,
            self._wipe,
        ]

    def go(self, wanted: int, slot_s: float) -> None:
        """Run until the reader has got `wanted` records. Fails if no new record comes for too
        long."""
        slot, next_s, seen = 0, time.monotonic() + slot_s / 2, 0
        deadline = self._deadline()
        while self._reader.count < wanted:
            if self._reader.count > seen:
                seen, deadline = self._reader.count, self._deadline()
            assert not self._reader.failures, self._reader.failures
            deadline.pause(LOOK_S)
            self._job.look()
            if time.monotonic() < next_s:
                continue
            if slot % 2 == 0 and slot // 2 < len(self._faults):
                self._faults[slot // 2]()
            elif slot % 2:
                self._kill(slot // 2)
            slot += 1
            next_s = max(next_s + slot_s / 2, time.monotonic())
        assert slot // 2 >= len(self._faults), (
            f"all was copied in slot {slot // 2} of {len(self._faults)}: too little to copy"
        )

    def _deadline(self) -> Deadline:
        return Deadline(
            lambda: f"{self._reader.count} records are copied; {self._job.problems[-1:]}"
        )

    def _kill(self, slot: int) -> None:
        if slot % 2:
            self._job.kill(self._source)
            self._figures.instance_kills += 1
            return
        broker = self._cluster.brokers[slot // 2 % BROKERS]
        broker.kill()
        broker.start()
        self._figures.broker_kills += 1

    def _count(self, fault: str) -> None:
        self._figures.faults[fault] = self._figures.faults.get(fault, 0) + 1

    def _wipe(self) -> None:
        self._valkey.wipe()
        self._count("wipe")

    def _pause_coordinator(self) -> None:
        broker = broker_of(
            self._cluster,
            Target.COORDINATOR,
            topic=SOURCE,
            group=GROUP,
            otherwise=self._cluster.brokers[0],
        )
        broker.stop_in_its_tracks()
        let_pass(PAUSED_S)
        broker.go_on()
        self._count("coordinator paused")

    def _fail_over(self) -> None:
        self._valkey.fail_over(LAG_S)
        self._valkey.bring_back()
        self._count("failover")


def _judge(cluster: Cluster, shown: Log, targets: Sequence[str], figures: CopyFigures) -> None:
    """Add problems, and counts of transactions from the bucket, to `figures`."""
    topics = (SOURCE, *targets)
    final = committed_log(cluster.bootstrap, topics, PARTITIONS)
    bucket = cluster.open_bucket()
    try:
        stored = _stored(cluster.bucket_url, topics)
        ends = Counter(end.committed for end in _ends(bucket))
        figures.epochs = sum(1 for _ in bucket.list(keys.EPOCHS))
        damage = [f"damage: {each}" for each in verify_log(bucket).damage]
    finally:
        bucket.close()
    figures.transactions_committed, figures.transactions_aborted = ends[True], ends[False]
    figures.problems += damage[:MOST_COMPLAINTS]
    figures.problems += complaints(final, shown, stored, targets)


def complaints(final: Log, shown: Log, stored: Log, targets: Sequence[str]) -> list[str]:
    """Return what is wrong. `final`: the records that a consumer gets in the end. `shown`: those
    that a consumer got while the job ran. `stored`: those in the bucket. Each partition of a target
    must have the values of the source's partition, in the same order."""
    found: list[str] = []
    for place, rows in final.items():
        topic, partition = place
        if rows != stored.get(place, []):
            found.append(f"{place}: the bucket has {_first(stored.get(place, []), rows)}")
        if topic not in targets:
            continue
        values = [value for _, value in rows]
        wanted = [value for _, value in final[SOURCE, partition]]
        if values != wanted:
            found.append(f"{place}: {_counts(values, wanted)}")
        if rows != shown[place]:
            found.append(f"{place}: the consumer was shown {_first(shown[place], rows)}")
    return found


def _first(found: Shown, wanted: Shown) -> str:
    """The first difference."""
    for number, (mine, theirs) in enumerate(zip(found, wanted, strict=False)):
        if mine != theirs:
            return f"{mine} as record {number}, not {theirs}"
    return f"{len(found)} records, not {len(wanted)}"


def _counts(values: Sequence[bytes], wanted: Sequence[bytes]) -> str:
    there, sent = Counter(values), Counter(wanted)
    lost, more = sent - there, there - sent
    if not lost and not more:
        return "all records, in another order"
    names = f"{sorted(lost)[:MOST_COMPLAINTS]} and {sorted(more)[:MOST_COMPLAINTS]}"
    return f"{lost.total()} are missing, {more.total()} are there too often: {names}"


def _stored(url: str, topics: Sequence[str]) -> Log:
    found: dict[Place, Shown] = {}
    for topic in topics:
        for record in bucketlog.replay(url, topic):
            found.setdefault((topic, record.partition), []).append((record.offset, record.value))
    return {place: sorted(rows) for place, rows in found.items()}


def _ends(bucket: SyncBucket) -> list[TransactionEnded]:
    """The ends of transactions in the log's segments. The log is young: no segment is split yet."""
    found: list[TransactionEnded] = []
    for info in bucket.list(keys.LOG):
        if is_seal(info.size_bytes):
            continue
        index = check_segment(info.key, bytes(bucket.get(info.key).data))
        facts = map(decode_fact, index.facts)
        found += [fact for fact in facts if isinstance(fact, TransactionEnded)]
    return found
