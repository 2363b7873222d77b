"""One fault at a time on three brokers: how long is nothing acknowledged, visible, or consumed?

Each broker reaches MinIO and Valkey, which has a replica, through separate proxies that fail. The
settings are the defaults. Two idempotent producers write to all partitions, a watch asks all
brokers for high watermarks, and a consumer group of two members reads and commits. The promises are
judged after the runs of each fault. At full size: `make prove WHAT=single-faults`. Some faults by
hand: `python -m tests.scenarios.single_faults --runs 10 FAULT ...`.
"""

import argparse
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from tempfile import TemporaryDirectory
from typing import Any, Self

import confluent_kafka

from tests.models.fault_plan import Target
from tests.models.history import History
from tests.models.pauses import Events, Pauses, figures
from tests.rigs.patience import Deadline, eventually, let_pass
from tests.scenarios.failover import Watch
from tests.scenarios.faults import SINGLE_FAULTS, Fault, broker_of
from tests.scenarios.group_members import leave
from tests.scenarios.judgement import judge
from tests.scenarios.load import Load
from tests.scenarios.round_trip import create_topic
from tests.servers.chaos_broker import CLOCK
from tests.servers.cluster import Cluster, Store, running_cluster
from tests.servers.replicated_valkey import ReplicatedValkey

TOPIC = "faults"
PARTITIONS = 6
BROKERS = 3
PRODUCERS = 2
MEMBERS = 2
GROUP = "faults"
BURST_RECORDS = 12
SETTINGS = {"flush_interval_ms": "250", "handover_ms": "1000", "sequencer_timeout_ms": "3500"}
"""The defaults on MinIO, where brokers of tests have others."""
SETTLE_S = 8.0
STEADY_RECORDS = 200


@dataclass
class Members:
    """A consumer group in threads, with the times at which it consumed. Use it as a context."""

    bootstrap: str
    consumed: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, name=f"member-{number}") for number in range(MEMBERS)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": GROUP,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "heartbeat.interval.ms": 300,
                "session.timeout.ms": 10_000,
                "reconnect.backoff.max.ms": 100,
                "topic.metadata.refresh.interval.ms": 1000,
                "log_level": 0,
            }
        )
        consumer.subscribe([TOPIC])
        try:
            while not self._stopping.is_set():
                found = [one for one in consumer.consume(500, 0.05) if one.error() is None]
                if found:
                    self.consumed.append(time.monotonic())
                    consumer.commit(asynchronous=True)
        finally:
            leave(consumer)


@dataclass
class Scene:
    """A cluster under load."""

    cluster: Cluster
    history: History
    loads: Sequence[Load]
    watch: Watch
    members: Members

    def run(self, fault: Fault, target: Target) -> Pauses:
        for load in self.loads:
            load.wait_for(STEADY_RECORDS)
        self.cluster.wait_until_all_are_members()
        last = self.cluster.brokers[-1]
        broker = broker_of(self.cluster, target, topic=TOPIC, group=GROUP, otherwise=last)
        began = time.monotonic()
        fault.begin(self.cluster, broker)
        let_pass(began + fault.lasts_s - time.monotonic())
        fault.end(self.cluster, broker)
        self.cluster.wait_until_ready()
        let_pass(SETTLE_S)
        ended = time.monotonic()
        deadline = Deadline("nothing is acknowledged after the fault")
        while self._latest_ack() < ended:
            deadline.pause()
        return self._pauses(began, ended)

    def _latest_ack(self) -> float:
        return self.history.acknowledged[-1].at if self.history.acknowledged else 0.0

    def _pauses(self, began: float, ended: float) -> Pauses:
        since = began - 30
        acks: dict[int, list[float]] = {partition: [] for partition in range(PARTITIONS)}
        for ack in list(self.history.acknowledged):
            if ack.at > since:
                acks[ack.place.partition].append(ack.at)
        rises = {partition: list(times) for partition, times in self.watch.rises.items()}
        return Events(acks, rises, sorted(self.members.consumed)).between(began, ended)


@contextmanager
def under_load() -> Iterator[Scene]:
    """Judges the promises at the end of the block. Raises `AssertionError`."""
    with (
        TemporaryDirectory(prefix="bucketlog-clocks-") as clocks,
        ReplicatedValkey().running() as valkey,
        running_cluster(
            BROKERS,
            store=Store.MINIO,
            settings=SETTINGS,
            module="tests.servers.chaos_broker",
            environment={CLOCK: clocks},
            by_ways=True,
            replicated=valkey,
        ) as cluster,
    ):
        create_topic(cluster.brokers[0].bootstrap, TOPIC, PARTITIONS)
        history = History()
        loads = Load.several(
            PRODUCERS,
            cluster.bootstrap,
            history,
            topic=TOPIC,
            partitions=PARTITIONS,
            burst_records=BURST_RECORDS,
        )
        watch = Watch(cluster.brokers, history, topic=TOPIC, partitions=PARTITIONS)
        for load in loads:
            load.start()
        try:
            with watch, Members(cluster.bootstrap) as members:
                eventually(lambda: bool(members.consumed), "the group consumes nothing")
                yield Scene(cluster, history, loads, watch, members)
        finally:
            for load in loads:
                load.stop()
        failures = [text for load in loads for text in load.failures]
        assert not failures, "\n".join(failures[:10])
        judge(cluster, history, topic=TOPIC, partitions=PARTITIONS)


def single_faults(
    faults: Sequence[Fault], runs: int, *, told: Callable[[str], None] = lambda line: None
) -> dict[str, dict[str, Any]]:
    """By fault and target, the median and the maximum of each pause, in seconds. Each fault has a
    fresh cluster."""
    found: dict[str, dict[str, Any]] = {}
    for fault in faults:
        with under_load() as scene:
            targets = [one for one in fault.targets if one is not Target.CHECKPOINTER]
            for target in targets:
                pauses = [scene.run(fault, target) for _ in range(runs)]
                name = f"{fault.name} of {target}" if len(targets) > 1 else fault.name
                found[name] = {**figures(pauses), "bound_s": fault.bound_s}
                told(json.dumps({"fault": name, **found[name]}))
    return found


def too_long(found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """A message for each pause that exceeds its bound."""
    return [
        f"{name}: {what} {row[f'{what}_max']} s, at most {row['bound_s']} s wanted"
        for name, row in found.items()
        for what in ("ack_s", "visible_s", "group_s")
        if row[f"{what}_max"] > row["bound_s"]
    ]


def main() -> None:
    names = sorted({fault.name for fault in SINGLE_FAULTS})
    parser = argparse.ArgumentParser(prog="python -m tests.scenarios.single_faults")
    parser.add_argument(
        "faults", nargs="*", metavar="FAULT", help=f"Names: {', '.join(names)}. Default: all."
    )
    parser.add_argument("--runs", type=int, default=1, help="Number of runs of each fault.")
    wanted = parser.parse_args()
    if unknown := set(wanted.faults).difference(names):
        parser.error(f"unknown faults: {', '.join(sorted(unknown))}")
    faults = [fault for fault in SINGLE_FAULTS if not wanted.faults or fault.name in wanted.faults]
    found = single_faults(faults, wanted.runs, told=lambda line: print(line, flush=True))
    for line in too_long(found):
        print(line)


if __name__ == "__main__":
    main()
