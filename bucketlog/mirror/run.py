"""A running mirror: workers, and the copies of topics, ACLs and groups' offsets."""

import ctypes
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from confluent_kafka import TopicPartition as KafkaPartition

from bucketlog.client.acls import AclAdmin
from bucketlog.client.admin import LATEST, Admin
from bucketlog.client.security import Security
from bucketlog.log_format.errors import LogError
from bucketlog.mirror.acls import AclMirror
from bucketlog.mirror.copier import Clusters, Copier, PartitionProgress
from bucketlog.mirror.groups import GroupMirror
from bucketlog.mirror.settings import MirrorSettings
from bucketlog.mirror.source import Partition
from bucketlog.mirror.topics import TopicMirror, TopicSummary, no_topic


class ClusterAccess:
    """The address, login and clients for one of the two clusters."""

    def __init__(
        self,
        bootstrap: str,
        security: Security | None,
        timeout_s: float,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        self.bootstrap = bootstrap
        self.security = security
        self.config: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "log_level": 5,  # hides librdkafka's messages about client metrics (KIP-714)
            "client.id": "bucketlog-mirror",
            **({} if security is None else security.librdkafka()),
            **(config or {}),
        }
        self.admin = Admin(self.config, timeout_s=timeout_s)
        self.acls = AclAdmin(self.admin, self.config, security)


@dataclass(frozen=True, slots=True)
class MirrorSelection:
    """Selects topics and groups by shell patterns. `acls`: whether ACLs are copied."""

    topics: Sequence[str]
    groups: Sequence[str] = ("*",)
    acls: bool = True


@dataclass(frozen=True, slots=True)
class MirrorFigures:
    """The figures of a mirror since its start. `lag` is the number of offsets that the target
    lacks; None while the number is unknown."""

    partitions: int
    records: int
    size_bytes: int
    lag: int | None


@dataclass(slots=True)
class _Workers:
    copiers: list[Copier] = field(default_factory=list)
    threads: list[threading.Thread] = field(default_factory=list)


class Mirror:
    """A context manager that copies from the first call of `look` on. `report` gets events, one
    line each. Workers call `report` in their threads."""

    def __init__(
        self,
        source: ClusterAccess,
        target: ClusterAccess,
        selection: MirrorSelection,
        settings: MirrorSettings,
        report: Callable[[str], None],
    ) -> None:
        self.source, self.target = source, target
        self.topic_mirror = TopicMirror(source.admin, target.admin, selection.topics, report)
        self.group_mirror = GroupMirror(source.admin, target.admin, selection.groups, report)
        self._acl_mirror = AclMirror(
            source.acls, target.acls, selection.topics, selection.groups, report
        )
        self._with_acls = selection.acls
        self._settings = settings
        self._report = report
        self._stop = threading.Event()
        self._workers = _Workers()
        self.topics: dict[str, TopicSummary] = {}
        self._starts: dict[Partition, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        for thread in self._workers.threads:
            thread.join()

    def look(self) -> None:
        """Copy topics, configs, ACLs and groups' offsets once, and begin to copy new partitions.
        Raises `LogError`, `MirrorError`."""
        self.check()
        self.topics = self.topic_mirror.sync()
        if self._with_acls:
            self._acl_mirror.sync()
        self._share_out()
        self._move_log_starts()
        self.sync_groups()

    def look_patiently(self) -> None:
        """Call `look`. Errors that may pass are only reported."""
        try:
            self.look()
        except LogError as error:
            if not error.retriable:
                raise
            self._report(f"trying again: {error}")

    def sync_groups(self) -> None:
        self.group_mirror.sync(self.topics, self.positions())

    def check(self) -> None:
        """Raise the error with which a worker has ended."""
        for copier in self._workers.copiers:
            if copier.failure is not None:
                raise copier.failure

    def progress(self) -> dict[Partition, PartitionProgress]:
        found: dict[Partition, PartitionProgress] = {}
        for copier in self._workers.copiers:
            found |= copier.progress
        return found

    def positions(self) -> dict[Partition, int]:
        """The ends of partitions in the target, where they are known."""
        return {
            partition: each.position
            for partition, each in self.progress().items()
            if each.position is not None
        }

    def figures(self) -> MirrorFigures:
        progress = self.progress()
        lags = [each.lag for each in progress.values()]
        known = [lag for lag in lags if lag is not None]
        return MirrorFigures(
            len(progress),
            sum(copier.records for copier in self._workers.copiers),
            sum(copier.size_bytes for copier in self._workers.copiers),
            sum(known) if len(known) == len(lags) else None,
        )

    def _share_out(self) -> None:
        workers = self._workers
        if not workers.copiers:
            clusters = self._clusters()
            for number in range(self._settings.workers):
                copier = Copier(number, clusters, self._settings, self._stop, self._report)
                thread = threading.Thread(target=copier.run, name=f"mirror-{number}", daemon=True)
                workers.copiers.append(copier)
                workers.threads.append(thread)
                thread.start()
        wanted = {
            Partition(name, number): topic.topic_id
            for name, topic in self.topics.items()
            for number in range(topic.partitions)
        }
        known = self.progress().keys()
        for name in sorted({each.topic for each in known - wanted.keys()}):
            self._report(f"topic {name!r} is deleted at the source; its copy in the target remains")
        shares = [
            {each: wanted[each] for each in copier.progress if each in wanted}
            for copier in workers.copiers
        ]
        for partition in (each for each in wanted if each not in known):
            min(shares, key=len)[partition] = wanted[partition]
        for copier, share in zip(workers.copiers, shares, strict=True):
            copier.assign(share)

    def _clusters(self) -> Clusters:
        found = self.target.admin.client.list_topics(timeout=self.target.admin.timeout_s)
        brokers = [(str(each.host), int(each.port)) for each in found.brokers.values()]
        return Clusters(
            self.source.security, self.target.security, brokers, self.topic_mirror.leaders
        )

    def _move_log_starts(self) -> None:
        """Delete the records in the target that the source has deleted by retention or
        DeleteRecords. Log starts of compacted topics do not move, because only compaction deletes
        their records."""
        compacted = self.topic_mirror.compacted(self.topics)
        wanted = {
            partition: each.log_start
            for partition, each in self.progress().items()
            if each.log_start > self._starts.get(partition, 0)
            and (each.position or 0) >= each.log_start
            and partition.topic not in compacted
        }
        if not wanted:
            return
        admin = self.target.admin
        spots = [KafkaPartition(*partition, offset) for partition, offset in wanted.items()]
        # `delete_records` before confluent-kafka 2.16 releases its argument once too often
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(spots))
        for spot, future in admin.client.delete_records(spots).items():
            admin.wait(future, f"deleting records of {spot.topic}-{spot.partition}")
        self._starts |= wanted


def sync_groups_alone(
    source: ClusterAccess,
    target: ClusterAccess,
    selection: MirrorSelection,
    report: Callable[[str], None],
) -> tuple[int, list[str]]:
    """Copy the groups' offsets once, after a cut-over.

    Returns the number of groups whose offsets have changed, and the groups that still have members
    at the source. Raises `LogError`, `MirrorError`.
    """
    topics = TopicMirror(source.admin, target.admin, selection.topics, report).in_source()
    if not topics:
        raise no_topic(selection.topics)
    ends = {
        Partition(name, number): offset
        for name, topic in topics.items()
        for number, offset in target.admin.offsets(
            name, range(topic.partitions), LATEST, f"asking for offsets of {name!r}"
        ).items()
    }
    groups = GroupMirror(source.admin, target.admin, selection.groups, report)
    return groups.sync(topics, ends, forward_only=True), groups.active()
