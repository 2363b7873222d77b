"""A member of a consumer group: it shares a topic's partitions and commits what was done.

Invariants: with automatic commits an offset is committed only after the caller asked for more
records than those before it, or left the `with` block normally: what was being worked on when an
exception, a crash or the loss of a partition came is read again (at least once). What was fetched
and not handed out is never committed. When a partition goes to another member, what is done of it
is committed before the other one may read it. Committing is librdkafka's: here is only decided
which offsets are stored for it.
"""

import logging
import time
from collections.abc import Mapping
from datetime import datetime
from types import TracebackType
from typing import Any, TypeVar

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, KafkaError, KafkaException, Message
from confluent_kafka import Consumer as KafkaConsumer
from confluent_kafka import TopicPartition as KafkaPartition

from bucketlog.client.bounded import bounded
from bucketlog.client.committing import NO_COORDINATOR_YET, commit_stored
from bucketlog.client.consumer import Consumer
from bucketlog.client.decoding import spot_of
from bucketlog.client.handed_out import HandedOut
from bucketlog.client.kafka_errors import log_error
from bucketlog.client.membership import GroupMembership
from bucketlog.client.poison import Poison
from bucketlog.client.settlement import Settlement
from bucketlog.client.topic import Topic
from bucketlog.log_format.errors import LogError

K = TypeVar("K")
V = TypeVar("V")

SERVE_S = 0.1
"""How often librdkafka is asked for news while there are records to hand out."""
PLACE_S = 1.0
"""How long looking up where to begin may take before other partitions are read on."""
CLOSE_S_MIN = 1.0
"""What leaving may take where committing used up the time."""
LEAVE_POLL_S = 0.02

_logger = logging.getLogger("bucketlog.kafka")


class GroupConsumer(Consumer[K, V]):
    """Reads what the group gives to this member; made by `Log.consumer(topic, group=...)`."""

    def __init__(
        self,
        config: Mapping[str, Any],
        topic: Topic[K, V],
        poison: Poison,
        membership: GroupMembership,
        settlement: Settlement,
        *,
        until_end: bool,
        timeout_s: float,
    ) -> None:
        self.group = membership.group
        self._membership = membership
        self._settlement = settlement
        self._owned: set[int] = set()
        self._unplaced: set[int] = set()
        """Given to this member, and where to begin is not looked up yet."""
        self._given = HandedOut(keeps_first=not membership.auto_commit)
        self._end_at: dict[int, int] = {}
        """With `until="end"`: the end of each partition of this member."""
        self._served_s = time.monotonic()
        self._place_at_s = 0.0
        self._interrupted = False
        self._closed = False
        self._fatal: KafkaError | None = None
        ours = {**membership.kafka_config(), "on_commit": self._commit_answered}
        super().__init__(
            {**config, **ours}, topic, poison, until_end=until_end, timeout_s=timeout_s
        )
        self._kafka.subscribe(
            [topic.name],
            on_assign=self._partitions_came,
            on_revoke=self._partitions_go,
            on_lost=self._partitions_go,
        )

    @property
    def assignment(self) -> frozenset[int]:
        """The partitions that this member reads now."""
        return frozenset(self._owned)

    @property
    def finished(self) -> bool:
        """With `until="end"`: every partition that this member has was read to where it ended
        when it came to this member; one that has none is finished once it is settled that the
        group has given all of them to others."""
        if self._ends is None or self._ends or self._ready or self._unplaced:
            return False
        if self._owned or self._closed:
            return True
        return self._settlement.has_no_partitions_for(self._kafka.memberid() or "")

    def commit(self) -> None:
        """Commit the offsets of all records returned so far, and wait for the response.

        If you call it before you process the records, each record is processed at most once.
        Raises `ConfigurationError` if an open transaction commits the offsets. Raises `LogError`
        (ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID) if the group has continued without this member.
        """
        self._given.check_no_transaction()
        self._given.finish()
        self._store()
        self._commit_stored()
        self._given.settle()

    # For transactions that commit the offsets ---------------------------------------------------

    def note_transaction(self, transactional_id: str | None) -> None:
        """Set the id of the open transaction that commits the offsets; None if there is none."""
        self._given.transactional_id = transactional_id

    @property
    def commits_automatically(self) -> bool:
        return self._membership.auto_commit

    @property
    def has_lost_records(self) -> bool:
        """Whether this member has lost partitions whose returned records were not committed."""
        return self._given.has_lost_records

    def offsets_in_hand(self) -> tuple[list[KafkaPartition], Any]:
        """The offsets after all records returned so far, and librdkafka's metadata of this
        member."""
        spots = self._spots(self._given.next_offsets())
        return spots, self._kafka.consumer_group_metadata()

    def settle(self) -> None:
        """Note that all records returned so far are committed."""
        self._given.settle()

    def rewind(self) -> None:
        """Read again the returned records that are not committed. Raises `LogError`."""
        again = self._spots(self._given.settle())
        self._drop_ready({spot.partition for spot in again})
        self._ahead = None
        try:
            for spot in again:
                partition = spot.partition
                if self._ends is not None and partition not in self._ends:
                    self._ends[partition] = self._end_at[partition]
                    self._kafka.resume([spot])
                self._kafka.seek(spot)
        except KafkaException as error:
            self._interrupted = True
            raise self._error(error.args[0], "reading records again") from error

    def close(self) -> None:
        """Commit what is done (with automatic commits) and leave the group.

        Records of which it is not known are not committed: leave the `with` block normally, or
        call `commit` before. A static member does not leave, its session runs out.
        """
        if self._closed:
            return
        self._closed = True
        deadline = time.monotonic() + self._timeout_s
        try:
            if self._membership.auto_commit:
                self._store()
                self._commit_stored()
        finally:
            left_s = max(CLOSE_S_MIN, deadline - time.monotonic())
            try:
                bounded(lambda: self._leave(left_s / 2), left_s)
            except KafkaException as error:
                raise self._error(error.args[0], "leaving the group") from error
            finally:
                self._poison.close()

    def _leave(self, left_s: float) -> None:
        if self._membership.is_cooperative and not self._owned:
            self._unsubscribe(time.monotonic() + left_s)
        self._kafka.close()

    def _unsubscribe(self, deadline: float) -> None:
        """librdkafka's close sends no LeaveGroup for a cooperative member without partitions, and
        the group would wait for it until its session ends; unsubscribing does, once the rebalance
        that is under way is over."""
        self._kafka.unsubscribe()
        while self._kafka.memberid() and time.monotonic() < deadline:
            self._kafka.poll(LEAVE_POLL_S)

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if exc is None:
            self._given.finish()
        try:
            self.close()
        except LogError as error:
            if exc is None:
                raise
            exc.add_note(str(error))

    # What is done ----------------------------------------------------------------------------

    def _more_wanted(self) -> None:
        if self._membership.auto_commit:
            self._given.finish()
            try:
                self._store()  # at once: the next record may take long
            except LogError as error:
                if error.kafka_code != KafkaError._STATE:
                    raise
                # The partition is lost: its records come again, and `consume` tells why.
        if self._is_serving_due():
            self._fill(1, 0)  # a slow loop body must not keep the group waiting

    def _is_serving_due(self) -> bool:
        return bool(self._ready) and time.monotonic() - self._served_s > SERVE_S

    def _handed_out(self, message: Message) -> None:
        self._given.note(*spot_of(message))

    def _store(self) -> None:
        """Tell librdkafka what may be committed."""
        if spots := self._spots(self._given.take_done()):
            try:
                self._kafka.store_offsets(offsets=spots)
            except KafkaException as error:
                raise log_error(error.args[0], self._doing("committing offsets")) from error

    def _spots(self, offsets: dict[int, int]) -> list[KafkaPartition]:
        """The offsets, for the partitions that this member has."""
        return [
            KafkaPartition(self.topic.name, partition, offset)
            for partition, offset in offsets.items()
            if partition in self._owned
        ]

    def _commit_stored(self) -> None:
        failure = commit_stored(self._kafka, self._timeout_s)
        if failure is not None:
            raise self._error(failure, "committing offsets")

    # Reading ---------------------------------------------------------------------------------

    def _fill(self, max_records: int, timeout_s: float) -> None:
        self._place()
        super()._fill(max_records, timeout_s)

    def _consume(self, max_records: int, timeout_s: float) -> list[Message]:
        if self._interrupted:
            raise log_error(
                KafkaError(KafkaError._STATE),
                self._doing("an earlier call was interrupted and may have lost records"),
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
            if message.error() is not None or message.partition() in self._owned
        ]

    def _stop_reading(self, partition: int) -> None:
        self._kafka.pause([KafkaPartition(self.topic.name, partition)])

    def _failure(self, error: KafkaError, message: Message) -> LogError | None:
        if error.code() == KafkaError._FATAL:
            return self._error(error, "reading")
        if error.code() == KafkaError._PARTITION_EOF and message.partition() not in self._owned:
            return None
        return super()._failure(error, message)

    # Partitions come and go: callbacks of librdkafka, within `consume` and `close` ------------

    def _partitions_came(self, kafka: KafkaConsumer, spots: list[KafkaPartition]) -> None:
        """Nothing is asked of the broker here, so that a failure is raised where it can be."""
        self._settlement.begin_anew()
        self._unplaced |= {spot.partition for spot in spots}
        if self._membership.is_cooperative:
            kafka.incremental_assign([])
        else:
            kafka.assign([])

    def _place(self) -> None:
        """Begin to read the partitions that came: at what is committed, else at `start`."""
        if not self._unplaced or time.monotonic() < self._place_at_s:
            return
        names = tuple(sorted(self._unplaced))
        try:
            begin, fresh = self._positions(names)
            ends = None if self._ends is None else self._end_offsets(begin)
            if self._membership.is_cooperative:
                self._kafka.incremental_assign(begin)
            else:
                self._kafka.assign(begin)
            self._unplaced.clear()
            self._owned.update(names)
            if fixed := [spot for spot in fresh if spot.offset >= 0]:
                self._kafka.store_offsets(offsets=fixed)
            if self._ends is not None and ends is not None:
                self._ends.update(ends)
                self._end_at.update(ends)
                self._kafka.pause([spot for spot in begin if spot.partition not in ends])
        except KafkaException as error:
            if error.args[0].code() in NO_COORDINATOR_YET:
                # behind a join that waits for the others, or the group has no coordinator: not lost
                self._place_at_s = time.monotonic() + PLACE_S
                return
            raise log_error(error.args[0], self._doing("finding where to begin")) from error
        if self._membership.on_assigned is not None:
            self._membership.on_assigned(names)

    def _positions(
        self, names: tuple[int, ...]
    ) -> tuple[list[KafkaPartition], list[KafkaPartition]]:
        """Where to begin in all of them, and, of these, where nothing is committed yet."""
        topic = self.topic.name
        asked = [KafkaPartition(topic, name) for name in names]
        found = self._kafka.committed(asked, PLACE_S)
        for spot in found:
            if spot.error is not None:
                raise KafkaException(spot.error)
        known = [KafkaPartition(topic, spot.partition, spot.offset) for spot in found]
        committed = [spot for spot in known if spot.offset >= 0]
        fresh = self._starts([spot.partition for spot in known if spot.offset < 0])
        return committed + fresh, fresh

    def _starts(self, fresh: list[int]) -> list[KafkaPartition]:
        """An end is looked up, so that it can be committed: the partition's next reader begins
        there too, even where this one reads nothing."""
        topic, start = self.topic.name, self._membership.start
        if not fresh or start == "earliest":
            return [KafkaPartition(topic, name, OFFSET_BEGINNING) for name in fresh]
        if isinstance(start, datetime):
            begin = self._at_time(fresh, int(start.timestamp() * 1000))
        else:
            begin = [KafkaPartition(topic, name, OFFSET_END) for name in fresh]
        for spot in begin:
            if spot.offset == OFFSET_END:
                spot.offset = self._kafka.get_watermark_offsets(spot, self._timeout_s)[1]
        return begin

    def _partitions_go(self, kafka: KafkaConsumer, spots: list[KafkaPartition]) -> None:
        gone = {spot.partition for spot in spots}
        self._drop_ready(gone)
        self._unplaced -= gone
        self._settlement.begin_anew()
        try:
            if self._membership.on_revoked is not None:
                self._membership.on_revoked(tuple(sorted(gone)))
        finally:
            leaving = [KafkaPartition(self.topic.name, name) for name in sorted(gone & self._owned)]
            self._owned -= gone
            self._given.drop(gone)
            for name in gone:
                (self._ends or {}).pop(name, None)
            if self._membership.is_cooperative:
                kafka.incremental_unassign(leaving)
            else:
                kafka.unassign()

    def _drop_ready(self, partitions: set[int]) -> None:
        kept = [message for message in self._ready if message.partition() not in partitions]
        self._ready.clear()
        self._ready.extend(kept)

    def _commit_answered(self, error: KafkaError | None, spots: list[KafkaPartition]) -> None:
        """An automatic commit that fails is tried again, or its records come again."""
        failure = error or next((spot.error for spot in spots if spot.error is not None), None)
        if failure is not None and failure.code() != KafkaError._NO_OFFSET:
            _logger.warning("%s", log_error(failure, self._doing("committing offsets")))

    def _error(self, error: KafkaError, what: str) -> LogError:
        """Once something fatal has happened, all that fails names that."""
        if error.code() == KafkaError.FENCED_INSTANCE_ID:
            self._fatal = error
        is_fatal = error.code() == KafkaError._FATAL
        if is_fatal and "group.instance.id" in error.str():  # librdkafka names it in words alone
            self._fatal = KafkaError(KafkaError.FENCED_INSTANCE_ID, error.str())
        return log_error(self._fatal or error if is_fatal else error, self._doing(what))

    def _doing(self, what: str) -> str:
        return f"group {self.group!r}, topic {self.topic.name!r}: {what}"
