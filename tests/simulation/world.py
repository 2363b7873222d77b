"""What a run is made of: brokers, Redis servers, the bucket and clients, all from a seed."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from bucketlog.stateless_broker.settings.broker import BrokerSettings
from tests.simulation.brokers import Place, SimulatedBroker
from tests.simulation.bucket import BucketClient, Store
from tests.simulation.clients import Client, Producer, Surface
from tests.simulation.committed_consumers import CommittedConsumer
from tests.simulation.consumers import Consumer
from tests.simulation.embedded_redis import SimulatedEmbedded, Valkeys
from tests.simulation.groups import Committer
from tests.simulation.keyed import KeyedWriter
from tests.simulation.loop import VirtualLoop
from tests.simulation.network import Network, Way
from tests.simulation.prepared_transactions import Decisions, PreparedCopyJob
from tests.simulation.readers import BucketReader
from tests.simulation.record_deleter import RecordDeleter
from tests.simulation.redis_client import RedisClient, verbs_by_sha
from tests.simulation.redis_servers import Connection, Server
from tests.simulation.scene_client import SceneClient
from tests.simulation.topics import Namesakes, TopicChanger
from tests.simulation.trace import Trace
from tests.simulation.transactions import CONFIGS as COPIED_CONFIGS
from tests.simulation.transactions import PARTITIONS, CopyJob
from tests.simulation.transactions import TOPIC as COPIED
from tests.simulation.truth import Truth

BROKERS = 3
SERVERS = 3
TOPIC = "t"
REDIS_TIMEOUT_MS = 1_000
SETTINGS = {
    "bucket_url": "memory://simulation",
    "redis_url": "redis://simulation",
    "flush_interval_ms": 0,
    "puts_in_flight": 3,
    "put_hedge_quantile": 0.8,
    "put_retry_ms": 300,
    "put_give_up_ms": 3_000,
    "reservation_limit_ms": 5_000,
    "heartbeat_interval_ms": 500,
    "session_timeout_ms": 3_000,
    "redis_timeout_ms": REDIS_TIMEOUT_MS,
    "claim_wait_ms": 4_000,
    "view_wait_ms_max": 1_000,
    "stream_segments_max": 200,
    "checkpoint_interval_ms": 4_000,
    "deletion_safety_age_ms": 24_000,
    "cache_recent_bytes_max": 20_000,
    "cache_history_bytes_max": 10_000,
    "read_ahead_bytes": 4_000,
    "auto_create_topics": False,
    "compaction_check_interval_ms": 1_000,
    "compaction_interval_ms": 3_000,
    "compaction_age_ms_min": 500,
    "partition_segment_bytes": 2_000,
    "tier_rows_max": 2,
    "log_cleaner_dedupe_buffer_bytes": 4_096,
    "transactions": True,
    "transaction_two_phase_commit": True,
    "transaction_abort_check_interval_ms": 500,
    "transaction_wait_ms_max": 1_000,
    "transaction_request_ms_max": 3_000,
}

CLOCK_ERRORS_MS = (500, 60_000)
"""At most, in a seed. Where clocks are right, several brokers find the same work at once."""
RETAINS_SHARE = 0.4
RETAINS_LITTLE = {"log_retention_bytes": 9_000, "log_retention_check_interval_ms": 2_000}
"""In so many of the seeds."""
RENEWS_SHARE = 0.2
RENEWS = {"epoch_closed_writers_max": 1, "epoch_renewal_check_interval_ms": 2_000}
"""In this share of the seeds, so that epochs also end because they have many closed writers."""
IDS_EACH = 3
"""Transactional ids of the copy job that has several."""
SOON_SHARE = 0.3
DELETES_SOON = {"checkpoint_interval_ms": 800, "deletion_safety_age_ms": 2_400}
"""In so many of the seeds, so that chains really go. The bucket is quick there, since writing
checkpoints may take but a small share of the time."""
USUAL_BUCKET = (0.004, 0.02)
QUICK_BUCKET = (0.001, 0.003)


@dataclass(frozen=True)
class Sizes:
    partitions: int = 4
    producers: int = 10
    batches_each: int = 46
    consumers: int = 2
    committers: int = 2
    changers: int = 2
    namesakes: int = 1
    readers: int = 1
    deleters: int = 1
    keyed: int = 1
    copy_jobs: int = 3
    prepared_jobs: int = 0


class World:
    def __init__(self, seed: int, redis: Path, sizes: Sizes, *, everything: bool = False) -> None:
        self.seed = seed
        self.tasks: list[asyncio.Task[None]] = []
        self.sizes = sizes
        self.loop = loop = VirtualLoop(self.random("threads"))
        self.trace = trace = Trace(loop.time, everything=everything)
        self.truth = Truth(trace)
        self.store = Store(loop.now_ms)
        self.network = Network(loop, self.random("network"), trace)
        ids = self.random("servers")
        self.servers = [
            Server(Connection(redis, n), f"redis{n}", lambda: f"{ids.getrandbits(160):040x}")
            for n in range(SERVERS)
        ]
        self.primary = self.servers[0]
        self.routes = [self.primary] * BROKERS
        self.redis_ways = [Way(0.0002, 0.001) for _ in range(BROKERS)]
        self.deletes_soon = self.random("settings").random() < SOON_SHARE
        self.settings = self._draw_settings()
        usual = QUICK_BUCKET if self.deletes_soon else USUAL_BUCKET
        self.bucket_ways = [Way(*usual) for _ in range(BROKERS)]
        self._clock_error_ms_max = self.random("clocks").choice(CLOCK_ERRORS_MS)
        self._verbs = verbs_by_sha()
        self.valkeys = Valkeys(redis, self.network, self.random("valkeys"))
        self.brokers = [
            SimulatedBroker(n, self._place(n), self.random(f"broker {n}")) for n in range(BROKERS)
        ]
        self.surface = Surface(loop, trace, self.truth, self.brokers, {})
        self.producers = [self._producer(n) for n in range(sizes.producers)]
        self.consumers = [
            Consumer(
                f"c{n}",
                self.surface,
                self.random(f"consumer {n}"),
                topic=TOPIC,
                partitions=sizes.partitions,
            )
            for n in range(sizes.consumers)
        ]
        self.committers = [
            Committer(f"g{n}", self.surface, self.random(f"group {n}"), topic=TOPIC)
            for n in range(sizes.committers)
        ]
        self.changers = [
            TopicChanger(f"x{n}", self.surface, self.random(f"topics {n}"))
            for n in range(sizes.changers)
        ]
        self.namesakes = [
            Namesakes(f"y{n}", self.surface, self.random(f"namesakes {n}"))
            for n in range(sizes.namesakes)
        ]
        self.deleters = [
            RecordDeleter(
                f"d{n}",
                self.surface,
                self.random(f"deleter {n}"),
                topic=TOPIC,
                partitions=sizes.partitions,
            )
            for n in range(sizes.deleters)
        ]
        self.keyed = [
            KeyedWriter(f"k{n}", self.surface, self.random(f"keyed {n}"))
            for n in range(sizes.keyed)
        ]
        self._make_transactional_clients()
        self.readers = [
            BucketReader(f"r{n}", self.store, self.truth, trace, self.random(f"reader {n}"))
            for n in range(sizes.readers)
        ]

    def _make_transactional_clients(self) -> None:
        self.surface.aside = self._aside
        self.scene_clients: list[SceneClient] = []
        self.copy_jobs = [self._copy_job(n) for n in range(self.sizes.copy_jobs)]
        decisions: Decisions = {}
        self.copy_jobs += [
            PreparedCopyJob(f"p{n}", self.surface, self.random(f"prepared {n}"), decisions)
            for n in range(self.sizes.prepared_jobs)
        ]
        self.committed_consumers = [
            CommittedConsumer(
                "rc", self.surface, self.random("rc"), topic=COPIED, partitions=PARTITIONS
            )
        ]

    def _aside(self) -> list[SimulatedBroker]:
        return [
            broker
            for broker, route in zip(self.brokers, self.routes, strict=True)
            if route is not self.primary
        ]

    def is_well(self) -> bool:
        """All brokers are at work in one epoch, and find one primary."""
        if set(self.routes) != {self.primary}:
            return False
        epochs = set()
        for broker in self.brokers:
            if broker.node is None or not broker.listens or broker.is_paused:
                return False
            work = broker.node.epochs.work
            epochs.add(work.epoch if work.end.reason is None else -1)
        return len(epochs) == 1 and -1 not in epochs

    def _draw_settings(self) -> dict[str, object]:
        retains_little = self.random("retention").random() < RETAINS_SHARE
        renews = self.random("renewal").random() < RENEWS_SHARE
        return (
            SETTINGS
            | (DELETES_SOON if self.deletes_soon else {})
            | (RETAINS_LITTLE if retains_little else {})
            | (RENEWS if renews else {})
        )

    def another_server(self, random: Random) -> Server:
        """One that is not the primary."""
        return random.choice([server for server in self.servers if server is not self.primary])

    @property
    def retention_bytes(self) -> int:
        """-1: all stays."""
        return int(str(self.settings.get("log_retention_bytes", -1)))

    def random(self, what: str) -> Random:
        return Random(f"{self.seed}/{what}")

    def _place(self, number: int) -> Place:
        return Place(
            loop=self.loop,
            trace=self.trace,
            settings=BrokerSettings.model_validate(self.settings),
            bucket=lambda name: BucketClient(
                name, self.store, self.network, self.bucket_ways[number]
            ),
            redis=lambda name: RedisClient(
                name,
                self.network,
                self.redis_ways[number],
                lambda: self.routes[number],
                timeout_s=REDIS_TIMEOUT_MS / 1000,
                verbs=self._verbs,
            ),
            embedded=lambda name: SimulatedEmbedded(name, self.valkeys, self._verbs),
            clock_error_ms=self.random(f"clock {number}").randint(
                -self._clock_error_ms_max, self._clock_error_ms_max
            ),
        )

    def _producer(self, number: int) -> Producer:
        random = self.random(f"producer {number}")
        return Producer(
            f"p{number}",
            self.surface,
            random,
            topic=TOPIC,
            partition=number % self.sizes.partitions,
            batches=self.sizes.batches_each,
            window=random.randint(1, 4),
            idempotent=number % 3 != 2,
        )

    def _copy_job(self, number: int) -> CopyJob:
        """The first two share their id in half of the seeds. The last one has several."""
        drawn = self.random("copy jobs")
        shares, versions = drawn.random() < 0.5, [drawn.choice((1, 2)) for _ in range(number + 1)]
        shared = "copy0" if shares and number == 1 else f"copy{number}"
        version = versions[0] if shares and number == 1 else versions[number]
        random = self.random(f"copy job {number}")
        ids = [f"copy{number}-{n}" for n in range(IDS_EACH)] if number == 2 else [shared]
        return CopyJob(f"j{number}", self.surface, random, group=shared, ids=ids, version=version)

    async def until(self, condition: Callable[[], bool], longest_s: float) -> bool:
        """False where it does not hold in time, or the promise was broken."""
        deadline = self.loop.time() + longest_s
        while not condition():
            if self.loop.time() > deadline or self.trace.violation is not None:
                return False
            await asyncio.sleep(0.1)
        return True

    async def create_topics(self) -> None:
        client = Client("admin", self.surface, self.random("admin"))
        self.surface.topics[TOPIC] = await client.create_topic(TOPIC, self.sizes.partitions)
        copied = await client.create_topic(COPIED, PARTITIONS, COPIED_CONFIGS)
        self.surface.topics[COPIED] = copied
        for number in range(PARTITIONS):  # what is aborted may go at any time
            self.truth.compacted.add(self.surface.partition(COPIED, number))
