"""Topics, producers and groups move from Apache Kafka to bucketlog, while the mirror is killed.

At full size, from the repository's root: `make prove WHAT=mirror`. The mirror's process is killed
with kill -9 again and again, also during the cut-over. In the end, every record that consumers of
`read_committed` see in Kafka has its offset, timestamp, key, value and headers in bucketlog, and
every group has got each record once: some at the source, the others at the target. Then, all
is exported to another Apache Kafka, and the export is killed, too.
"""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic

from bucketlog.embedded.cluster import EmbeddedCluster
from localstack.apache_kafka import running_kafka
from tests.rigs.patience import PATIENCE_S, eventually, let_pass
from tests.scenarios.logs_read import KEPT, PARTITIONS, PartitionContent, read_log
from tests.scenarios.mirror_export import export_to_kafka
from tests.scenarios.moving_clients import MovingGroup, MovingProducer

KINDS: Mapping[str, Mapping[str, str]] = {
    "plain": {"retention.ms": "-1"},
    KEPT: {
        "cleanup.policy": "compact",
        "segment.ms": "500",
        "min.cleanable.dirty.ratio": "0.01",
        "delete.retention.ms": "1000",
    },
    "txn": {"max.message.bytes": "900000"},
}
PRODUCERS = 4
GROUP_PAUSE_S = 0.2


@dataclass(frozen=True, slots=True)
class MoveSizes:
    """`load_s`: how long producers write while the mirror follows and is killed. `records_before`
    are there when the mirror begins; `kill_every_s` apart, its process is killed. `step_s`: a step
    over all records takes at most this long."""

    topics: int
    groups: int
    records_before: int
    load_s: float
    kill_every_s: float
    pause_s: float
    step_s: float = PATIENCE_S


@dataclass(slots=True)
class MoveFigures:
    kafka: str = ""
    topics: int = 0
    partitions: int = 0
    records: int = 0
    groups: int = 0
    kills: int = 0
    acknowledged: int = 0
    compacted_away: int = 0
    writers_down_s: float = 0.0
    said: str = ""
    said_back: str = ""
    seconds: float = 0.0


class Move:
    """Both clusters, and the clients that move."""

    def __init__(self, folder: Path, kafka: str, cluster: str, sizes: MoveSizes) -> None:
        self.folder, self.source, self.target = folder, kafka, cluster
        self.sizes = sizes
        kinds = list(KINDS)
        self.topics = {
            f"{kinds[n % len(kinds)]}-{n}": kinds[n % len(kinds)] for n in range(sizes.topics)
        }
        self.figures = MoveFigures(topics=sizes.topics, groups=sizes.groups)
        self._where = kafka
        self.producers = [
            MovingProducer(
                number,
                list(self.topics)[number::PRODUCERS],
                self.source,
                lambda: self._where,
                sizes.pause_s,
            )
            for number in range(min(PRODUCERS, sizes.topics))
        ]
        names = list(self.topics)
        self.groups = [
            MovingGroup(f"group-{number}", names[number % len(names)])
            for number in range(sizes.groups)
        ]
        self._threads: list[threading.Thread] = []

    def create_topics(self) -> None:
        admin = AdminClient({"bootstrap.servers": self.source})
        broker = ConfigResource(
            ResourceType.BROKER,
            "1",
            incremental_configs=[
                ConfigEntry(
                    "log.cleaner.backoff.ms", "200", incremental_operation=AlterConfigOpType.SET
                )
            ],
        )
        for altered in admin.incremental_alter_configs([broker]).values():
            altered.result(PATIENCE_S)
        wanted = [
            NewTopic(
                name, num_partitions=PARTITIONS, replication_factor=1, config=dict(KINDS[kind])
            )
            for name, kind in self.topics.items()
        ]
        for future in admin.create_topics(wanted).values():
            future.result(PATIENCE_S)

    def start_clients(self) -> None:
        for producer in self.producers:
            self._start(producer.run)
        goal = self.sizes.records_before
        eventually(
            lambda: self.acknowledged >= goal,
            self._errors,
            bound_s=self.sizes.step_s,
            pause_s=0.1,
        )
        for group in self.groups:
            self._start(lambda group=group: group.run(self.source, GROUP_PAUSE_S))

    def _start(self, work: Any) -> None:
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        self._threads.append(thread)

    @property
    def acknowledged(self) -> int:
        self.check()
        return sum(each.acknowledged for each in self.producers)

    def _errors(self) -> list[BaseException]:
        found = [each.error for each in self.producers] + [each.error for each in self.groups]
        return [error for error in found if error is not None]

    def check(self) -> None:
        for error in self._errors():
            raise error

    # The mirror ------------------------------------------------------------------------------

    def mirror(self, *arguments: str) -> "subprocess.Popen[str]":
        with (self.folder / "mirror.log").open("a") as log:
            return subprocess.Popen(
                [
                    *(sys.executable, "-m", "bucketlog.cli", "mirror"),
                    *("--from", f"kafka://{self.source}", "-b", self.target),
                    *("--topics", "*", "--groups", "group-*", *arguments),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def log(self) -> str:
        return (self.folder / "mirror.log").read_text()

    def follow_with_kills(self) -> None:
        deadline = time.monotonic() + self.sizes.load_s
        while time.monotonic() < deadline:
            process = self.mirror()
            let_pass(min(self.sizes.kill_every_s, max(deadline - time.monotonic(), 0.5)))
            self._kill(process)
            self.check()

    def _kill(self, process: "subprocess.Popen[str]") -> None:
        if process.poll() is not None:
            raise AssertionError(f"the mirror has ended by itself: {self.log()}")
        process.kill()
        process.communicate()
        self.figures.kills += 1

    def cut_over(self) -> None:
        """The first attempt is killed when the producers are stopped."""
        arguments = ("--cut-over", "--stop-writers", "config", "--quiet-s", "1")
        stopped = "producers of the source are stopped"
        before = self.log().count(stopped)
        process = self.mirror(*arguments)
        eventually(
            lambda: self.log().count(stopped) > before or process.poll() is not None,
            self.log,
            bound_s=self.sizes.step_s,
        )
        self._kill(process)
        process = self.mirror(*arguments)
        said, _ = process.communicate(timeout=self.sizes.step_s)
        if process.returncode:
            raise AssertionError(f"the cut-over failed: {self.log()}")
        self.figures.said = said.splitlines()[-1]

    def move_clients(self) -> None:
        """Producers first; a group when its offsets have moved."""
        self._where = self.target

        def have_moved() -> bool:
            self.check()
            return all(each.first_at_target_s is not None for each in self.producers)

        eventually(have_moved)
        self.figures.writers_down_s = max(
            (each.first_at_target_s or 0.0) - each.last_at_source_s for each in self.producers
        )
        for group in self.groups:
            group.stop.set()
        for thread in self._threads[len(self.producers) :]:
            thread.join()
        self.check()
        process = self.mirror("--groups-alone")
        process.communicate(timeout=PATIENCE_S)
        if process.returncode:
            raise AssertionError(f"groups were left behind: {self.log()}")
        for group in self.groups:
            group.stop.clear()
            self._start(lambda group=group: group.run(self.target, 0.0))

    def end(self) -> None:
        """Stop the producers; the groups read to the end."""
        let_pass(1.0)
        for producer in self.producers:
            producer.stop.set()
        for thread in self._threads[: len(self.producers)]:
            thread.join()
        self.check()
        self.figures.acknowledged = self.acknowledged
        target = read_log(self.target, self.topics)
        self._check_groups(target)
        self._compare(read_log(self.source, self.topics), target)

    def _check_groups(self, target: Mapping[tuple[str, int], PartitionContent]) -> None:
        for group in self.groups:
            for number in range(PARTITIONS):
                content = target[group.topic, number]
                if content.offsets:
                    last = content.offsets[-1]
                    eventually(
                        lambda: (group.seen.get(number) or [-1])[-1] >= last,  # noqa: B023 - awaited here
                        lambda: (group.name, number, group.error),  # noqa: B023 - awaited here
                        bound_s=self.sizes.step_s,
                    )
            group.stop.set()
        for thread in self._threads[len(self.producers) :]:
            thread.join()
        self.check()
        for group in self.groups:
            for number in range(PARTITIONS):
                seen = group.seen.get(number, [])
                wanted = target[group.topic, number].offsets
                if self.topics[group.topic] == KEPT:
                    assert len(set(seen)) == len(seen), f"{group.name}: an offset came twice"
                    latest = {offset for offset, _ in target[group.topic, number].keys.values()}
                    missing = latest - set(seen)
                    assert not missing, f"{group.name}: {len(missing)} records are missing"
                else:
                    assert seen == wanted, f"{group.name} of {group.topic}-{number}: other offsets"

    def _compare(
        self,
        source: Mapping[tuple[str, int], PartitionContent],
        target: Mapping[tuple[str, int], PartitionContent],
    ) -> None:
        """The target has what the source had when its producers were stopped."""
        for (topic, number), ours in source.items():
            theirs = target[topic, number]
            if self.topics[topic] == KEPT:
                for key, (offset, digest) in ours.keys.items():
                    found = theirs.by_offset.get(offset)
                    newer = theirs.keys.get(key, (-1, b""))[0] > offset
                    assert found == digest or newer, f"{topic}-{number}: key {key!r} at {offset}"
                self.figures.compacted_away += ours.end - len(ours.offsets)
            else:
                count = len(ours.offsets)
                assert theirs.offsets[:count] == ours.offsets, f"{topic}-{number}: other offsets"
                for offset, digest in ours.by_offset.items():
                    assert theirs.by_offset[offset] == digest, f"{topic}-{number} at {offset}"
            self.figures.records += len(theirs.offsets)
        self.figures.partitions = len(source)


@contextmanager
def both_clusters(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Addresses of Apache Kafka and of bucketlog, and the version of Kafka."""
    settings = {"group_initial_rebalance_delay_ms": "0", "transactions": "true"}
    with (
        running_kafka(folder / "kafka") as kafka,
        EmbeddedCluster(folder / "bucketlog", brokers=2, settings=settings) as cluster,
    ):
        yield kafka.bootstrap, cluster.bootstrap, kafka.version


def mirror_move(folder: Path, sizes: MoveSizes, tell: Callable[[str], None]) -> MoveFigures:
    """Raises `AssertionError` where a record or a group's place is lost. `tell` gets messages about
    the progress."""
    began = time.perf_counter()
    with both_clusters(folder) as (kafka, cluster, version):
        move = Move(folder, kafka, cluster, sizes)
        move.figures.kafka = version
        move.create_topics()
        move.start_clients()
        for step, what in (
            (move.follow_with_kills, "the mirror follows, and is killed"),
            (move.cut_over, "the cut-over"),
            (move.move_clients, "producers and groups move"),
            (move.end, "both clusters are read and compared"),
        ):
            tell(f"{time.perf_counter() - began:.0f} s: {what}; {move.acknowledged:,} records")
            step()
        tell(f"{time.perf_counter() - began:.0f} s: the export")
        groups = {each.name: each.topic for each in move.groups}
        move.figures.said_back = export_to_kafka(
            folder, cluster, move.topics, groups, step_s=sizes.step_s
        )
        move.figures.kills += 1
    move.figures.seconds = time.perf_counter() - began
    return move.figures
