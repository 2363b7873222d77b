"""Copies committed offsets of the source's groups to the target.

Invariant: a group that has members in the target has moved already, so its offsets are not changed.
Offsets are copied with their metadata, but without leader epochs, which are valid only at the
source.
"""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from random import Random

from confluent_kafka import ConsumerGroupState, ConsumerGroupTopicPartitions, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition

from bucketlog.client.admin import Admin
from bucketlog.client.kafka_errors import log_error
from bucketlog.log_format.backoff import Backoff, Retries
from bucketlog.log_format.errors import LogError
from bucketlog.mirror.source import Partition
from bucketlog.mirror.topics import is_wanted

IDLE = (ConsumerGroupState.EMPTY, ConsumerGroupState.DEAD)
HAS_MEMBERS = frozenset({"UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS", "ILLEGAL_GENERATION"})
REFUSED = frozenset({"INVALID_GROUP_ID", "OFFSET_METADATA_TOO_LARGE"})
"""Errors for a group that Kafka accepts, but bucketlog does not. Other groups are copied."""
SHOWN_CHARS = 80
COORDINATOR_BACKOFF = Backoff(
    first_pause_ms=100, longest_pause_ms=1000, jitter=0.5, give_up_after_ms=30_000
)
Committed = dict[Partition, tuple[int, str]]
"""The committed offset and its metadata, by partition."""


class GroupMirror:
    """Copies offsets of groups that match `patterns`. `report` gets groups that are not copied."""

    def __init__(
        self,
        source: Admin,
        target: Admin,
        patterns: Sequence[str],
        report: Callable[[str], None],
    ) -> None:
        self._source, self._target = source, target
        self._patterns = patterns
        self._report = report
        self._last: dict[str, Committed] = {}
        self._left: set[str] = set()
        """Groups that are not copied, and were reported."""

    def sync(
        self, topics: Collection[str], ends: Mapping[Partition, int], *, forward_only: bool = False
    ) -> int:
        """Copy the offsets that have changed since the last call.

        `ends` are the ends of the partitions in the target. Offsets above these ends are not yet
        copied, because a consumer there would be out of range. `forward_only`: no offset in the
        target decreases, because consumers may have read further there. Returns the number of
        groups whose offsets were copied. Raises `LogError`.
        """
        copied = 0
        for group in self.groups():
            committed = {
                partition: row
                for partition, row in committed_offsets(self._source, group).items()
                if partition.topic in topics and row[0] <= ends.get(partition, -1)
            }
            if not committed or committed == self._last.get(group):
                continue
            if forward_only:
                there = committed_offsets(self._target, group)
                committed = {
                    partition: row
                    for partition, row in committed.items()
                    if partition not in there or row[0] > there[partition][0]
                }
            if committed:
                copied += self._commit(group, committed)
        return copied

    def groups(self) -> list[str]:
        """The groups of the source that match the patterns."""
        return group_names(self._source, self._patterns)

    def active(self) -> list[str]:
        """Groups of the source that have members."""
        listed = _listed(self._source)
        return [group for group in self.groups() if listed[group] not in IDLE]

    def _commit(self, group: str, committed: Committed) -> bool:
        try:
            commit_offsets(self._target, group, committed)
        except LogError as error:
            if error.code not in HAS_MEMBERS | REFUSED:
                raise
            if group not in self._left:
                self._left.add(group)
                why = (
                    "has members in the target: its offsets there are not changed"
                    if error.code in HAS_MEMBERS
                    else f"is not copied: the target answers {error.code}"
                )
                self._report(f"group {group[:SHOWN_CHARS]!r} {why}")
            return False
        self._last[group] = committed
        return True


def group_names(admin: Admin, patterns: Sequence[str]) -> list[str]:
    """The groups that match the patterns. Raises `LogError`."""
    return sorted(group for group in _listed(admin) if is_wanted(group, patterns))


def committed_offsets(admin: Admin, group: str) -> Committed:
    """All committed offsets of a group. Raises `LogError`."""
    asked = admin.client.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
    found = admin.wait(asked[group], f"reading the offsets of group {group!r}")
    return {
        Partition(str(row.topic), int(row.partition)): (int(row.offset), row.metadata or "")
        for row in found.topic_partitions or ()
        if row.offset is not None and row.offset >= 0
    }


def commit_offsets(admin: Admin, group: str, committed: Committed) -> None:
    """Commit offsets. Retries for up to 30 s, for example while the group has no coordinator.

    Raises `LogError`.
    """
    retries = Retries(COORDINATOR_BACKOFF, random=Random(), monotonic=time.monotonic)
    while True:
        try:
            return _commit_once(admin, group, committed)
        except LogError as error:
            if not error.retriable or error.code in HAS_MEMBERS:
                raise
            time.sleep(retries.pause_s(error))


def _commit_once(admin: Admin, group: str, committed: Committed) -> None:
    rows = [
        KafkaPartition(partition.topic, partition.number, offset, metadata)
        for partition, (offset, metadata) in committed.items()
    ]
    doing = f"committing offsets of group {group!r}"
    asked = admin.client.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, rows)])
    answer = admin.wait(asked[group], doing)
    _check(answer.topic_partitions or (), doing)


def _check(rows: Iterable[KafkaPartition], doing: str) -> None:
    for row in rows:
        if row.error is not None:
            raise log_error(row.error, doing)


def _listed(admin: Admin) -> dict[str, ConsumerGroupState]:
    doing = "listing groups"
    try:
        found = admin.client.list_consumer_groups(request_timeout=admin.timeout_s).result()
    except KafkaException as error:
        raise log_error(error.args[0], doing) from error
    return {str(each.group_id): each.state for each in found.valid}
