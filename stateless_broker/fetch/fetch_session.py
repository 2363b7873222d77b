"""An incremental fetch session (KIP-227): its partitions, and what the client knows of them.

Invariant: a partition that is not pending would add nothing to a response. It has no records above
its fetch offset and no error, and the client knows its high watermark and its log start. So a
response is made from the pending partitions alone, and an idle session costs nothing per partition.
The last stable offset has no place here: it changes only together with the other two.
Source: KIP-227; Kafka's FetchSession, CachedPartition and IncrementalFetchContext.
"""

from collections.abc import Iterable, Iterator
from typing import Protocol

from bucketlog.log_format.model import TopicId, TopicIdPartition
from bucketlog.log_format.wire.fetch import (
    LAST_EPOCH,
    FetchedPartition,
    FetchPartitionData,
    TopicKey,
)
from bucketlog.metadata.partition_log import PartitionLog
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.fetch.watching import Watchers

EPOCH_MAX = 2**31 - 1
UNKNOWN = -1
"""An offset that the client does not know."""


class SessionConnection(Protocol):
    """The connection that last used a session."""

    @property
    def is_gone(self) -> bool: ...


class SessionTopic:
    """A topic of a session. `state` is the topic's id and number of partitions, as the session last
    saw them; None if the topic does not exist."""

    __slots__ = ("key", "partitions", "state")

    def __init__(self, key: TopicKey, state: tuple[TopicId, int] | None) -> None:
        self.key = key
        self.state = state
        self.partitions: dict[int, SessionPartition] = {}

    def partition(self, number: int) -> TopicIdPartition | None:
        """Return a partition; None if it does not exist."""
        if self.state is None or not 0 <= number < self.state[1]:
            return None
        return TopicIdPartition(self.state[0], number)


class SessionPartition:
    """A partition of a session. `row` identifies the partition in its session. `place` orders the
    partitions of a response: those that have given records go to the end, so that each gets its
    turn."""

    __slots__ = (
        "fetch_offset",
        "high_watermark",
        "leader_epoch",
        "log",
        "log_start",
        "max_bytes",
        "number",
        "place",
        "row",
        "topic",
    )

    def __init__(self, topic: SessionTopic, number: int, row: int, place: int) -> None:
        self.topic = topic
        self.number = number
        self.row = row
        self.place = place
        self.leader_epoch = self.fetch_offset = self.max_bytes = -1
        self.log: PartitionLog | None = None
        """The watched log; None if the partition does not exist."""
        self.high_watermark = self.log_start = UNKNOWN
        """The high watermark and the log start that the client knows."""

    @property
    def wanted(self) -> FetchedPartition:
        """Return the partition in the form in which a request names it."""
        return FetchedPartition(
            *self.topic.key, self.number, self.leader_epoch, self.fetch_offset, self.max_bytes
        )

    def note(self, result: FetchPartitionData) -> bool:
        """Note what the client knows after this result. Returns whether the result has news."""
        failed = bool(result.error_code)
        is_news = (
            failed
            or bool(result.records)
            or result.high_watermark != self.high_watermark
            or result.log_start_offset != self.log_start
        )
        self.high_watermark = UNKNOWN if failed else result.high_watermark
        self.log_start = result.log_start_offset
        return is_news


class FetchSession:
    """A fetch session. `epoch` is that of the next request. `owner` is the client that created the
    session."""

    def __init__(
        self,
        session_id: int,
        owner: str,
        connection: SessionConnection,
        *,
        uses_topic_ids: bool,
        view: View,
        watchers: Watchers,
        now_ms: int,
    ) -> None:
        self.id = session_id
        self.owner = owner
        self.connection = connection
        self.uses_topic_ids = uses_topic_ids
        self.created_ms = self.used_ms = now_ms
        self.epoch = 1
        self.changes = watchers.new_rows()
        self._basis: object = None
        self._committed_only = False
        self.pending: set[int] = set()
        """The rows that the next response has to examine."""
        self._view = view
        self._watchers = watchers
        self._topics: dict[TopicKey, SessionTopic] = {}
        self._topics_version = view.topics_version
        self._rows: list[SessionPartition | None] = []
        self._free: list[int] = []
        self._next_place = 0

    def __len__(self) -> int:
        return len(self._rows) - len(self._free)

    @property
    def topic_count(self) -> int:
        return len(self._topics)

    def advance(self) -> int:
        """Begin the next request. Returns the epoch that the session has until a later one."""
        self.epoch = 1 if self.epoch == EPOCH_MAX else self.epoch + 1
        self.changes.end_wait()  # a request that waits is out of date now
        return self.epoch

    # Partitions ------------------------------------------------------------------------------

    def put(self, wanted: FetchedPartition) -> SessionPartition:
        """Add a partition, or replace its values. The next response examines it."""
        key = wanted.topic, wanted.topic_id
        topic = self._topics.get(key)
        if topic is None:
            topic = self._topics[key] = SessionTopic(key, self._state_of(key))
        part = topic.partitions.get(wanted.partition)
        if part is None:
            part = self._add(topic, wanted.partition)
        part.leader_epoch = wanted.leader_epoch
        part.fetch_offset = wanted.fetch_offset
        part.max_bytes = wanted.max_bytes
        self.pending.add(part.row)
        return part

    def has(self, wanted: FetchedPartition) -> bool:
        topic = self._topics.get((wanted.topic, wanted.topic_id))
        return topic is not None and wanted.partition in topic.partitions

    def _add(self, topic: SessionTopic, number: int) -> SessionPartition:
        if self._free:
            row = self._free.pop()
        else:
            row = len(self._rows)
            self._rows.append(None)
        part = SessionPartition(topic, number, row, self._next_place)
        self._next_place += 1
        self._rows[row] = topic.partitions[number] = part
        self._watch(part)
        return part

    def forget(self, key: TopicKey, number: int) -> None:
        """Remove a partition, if the session has it."""
        topic = self._topics.get(key)
        part = None if topic is None else topic.partitions.pop(number, None)
        if topic is None or part is None:
            return
        if not topic.partitions:
            del self._topics[key]
        self._unwatch(part)
        self._rows[part.row] = None
        self._free.append(part.row)
        self.pending.discard(part.row)

    @property
    def is_closed(self) -> bool:
        return self.epoch == LAST_EPOCH

    def close(self) -> None:
        """Watch nothing any more. A request that waits ends."""
        for part in self.partitions():
            self._unwatch(part)
        self.epoch = LAST_EPOCH
        self.changes.end_wait()

    def partitions(self) -> Iterator[SessionPartition]:
        return (part for part in self._rows if part is not None)

    def in_order(self, rows: Iterable[int]) -> list[SessionPartition]:
        """The partitions in these rows, in the order of a response. Rows that have become empty are
        left out."""
        found = (self._rows[row] for row in rows)
        return sorted((part for part in found if part is not None), key=_place_of)

    # Changes ---------------------------------------------------------------------------------

    def _watch(self, part: SessionPartition) -> None:
        """Watch the log of the partition. A closed session watches nothing: nobody would end it."""
        if self.is_closed:
            return
        partition = part.topic.partition(part.number)
        part.log = None if partition is None else self._view.log(partition)
        if part.log is not None:
            self._watchers.add([(part.row, part.log.partition)], self.changes)

    def _unwatch(self, part: SessionPartition) -> None:
        if part.log is not None:
            self._watchers.remove([(part.row, part.log.partition)], self.changes)
            part.log = None

    def has_deleted(self, rows: Iterable[int]) -> bool:
        """Return whether a partition in these rows was deleted since the session began to watch
        it."""
        logs = (part.log for part in self.in_order(rows))
        return any(log is not None and self._view.has_dropped(log) for log in logs)

    def follow(self, basis: object, *, committed_only: bool) -> None:
        """Make pending what has changed since the last request: all partitions if `basis` or the
        isolation level has, else the changed ones and those of topics that were created, deleted
        or extended. All results depend on `basis`: rights, and the roles of this broker."""
        self.pending |= self.changes.take()
        if self._basis != basis or self._committed_only != committed_only:
            self._basis, self._committed_only = basis, committed_only
            self.pending.update(part.row for part in self.partitions())
        if self._topics_version == self._view.topics_version:
            return
        self._topics_version = self._view.topics_version
        for topic in self._topics.values():
            state = self._state_of(topic.key)
            if state == topic.state:
                continue
            topic.state = state
            for part in topic.partitions.values():
                self._unwatch(part)
                self._watch(part)
                self.pending.add(part.row)

    def _state_of(self, key: TopicKey) -> tuple[TopicId, int] | None:
        name, topic_id = key
        if self.uses_topic_ids:
            state = None if topic_id is None else self._view.topic_by_id(topic_id)
        else:
            state = self._view.topic(name)
        return None if state is None else (state.topic_id, state.partitions)

    def settle(self, part: SessionPartition, result: FetchPartitionData) -> bool:
        """Note the result of a partition in a response. Returns whether the result has news, and so
        belongs to the response. The log must not have changed since the result."""
        is_news = part.note(result)
        if result.records:
            part.place = self._next_place
            self._next_place += 1
        if not result.error_code and not self._may_read_more(part):
            self.pending.discard(part.row)
        return is_news

    def _may_read_more(self, part: SessionPartition) -> bool:
        """Return whether the partition has records above the fetch offset, or has changed."""
        log = part.log
        return (
            log is None
            or self._view.has_dropped(log)
            or part.fetch_offset < log.readable_end(committed_only=self._committed_only)
            or part.high_watermark != log.high_watermark
            or part.log_start != self._view.log_start(log.partition)
        )


def _place_of(part: SessionPartition) -> int:
    return part.place
