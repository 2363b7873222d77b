"""Commits of the offsets that librdkafka has stored for a group member.

Invariant: a position that was sought is committed even if it is lower than the committed offset.
librdkafka itself commits a stored offset only if it is higher.
"""

import time
from collections.abc import Collection, Sequence, Set
from random import Random
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from bucketlog.client.bounded import bounded
from bucketlog.client.group_errors import GroupErrors
from bucketlog.client.handed_out import HandedOut
from bucketlog.client.kafka_errors import log_error
from bucketlog.client.reading_range import part_of
from bucketlog.client.sources import Part
from bucketlog.log_format.backoff import Backoff
from bucketlog.log_format.errors import LogError

if TYPE_CHECKING:
    from bucketlog.client.traced_reads import TracedReads

_REBALANCING = frozenset({KafkaError.REBALANCE_IN_PROGRESS, KafkaError.ILLEGAL_GENERATION})
NO_COORDINATOR_YET = frozenset(
    {
        KafkaError._TIMED_OUT,
        KafkaError._WAIT_COORD,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
    }
)
"""Error codes after which a request about committed offsets is retried: the group has no
coordinator yet, or the request timed out."""
_BACKOFF = Backoff(first_pause_ms=50, longest_pause_ms=400, jitter=1.0)
"""A rebalance refuses the commits of all members at once."""


class GroupCommits:
    """What is committed for a member. `owned`: the partitions that it has, kept up to date by the
    member."""

    def __init__(
        self,
        kafka: Consumer,
        owned: Set[Part],
        errors: GroupErrors,
        timeout_s: float,
        traced: "TracedReads | None" = None,
    ) -> None:
        self._kafka = kafka
        self._owned = owned
        self._errors = errors
        self._timeout_s = timeout_s
        self._traced = traced
        self._sought: dict[Part, int] = {}
        """Offsets that were sought, or follow such an offset, and are not committed yet."""

    def spots(self, offsets: dict[Part, int]) -> list[TopicPartition]:
        """The offsets, for the partitions that this member has."""
        return [
            TopicPartition(*part, offset) for part, offset in offsets.items() if part in self._owned
        ]

    def store(self, given: HandedOut) -> None:
        """Tell librdkafka what may be committed. Raises `LogError`."""
        spots = self.spots(given.take_done())
        if not spots:
            return
        sought = given.take_sought([part_of(spot) for spot in spots])
        self._sought |= {part_of(spot): spot.offset for spot in spots if part_of(spot) in sought}
        try:
            self._kafka.store_offsets(offsets=spots)
        except KafkaException as error:
            raise log_error(error.args[0], self._errors.doing("committing offsets")) from error

    def store_unless_lost(self, given: HandedOut) -> None:
        """Store, and commit what was sought without a wait for the response, whose failure is
        logged. Records of a partition that is lost come again, and `consume` says why."""
        try:
            self.store(given)
        except LogError as error:
            if error.kafka_code != KafkaError._STATE:
                raise
        if self._sought:
            spots, self._sought = self.spots(self._sought), {}
            if spots:
                self._kafka.commit(offsets=spots, asynchronous=True)

    def commit(self) -> None:
        """Commit what is stored, and wait for the response. Raises `LogError`."""
        if self._traced is None:
            self._commit()
            return
        with self._traced.committing({topic for topic, _ in self._owned}):
            self._commit()

    def _commit(self) -> None:
        sought, self._sought = self.spots(self._sought), {}
        failure = commit_stored(self._kafka, self._timeout_s, sought)
        if failure is not None:
            self._sought = {part_of(spot): spot.offset for spot in sought}
            raise self._errors.of(failure, "committing offsets")

    def forget(self, partitions: Collection[Part]) -> None:
        """They were sought anew, or have moved to another member."""
        for partition in partitions:
            self._sought.pop(partition, None)


def commit_stored(
    kafka: Consumer, timeout_s: float, sought: Sequence[TopicPartition] = ()
) -> KafkaError | None:
    """Commit, and wait for the response. Returns the error if nothing is committed, else None.

    `sought`: offsets that were sought. librdkafka commits no stored offset that is lower than the
    committed one, so these are committed by name, and first.

    Near the end of a rebalance, the broker refuses commits. It then refuses those of the previous
    generation, until this member learns of the new one. The member still has its partitions, so
    this function retries.
    """
    deadline = time.monotonic() + timeout_s
    pauses_s = _BACKOFF.pauses_s(Random())
    while (failure := _try_commit(kafka, timeout_s, sought)) is not None:
        if failure.code() not in _REBALANCING or time.monotonic() > deadline:
            return failure
        time.sleep(next(pauses_s))
    return None


def _try_commit(
    kafka: Consumer, timeout_s: float, sought: Sequence[TopicPartition]
) -> KafkaError | None:
    try:
        rows: list[TopicPartition] = []
        if sought:
            named = list(sought)
            rows += (
                bounded(lambda: kafka.commit(offsets=named, asynchronous=False), timeout_s) or ()
            )
        rows += bounded(lambda: kafka.commit(asynchronous=False), timeout_s) or ()
    except KafkaException as error:
        failure: KafkaError = error.args[0]
        if failure.code() != KafkaError._NO_OFFSET:
            return failure
    return next((row.error for row in rows if row.error is not None), None)
