"""The view: a broker's folded state in memory, with where each batch is in the bucket.

Pure: segments in, facts and touched partitions out. Invariants: the high watermark is the end of
the last visible batch, so it never rests on a void tail and never decreases; nor does the last
stable offset, because new transactions begin at or above the high watermark; rows of a partition
are in offset order, so every look-up is a bisection. Batches that are in the partition's tier, or
end at or before its log start, have no rows.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple
from weakref import WeakValueDictionary

from bucketlog.log_format.checkpoint import Checkpoint
from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_format.model import (
    SegmentIndex,
    TopicId,
    TopicIdPartition,
    WaitingSegment,
)
from bucketlog.metadata.acls import Acls
from bucketlog.metadata.checkpoint import restored
from bucketlog.metadata.client_quotas import ClientQuotas
from bucketlog.metadata.committed_offset import CommittedOffset
from bucketlog.metadata.data_keys import DataKeys
from bucketlog.metadata.delegation_tokens import DelegationTokens
from bucketlog.metadata.facts import (
    Fact,
    LogStartPayload,
    LogStartsMoved,
    PartitionsAdded,
    SwapPayload,
    TiersSwapped,
    TopicCreated,
    TopicDeleted,
    partition_of,
    topic_id_of,
)
from bucketlog.metadata.fold import LogState, TopicState
from bucketlog.metadata.partition_log import PartitionLog
from bucketlog.metadata.resource_configs import ResourceConfigs
from bucketlog.metadata.scram_credentials import ScramCredentials
from bucketlog.metadata.share_groups import ShareGroups
from bucketlog.metadata.topic_names import TopicNames
from bucketlog.metadata.transactions import Transactions
from bucketlog.metadata.unproven_gaps import UnprovenGaps
from bucketlog.metadata.waiting import WaitingSegments


class ViewChange(NamedTuple):
    """The changes by one segment. `partitions` have new batches. `moved` have a new log start or
    tier, or are deleted; of the deleted ones, only those whose logs were in use."""

    facts: list[Fact]
    partitions: list[TopicIdPartition]
    moved: tuple[TopicIdPartition, ...] = ()


class View:
    """Topics and partitions as the visible segments make them."""

    def __init__(self) -> None:
        self._state = LogState(keep_producers=False)
        self._logs: dict[TopicIdPartition, PartitionLog] = {}
        self._empty_logs: WeakValueDictionary[TopicIdPartition, PartitionLog] = (
            WeakValueDictionary()
        )
        """Logs of partitions without batches, as long as they are referenced: clients may ask for
        many. A log moves to `_logs` with its first batch."""
        self._waiting = WaitingSegments()
        self._moved = 0
        """Partitions whose first batch may have changed since the last update of `_waiting`."""
        self._names = TopicNames()
        self.gaps = UnprovenGaps()
        self.topics_version = 0
        """Differs whenever the topics, or their numbers of partitions, differ."""

    def apply(self, index: SegmentIndex) -> ViewChange:
        """Fold one visible segment. Raises `InvalidDataError`."""
        facts = self._state.apply(index)
        moved: list[TopicIdPartition] = []
        for fact in facts:
            if isinstance(fact, TopicCreated | TopicDeleted | PartitionsAdded):
                self.topics_version += 1
            if isinstance(fact, TopicCreated):
                self._names.add(fact.name)
            elif isinstance(fact, TopicDeleted):
                self._names.remove(fact.name)
                moved += self._forget(topic_id_of(fact))
        for fact in facts:  # also of topics that a later one of these deletes
            if isinstance(fact, TiersSwapped):
                moved += self._begin(fact.swaps)
            elif isinstance(fact, LogStartsMoved):
                moved += self._begin(fact.partitions)
        touched = []
        size = 0
        for part in index.partitions:
            if not part.batches:
                self.gaps.prove(part.partition, part.hw_stamp)
            else:
                log = self._logs.get(part.partition) or self._first_log(part.partition)
                self.gaps.note(part, max(log.high_watermark, log.batches_from))
                for row in part.batches:
                    log.append(index.segment, row)
                    size += row.length
                touched.append(part.partition)
        if touched:
            self._waiting.append(WaitingSegment(index.segment, size, index.created_ms))
        return ViewChange(facts, touched, tuple(moved))

    def logs(self) -> Mapping[TopicIdPartition, PartitionLog]:
        """Return the logs of partitions that have or had batches. Do not keep the result over an
        await."""
        return self._logs

    def _first_log(self, partition: TopicIdPartition) -> PartitionLog:
        """The log of a partition that gets its first batch."""
        log = self._logs[partition] = self._empty_log(partition)
        del self._empty_logs[partition]
        return log

    def _empty_log(self, partition: TopicIdPartition) -> PartitionLog:
        log = self._empty_logs.get(partition)
        if log is None:
            state = self._state.partitions[partition]
            log = self._empty_logs[partition] = PartitionLog(
                partition, state.tier, state.transactions
            )
            log.begin_at(state.batches_from)
        return log

    def _begin(self, named: Sequence[SwapPayload | LogStartPayload]) -> list[TopicIdPartition]:
        """An entry about these partitions was folded. Returns the partitions."""
        partitions = [partition_of(each) for each in named]
        for partition in partitions:
            log = self._logs.get(partition) or self._empty_logs.get(partition)
            if log is not None:
                log.begin_at(self._state.partitions[partition].batches_from)
                self.gaps.prove(partition, log.batches_from)
                self._moved += 1
        if self._moved >= len(self._logs):
            self._forget_waiting()
        return partitions

    @property
    def waiting(self) -> WaitingSegments:
        """Segments with batches that are in no tier yet. Do not keep it across an await."""
        if self._moved:
            self._forget_waiting()
        return self._waiting

    def _forget_waiting(self) -> None:
        """Reads all partitions: a single entry, for which a client sends 50 bytes, must not cause
        this."""
        self._moved = 0
        self._waiting.forget_before(
            {segments[0] for log in self._logs.values() if (segments := log.batches.segments)}
        )

    @classmethod
    def of(cls, segments: Iterable[SegmentIndex], checkpoint: Checkpoint | None = None) -> "View":
        """Return a view of the checkpoint and of the visible segments after it, in ticket order.
        Raises `InvalidDataError`. This takes long if the log is long. A thread may do it; then
        another view may `become` the result."""
        fresh = cls()
        fresh._state = restored(checkpoint, keep_producers=False)
        fresh._names = TopicNames(fresh._state.names)
        if checkpoint is not None:
            for partition in checkpoint.partitions:
                state = fresh._state.partitions[partition]
                fresh._logs[partition] = PartitionLog.of_checkpoint(
                    checkpoint, partition, state.tier, state.batches_from, state.transactions
                )
            fresh._waiting = WaitingSegments.of_checkpoint(checkpoint)
        for index in segments:
            fresh.apply(index)
        return fresh

    def become(self, fresh: "View") -> None:
        """Show what `fresh` shows, which nobody else uses. Holders of a partition's log see it
        grow. Raises `InvalidDataError` if less would be shown than before; the view then stays as
        it is."""
        for partition, held in self._logs.items():
            found = fresh.log(partition)
            if found is None:
                continue
            for name, before, now in (
                ("", held.high_watermark, found.high_watermark),
                (
                    " to consumers of read_committed",
                    held.last_stable_offset,
                    found.last_stable_offset,
                ),
            ):
                if now < before:
                    raise InvalidDataError(
                        f"{partition} was shown{name} up to offset {before}, and now ends at {now}",
                        remedy="objects are missing in the bucket: restore them",
                    )
        for partition, held in [*self._logs.items(), *self._empty_logs.items()]:
            found = fresh.log(partition)
            if found is not None:
                held.become(found)
                logs = fresh._logs if partition in fresh._logs else fresh._empty_logs
                logs[partition] = held
        self._state, self._logs, self._waiting = fresh._state, fresh._logs, fresh.waiting
        self._moved = 0
        self.topics_version += 1
        self._names, self.gaps = fresh._names, fresh.gaps
        self._empty_logs = fresh._empty_logs

    def _forget(self, topic_id: TopicId) -> list[TopicIdPartition]:
        """Returns the partitions of the topic whose logs were in use."""
        self.gaps.forget(topic_id)
        filled = [key for key in self._logs if key.topic_id == topic_id]
        for partition in filled:
            del self._logs[partition]
        empty = [key for key in self._empty_logs if key.topic_id == topic_id]
        for partition in empty:
            self._empty_logs.pop(partition, None)
        return filled + empty

    def topics(self) -> list[TopicState]:
        return list(self._state.topics.values())

    @property
    def topic_count(self) -> int:
        return len(self._state.topics)

    @property
    def partition_count(self) -> int:
        """The number of partitions of all topics."""
        return len(self._state.partitions)

    def colliding_name(self, name: str) -> str | None:
        """A topic whose name equals `name`, or differs from it only in '.' and '_'."""
        return self._names.colliding(name)

    def topic(self, name: str) -> TopicState | None:
        topic_id = self._state.names.get(name)
        return None if topic_id is None else self._state.topics[topic_id]

    def topic_name(self, topic_id: TopicId) -> str | None:
        topic = self._state.topics.get(topic_id)
        return None if topic is None else topic.name

    def topic_by_id(self, topic_id: TopicId) -> TopicState | None:
        return self._state.topics.get(topic_id)

    def log(self, partition: TopicIdPartition) -> PartitionLog | None:
        """Return the log of a partition; None if the partition does not exist."""
        topic = self._state.topics.get(partition.topic_id)
        if topic is None or not 0 <= partition.partition < topic.partitions:
            return None
        return self._logs.get(partition) or self._empty_log(partition)

    def has_dropped(self, log: PartitionLog) -> bool:
        """Return whether the partition was deleted since `log` was looked up."""
        return self.log(log.partition) is not log

    def log_start(self, partition: TopicIdPartition) -> int:
        return self._state.partitions[partition].log_start

    def has_offsets(self, group: str) -> bool:
        """Return whether the group has committed or pending offsets."""
        return bool(self._state.groups.get(group)) or self._state.transactions.is_pending(group)

    def group_count(self) -> int:
        """The number of groups with committed or pending offsets."""
        return len(self._state.groups) + len(self._pending_only())

    def _pending_only(self) -> list[str]:
        pending = self._state.transactions.pending_groups()
        return [group for group in pending if group not in self._state.groups]

    @property
    def offset_weight(self) -> int:
        """The weight of all committed and pending offsets (`committed_offset.offset_weight`)."""
        return self._state.offsets.weight

    def groups(self) -> list[str]:
        """The groups that have committed or pending offsets."""
        return [*self._state.groups, *self._pending_only()]

    def offsets(self, group: str) -> Mapping[TopicIdPartition, CommittedOffset]:
        """A group's committed offsets as they are now: not to be held over an await."""
        return self._state.groups.get(group, {})

    @property
    def transactions(self) -> Transactions:
        """Transactional ids and pending offsets: not to be held over an await."""
        return self._state.transactions

    @property
    def scram_credentials(self) -> ScramCredentials:
        """The credentials. Do not keep the result over an await."""
        return self._state.scram_credentials

    @property
    def acls(self) -> Acls:
        """The ACLs. Do not keep the result over an await."""
        return self._state.acls

    @property
    def client_quotas(self) -> ClientQuotas:
        """The quotas of clients. Do not keep the result over an await."""
        return self._state.client_quotas

    @property
    def resource_configs(self) -> ResourceConfigs:
        """The configs of other resources than topics. Do not keep the result over an await."""
        return self._state.resource_configs

    @property
    def delegation_tokens(self) -> DelegationTokens:
        """The delegation tokens. Do not keep the result over an await."""
        return self._state.delegation_tokens

    @property
    def data_keys(self) -> DataKeys:
        """The data keys of topics. Do not keep the result over an await."""
        return self._state.data_keys

    @property
    def share_groups(self) -> ShareGroups:
        """The share groups. Do not keep the result over an await."""
        return self._state.share_groups

    def unstable_offsets_max(self) -> int:
        """The largest distance between a partition's last stable offset and high watermark."""
        logs = [self.log(each) for each in self._state.transactions.open_partitions()]
        return max(
            (log.high_watermark - log.last_stable_offset for log in logs if log is not None),
            default=0,
        )

    def pending_offsets(self, group: str) -> set[TopicIdPartition]:
        """The partitions for which a transaction that has not ended has offsets of the group."""
        return set(self._state.transactions.held(group))
