"""A member of a consumer group: it shares the partitions of topics and commits what was done.

Invariants: with automatic commits an offset is committed only after the caller asked for more
records than those before it, or left the `with` block normally: what was being worked on when an
exception, a crash or the loss of a partition came is read again (at least once). What was fetched
and not handed out is never committed. When a partition goes to another member, what is done of it
is committed before the other one may read it. Committing is librdkafka's: here is only decided
which offsets are stored for it.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from confluent_kafka import OFFSET_END, KafkaError, KafkaException, Message
from confluent_kafka import Consumer as KafkaConsumer
from confluent_kafka import TopicPartition as KafkaPartition

from bucketlog.client.acknowledged import Acknowledged
from bucketlog.client.assignment_wait import AssignmentWait
from bucketlog.client.bounded import bounded
from bucketlog.client.committing import NO_COORDINATOR_YET, GroupCommits
from bucketlog.client.committing_consumer import CommittingConsumer
from bucketlog.client.decoding import part_of_message, spot_of
from bucketlog.client.group_errors import GroupErrors
from bucketlog.client.handed_out import HandedOut
from bucketlog.client.kafka_errors import log_error
from bucketlog.client.leaving import leave
from bucketlog.client.membership import GroupMembership
from bucketlog.client.poison import Poison
from bucketlog.client.reading_range import UntilOf, found_offsets, group_positions, part_of
from bucketlog.client.retry_topics import RetryTopics
from bucketlog.client.settlement import Settlement
from bucketlog.client.sources import P, Part, Sources
from bucketlog.client.topic_search import TopicSearch
from bucketlog.log_format.errors import BucketlogError, LogError

if TYPE_CHECKING:
    from bucketlog.client.traced_reads import TracedReads

K = TypeVar("K")
V = TypeVar("V")

SERVE_S = 0.1
"""Interval of the calls of librdkafka while there are records to hand out."""
PLACE_S = 1.0
"""How long looking up where to begin may take before other partitions are read on."""
CLOSE_S_MIN = 1.0
"""What leaving may take where committing used up the time."""
HAND_OVER_S = 5.0
"""How long acknowledgements of records in flight are waited for before their partition goes."""


class GroupConsumer(CommittingConsumer[K, V, P]):
    """Member of a consumer group, which reads the partitions that the group assigns to it. Made by
    `Log.consumer` with a group.

    Attributes:
        topic: Topic that is read.
        group: Name of the consumer group.

    Examples:
        >>> with log.consumer(orders, group="billing", start="earliest", until="end") as consumer:
        ...     for record in consumer:
        ...         print(record.value.id)
        1
        2
        >>> log.groups.committed("billing", orders)[0].offset
        2
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        sources: Sources[K, V, P],
        poison: Poison,
        search: TopicSearch,
        membership: GroupMembership[P],
        settlement: Settlement,
        prepare_retries: Callable[[RetryTopics, int], Mapping[str, int]],
        *,
        until: UntilOf[P] | None,
        timeout_s: float,
        traced: "TracedReads | None" = None,
    ) -> None:
        self.group = membership.group
        self._membership = membership
        self._settlement = settlement
        self._prepare_retries = prepare_retries
        self._owned: set[Part] = set()
        self._unplaced: set[Part] = set()
        """Given to this member, and where to begin is not looked up yet."""
        self._given = (
            Acknowledged(membership.in_flight_records_max)
            if membership.auto_commit == "ack"
            else HandedOut(keeps_first=not membership.auto_commit)
        )
        what = f"group {self.group!r}, {sources.description}"
        self._assignment_wait = AssignmentWait(what, settlement.ask, time.monotonic)
        self._served_s = time.monotonic()
        self._place_at_s = 0.0
        self._interrupted = False
        self._closed = False
        self._errors = GroupErrors(what)
        ours = {**membership.kafka_config(), "on_commit": self._errors.commit_answered}
        super().__init__(
            {**config, **ours},
            *(sources, poison, search),
            until=until,
            timeout_s=timeout_s,
            traced=traced,
        )
        self._commits = GroupCommits(self._kafka, self._owned, self._errors, timeout_s, traced)
        self._topics_changed()

    def _topics_changed(self) -> None:
        """The group assigns partitions of the topics that there are now."""
        try:
            if not self._sources.topics:
                self._kafka.unsubscribe()
                return
            self._kafka.subscribe(
                self._sources.names,
                on_assign=self._partitions_came,
                on_revoke=self._partitions_go,
                on_lost=self._partitions_lost,
            )
        except KafkaException as error:
            raise self._errors.of(error.args[0], "subscribing") from error

    @property
    def assignment(self) -> frozenset[P]:
        """Numbers of the partitions that this member reads now."""
        return frozenset(self._sources.names_of(self._owned))

    @property
    def finished(self) -> bool:
        """Whether all records up to `until` of all assigned partitions were returned.

        A member without partitions is finished once the group has assigned all of them to others.
        Without `until`, this is False.
        """
        if self._ends is None or self._ends or self._ready or self._held or self._unplaced:
            return False
        if self._closed or (self._owned and not self._sources.retries):
            return True
        given = self._settlement.settled(self._kafka.memberid() or "")
        return given is not None and given <= self._owned

    def _read_retries(self, retries: RetryTopics) -> None:
        delays_s = dict(zip(retries.topics, map(float, retries.delays_s), strict=True))
        if delays_s == self._sources.retries:
            return
        self._process.check()
        with self._turn:
            kept = self._settlement.partitions
            counts = {name: kept[name] for name in kept.keys() - self._sources.retries.keys()}
            most = max(counts.values(), default=1)
            retry_counts = self._prepare_retries(retries, most)
            counts.update(retry_counts)
            if self._ends is not None:  # before a record of this run can fail
                spots = ((name, at) for name, count in retry_counts.items() for at in range(count))
                wanted = dict.fromkeys(spots, OFFSET_END)
                self._retry_ends = found_offsets(self._kafka, wanted, self._timeout_s)
            self._settlement.partitions = counts
            self._settlement.begin_anew()
            self._sources.retry(delays_s)
            self._topics_changed()

    def close(self) -> None:
        """Commit what is done, with automatic commits, and leave the group.

        Before you call this, leave the loop normally, or call `commit`: the last returned record is
        not known to be done. A static member (`instance_id`) keeps its partitions until its session
        ends.

        Raises:
            ConcurrentUseError: If another thread uses the consumer.
            LogError: If the offsets cannot be committed.
        """
        super().close()

    def _close(self) -> None:
        if self._closed:
            return
        self._closed = True
        deadline = time.monotonic() + self._timeout_s
        try:
            if self._membership.auto_commit:
                self._commits.store(self._given)
                self._commits.commit()
        finally:
            left_s = max(CLOSE_S_MIN, deadline - time.monotonic())
            try:
                is_idle = self._membership.is_cooperative and not self._owned
                bounded(lambda: leave(self._kafka, left_s / 2, is_idle=is_idle), left_s)
            except KafkaException as error:
                raise self._errors.of(error.args[0], "leaving the group") from error

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            with self._turn:
                if exc is None:
                    self._given.finish()
                self.close()
        except BucketlogError as error:
            if exc is None:
                raise
            exc.add_note(str(error))

    # What is done ----------------------------------------------------------------------------

    def _has_open_records(self) -> bool:
        return bool(self._membership.auto_commit) and self._given.has_open

    def _room(self) -> int:
        return self._given.room

    def _passed_over(self, message: Message) -> None:
        self._given.pass_over(*spot_of(message))

    def _more_wanted(self) -> None:
        if self._membership.auto_commit:
            self._given.finish()
            self._commits.store_unless_lost(self._given)  # at once: the next record may take long
        if not self._given.room:
            self._given.wait_for_room(SERVE_S)
        if bool(self._ready) and time.monotonic() - self._served_s > SERVE_S:
            self._fill(1, 0)  # a slow loop body must not keep the group waiting

    def _is_serving_due(self) -> bool:
        return bool(self._ready) and (
            not self._given.room or time.monotonic() - self._served_s > SERVE_S
        )

    def _handed_out(self, message: Message) -> None:
        self._given.note(*spot_of(message))

    # Seeking ---------------------------------------------------------------------------------

    def _mine(self) -> Sequence[Part]:
        return sorted(self._owned)

    def _read_again(self, part: Part, offset: int) -> None:
        if part not in self._paused:
            self._resume_fetching([part])
        self._seek_kafka(part, offset)

    def _assign_anew(self, part: Part, offset: int) -> None:
        if self._membership.is_cooperative:
            super()._assign_anew(part, offset)
            return
        at = {**self._positions_of(self._owned), part: offset}
        self._kafka.assign([KafkaPartition(*each, start) for each, start in at.items()])
        self._drop_ready(self._owned)
        self._began.update(at)
        self._pause_fetching(
            [
                each
                for each in at
                if each in self._paused or each in self._due or not self._is_being_read(each)
            ]
        )

    def _positions_to_undo(self, parts: Collection[Part]) -> dict[Part, int]:
        return {} if self._given.transactional_id is None else self._positions_of(parts)

    def _sought(self, part: Part, offset: int, undone_at: int | None) -> None:
        self._given.seek(part, offset, undone_at)
        self._commits.forget([part])
        self._epoch = self._given.epoch

    # Reading ---------------------------------------------------------------------------------

    def _fill(self, max_records: int, timeout_s: float) -> None:
        self._place()
        if self._owned:
            self._assignment_wait.end()
        elif self._sources.topics:
            self._assignment_wait.look(self._kafka.memberid() or "")
        super()._fill(max_records, timeout_s)

    def _consume(self, max_records: int, timeout_s: float) -> list[Message]:
        if self._interrupted:
            raise log_error(
                KafkaError(KafkaError._STATE),
                self._errors.doing("an earlier call was interrupted and may have lost records"),
            )
        try:
            messages = super()._consume(max_records, timeout_s)
        except LogError:
            raise
        except BaseException:  # of a callback, or Ctrl-C: librdkafka drops what it had in hand
            self._interrupted = True
            raise
        self._served_s = time.monotonic()
        return [
            message
            for message in messages
            if message.error() is not None or part_of_message(message) in self._owned
        ]

    def _stop_reading(self, part: Part) -> None:
        self._kafka.pause([KafkaPartition(*part)])

    def _failure(self, error: KafkaError, message: Message) -> LogError | None:
        if error.code() == KafkaError._FATAL:
            return self._errors.of(error, "reading")
        if error.code() == KafkaError._PARTITION_EOF and (
            part_of_message(message) not in self._owned
        ):
            return None
        return super()._failure(error, message)

    # Partitions come and go: callbacks of librdkafka, within `consume` and `close` ------------

    def _partitions_came(self, kafka: KafkaConsumer, spots: list[KafkaPartition]) -> None:
        """Nothing is asked of the broker here, so that a failure is raised where it can be."""
        self._settlement.begin_anew()
        self._unplaced |= set(map(part_of, spots))
        if self._membership.is_cooperative:
            kafka.incremental_assign([])
        else:
            kafka.assign([])

    def _place(self) -> None:
        """Begin to read the partitions that came: at what is committed, else at `start`."""
        if not self._unplaced or time.monotonic() < self._place_at_s:
            return
        parts = sorted(self._unplaced)
        try:
            begin, fresh = group_positions(
                self._kafka,
                [KafkaPartition(*part) for part in parts],
                self._membership.start,
                self._sources.begins_early,
                PLACE_S,
                self._timeout_s,
            )
            begin = self._begin_at({part_of(spot): spot.offset for spot in begin})
            ends = None if self._ends is None else self._end_offsets(begin)
            if self._membership.is_cooperative:
                self._kafka.incremental_assign(begin)
            else:
                self._kafka.assign(begin)
            self._unplaced.clear()
            self._owned.update(parts)
            self._kafka.resume(begin)  # paused before it went to another member
            if fixed := [spot for spot in fresh if spot.offset >= 0]:
                self._kafka.store_offsets(offsets=fixed)
            if self._ends is not None and ends is not None:
                self._ends.update(ends)
                self._kafka.pause([spot for spot in begin if part_of(spot) not in ends])
        except KafkaException as error:
            if error.args[0].code() in NO_COORDINATOR_YET:
                # behind a join that waits for the others, or the group has no coordinator: not lost
                self._place_at_s = time.monotonic() + PLACE_S
                return
            failure = log_error(error.args[0], self._errors.doing("finding where to begin"))
            if not self._is_of_deleted_topic(failure):
                raise failure from error
            return
        except LogError as failure:
            if not self._is_of_deleted_topic(failure):
                raise
            return
        if self._membership.on_assigned is not None:
            self._membership.on_assigned(self._sources.names_of(parts))

    def _partitions_go(self, kafka: KafkaConsumer, spots: list[KafkaPartition]) -> None:
        """In order: what is acknowledged within a moment is committed before they go."""
        if isinstance(self._given, Acknowledged):
            self._given.wait_until_acknowledged(set(map(part_of, spots)), HAND_OVER_S)
            self._commits.store_unless_lost(self._given)
        self._partitions_lost(kafka, spots)

    def _partitions_lost(self, kafka: KafkaConsumer, spots: list[KafkaPartition]) -> None:
        gone = set(map(part_of, spots))
        self._drop_ready(gone)
        self._unplaced -= gone
        self._settlement.begin_anew()
        try:
            if self._membership.on_revoked is not None:
                self._membership.on_revoked(self._sources.names_of(gone))
        finally:
            leaving = [KafkaPartition(*part) for part in sorted(gone & self._owned)]
            self._owned -= gone
            self._given.drop(gone)
            self._epoch = self._given.epoch
            self._paused -= gone
            self._due.forget(gone)
            self._commits.forget(gone)
            for part in gone:
                for account in (self._ends or {}, self._began):
                    account.pop(part, None)
            if self._membership.is_cooperative:
                kafka.incremental_unassign(leaving)
            else:
                kafka.unassign()
