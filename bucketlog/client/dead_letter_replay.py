"""Replay of dead letters: a plan, then the records to their origin topics; progress in a group.

Invariants: a record counts as replayed, and its offset is committed, only after a broker has
acknowledged the copy. Memory holds `CHUNK_RECORDS` or `CHUNK_BYTES` of records at a time. A replay
reads no record beyond its plan. It stops if anybody else changes the group's progress.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from bucketlog.client.dead_letters import (
    DeadLetterFilter,
    DeadLetterRecord,
    OffsetSpan,
    read_records,
    spans,
)
from bucketlog.client.groups import GroupOffset
from bucketlog.client.producer import Delivery, Producer
from bucketlog.client.replayed_offsets import ReplayedOffsets
from bucketlog.client.topic import Record, Topic
from bucketlog.log_format.display import Description, DisplayedObject
from bucketlog.log_format.errors import (
    BucketlogError,
    ConfigurationError,
    InvalidDataError,
    LogError,
)

if TYPE_CHECKING:
    from bucketlog.client.log import Log

CHUNK_RECORDS = 1000
CHUNK_BYTES = 8 * 1024 * 1024
TARGETS_MAX = 1000
GROUP_PREFIX = "bucketlog-deadletter-"


@dataclass(slots=True, repr=False)
class DeadLetterPlan(DisplayedObject):
    """What a replay would send: the number of records by origin topic (None: `to`
    was given) and target, without records that were replayed before."""

    targets: dict[tuple[str | None, str], int] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)
    """By partition that has records to send: the end of what the plan has read."""

    @property
    def records(self) -> int:
        return sum(self.targets.values())

    def _description(self) -> Description:
        rows = [(origin, to, records) for (origin, to), records in self.targets.items()]
        return Description({"records": self.records}, ("origin", "target", "records"), rows)


class DeadLetterReplay:
    """One replay of a dead-letter topic. `to`: the topic that gets all records; None: the origin
    topic of each. `group` keeps the progress."""

    def __init__(
        self, log: "Log", topic: str, group: str, wanted: DeadLetterFilter, to: str | None
    ) -> None:
        if to == topic:
            raise ConfigurationError(
                f"{to!r} is the dead-letter topic itself", remedy="choose another topic"
            )
        self.replayed = 0
        self._log = log
        self._topic = topic
        self._group = group
        self._wanted = wanted
        self._to = to
        self._partition_counts: dict[str, int] = {}
        self._topics: dict[str, Topic[bytes, bytes]] = {}
        self._spans = spans(log, topic, wanted)
        self._committed = log.groups.committed(group, topic)
        self._progress = progress_of(self._committed, self._spans, topic, group)
        self._changed: set[int] = set()

    def plan(self) -> DeadLetterPlan:
        """Reads the whole range; sends and commits nothing. Raises `ConfigurationError` for a
        record without an origin, `LogError` if a target does not exist."""
        plan = DeadLetterPlan()
        after = {part: done.copy() for part, done in self._progress.items()}
        for record, before in self._records(self._spans):
            done = after[record.partition]
            done.add(before, record.offset)
            letter = DeadLetterRecord.of(record)
            if record.offset in done or not self._wanted.accepts(letter):
                continue
            target = self._target(letter)
            row = (letter.origin_topic if self._to is None else None, target.name)
            plan.targets[row] = plan.targets.get(row, 0) + 1
            plan.ends[record.partition] = record.offset + 1
            done.add(record.offset, record.offset + 1)
        for done in after.values():
            done.metadata()  # raises if the progress would not fit
        return plan

    def run(
        self,
        plan: DeadLetterPlan,
        *,
        stopping: Callable[[], bool] = lambda: False,
        on_records: Callable[[int], object] = lambda count: None,
    ) -> None:
        """Send what the plan says; `stopping` is asked after each chunk. Raises `LogError` for the
        first record that was not acknowledged; progress then has all others of its chunk."""
        ends = {part: replace(self._spans[part], end=end) for part, end in plan.ends.items()}
        chunk: list[tuple[Record[bytes, bytes], Delivery]] = []
        size_bytes = 0
        with self._log.producer() as producer:
            try:
                for record, before in self._records(ends):
                    self._progress[record.partition].add(before, record.offset)
                    letter = DeadLetterRecord.of(record)
                    if record.offset in self._progress[record.partition]:
                        continue
                    if not self._wanted.accepts(letter):
                        continue
                    chunk.append((record, self._send(producer, letter)))
                    size_bytes += len(record.raw_key or b"") + len(record.raw_value or b"")
                    if len(chunk) >= CHUNK_RECORDS or size_bytes >= CHUNK_BYTES:
                        on_records(self._settle(chunk))
                        size_bytes = 0
                        if stopping():
                            return
                on_records(self._settle(chunk))
            except BucketlogError:
                self._settle(chunk)  # what was sent before the failure
                raise

    def _records(
        self, wanted: Mapping[int, OffsetSpan]
    ) -> Iterator[tuple[Record[bytes, bytes], int]]:
        """With each record the offset after its predecessor: offsets between them hold none."""
        begun = {
            part: replace(span, start=max(span.start, self._progress[part].next_offset))
            for part, span in wanted.items()
        }
        at = {part: span.start for part, span in begun.items()}
        for record in read_records(self._log, self._topic, begun):
            yield record, at[record.partition]
            at[record.partition] = record.offset + 1

    def _target(self, letter: DeadLetterRecord) -> Topic[bytes, bytes]:
        name = self._to if self._to is not None else letter.origin_topic
        if name is None:
            raise ConfigurationError(
                f"the record at {letter.record.where} names no origin topic",
                remedy="name a target with --to, or leave the record out with --origin",
            )
        if name not in self._topics:
            if name == self._topic or len(self._topics) >= TARGETS_MAX:
                raise ConfigurationError(
                    f"the record at {letter.record.where} came from {name!r}, "
                    + ("the topic itself" if name == self._topic else "one topic too many"),
                    remedy="name a target with --to, or leave the record out with --origin",
                )
            try:
                made = Topic(name)
                self._partition_counts[name] = self._log.topics.partition_count(made)
            except (ConfigurationError, LogError) as error:
                if self._to is None:
                    error.message = f"the record at {letter.record.where}: {error.message}"
                    error.remedy = "create its topic, name a target with --to, or use --origin"
                raise
            self._topics[name] = made
        return self._topics[name]

    def _send(self, producer: Producer, letter: DeadLetterRecord) -> Delivery:
        """To the partition of its origin, which keeps the order of keys; with `to`, by key."""
        target, record = self._target(letter), letter.record
        partition = letter.origin_partition if self._to is None else None
        if partition is not None and partition >= self._partition_counts[target.name]:
            partition = None
        return producer.send(
            target,
            record.raw_value,
            key=record.raw_key,
            headers=letter.headers,
            partition=partition,
            timestamp_ms=None if letter.timestamp_ms < 0 else letter.timestamp_ms,
        )

    def _settle(self, chunk: list[tuple[Record[bytes, bytes], Delivery]]) -> int:
        """Empties the chunk: waits for the acknowledgements, and commits them. Returns their
        number."""
        failure: BucketlogError | None = None
        count = 0
        sent = chunk.copy()
        chunk.clear()
        for record, delivery in sent:
            try:
                delivery.result()
            except BucketlogError as error:
                failure = failure or error
                continue
            count += 1
            self._progress[record.partition].add(record.offset, record.offset + 1)
            self._changed.add(record.partition)
        self.replayed += count
        self._commit()
        if failure is not None:
            raise failure
        return count

    def _commit(self) -> None:
        if not self._changed:
            return
        rows = {part: committed_of(self._progress[part]) for part in sorted(self._changed)}
        found = self._log.groups.committed(self._group, self._topic)
        for part in rows:
            if found.get(part) != self._committed.get(part):
                raise BucketlogError(
                    f"another program changed the progress of group {self._group!r} in "
                    f"{self._topic}[{part}]: the last records may be replayed twice",
                    remedy="run one replay of a group at a time",
                )
        self._log.groups.commit(self._group, self._topic, rows)
        self._committed |= rows
        self._changed.clear()


def committed_of(done: ReplayedOffsets) -> GroupOffset:
    return GroupOffset(done.next_offset, done.metadata())


def progress_of(
    committed: Mapping[int, GroupOffset],
    wanted: Mapping[int, OffsetSpan],
    topic: str,
    group: str,
) -> dict[int, ReplayedOffsets]:
    """Return the replayed offsets of each partition. Raises `InvalidDataError`."""
    found: dict[int, ReplayedOffsets] = {}
    remedy = f"`bucketlog group reset {group} --topic {topic} --to start` begins again"
    for part, span in wanted.items():
        row = committed.get(part)
        if row is None:
            found[part] = ReplayedOffsets(span.earliest)
            continue
        if row.offset > span.latest:
            raise InvalidDataError(
                f"group {group!r} has replayed {topic}[{part}] up to offset {row.offset}, "
                f"but the partition ends at {span.latest}",
                remedy=remedy,
            )
        try:
            found[part] = ReplayedOffsets.committed(row.offset, row.metadata)
        except InvalidDataError as error:
            raise InvalidDataError(
                f"group {group!r}, {topic}[{part}]: {error.message}", remedy=remedy
            ) from error
        found[part].add(row.offset, span.earliest)
    return found
