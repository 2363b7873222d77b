"""Which partitions a member of a group has when all have readers: asked of the group's coordinator.

With a cooperative assignor a newcomer's first assignment is always empty: what it shall get is
first given up by the others. Invariant: an assignment is final only where the group, when it
was asked, was Stable, had this member in it, and every partition of the topics had a reader.
"""

import time
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from confluent_kafka import ConsumerGroupState, KafkaException

from bucketlog.client.admin import Admin
from bucketlog.client.kafka_errors import log_error
from bucketlog.client.sources import Part

ASK_PAUSE_S = 0.5
"""Between two questions, at the least."""


class Settlement:
    """Never waits: the answer to an earlier question is there or not. Raises `LogError`."""

    def __init__(self, admin: Admin, group: str, partitions: Mapping[str, int]) -> None:
        """`partitions`: how many each topic has."""
        self._admin = admin
        self._group = group
        self.partitions = dict(partitions)
        self._question: Future[Any] | None = None
        self._next_at_s = 0.0
        self._given: frozenset[Part] | None = None

    def begin_anew(self) -> None:
        """The group has given or taken partitions: what was heard before says nothing any more."""
        self._question = None
        self._given = None

    def settled(self, member_id: str) -> frozenset[Part] | None:
        """Return the partitions that the group has given to this member; None while not all
        partitions have readers, because the partitions may change."""
        if not self.partitions:
            return frozenset()
        if self._given is not None:
            return self._given
        if self._question is None:
            if time.monotonic() >= self._next_at_s:
                self._next_at_s = time.monotonic() + ASK_PAUSE_S
                self._question = self.ask()
            return None
        if not self._question.done():
            return None
        question, self._question = self._question, None
        self._given = self._assignment(question, member_id)
        return self._given

    def ask(self) -> "Future[Any]":
        """Ask for the group's description."""
        futures = self._admin.client.describe_consumer_groups(
            [self._group], request_timeout=self._admin.timeout_s
        )
        return futures[self._group]

    def _assignment(self, question: "Future[Any]", member_id: str) -> frozenset[Part] | None:
        try:
            found = question.result()
        except KafkaException as error:
            failure = log_error(error.args[0], f"describing group {self._group!r}")
            if failure.retriable:
                return None
            raise failure from error
        if found.state is not ConsumerGroupState.STABLE:
            return None
        readers = {
            (spot.topic, spot.partition): member.member_id
            for member in found.members
            for spot in member.assignment.topic_partitions
            if spot.topic in self.partitions
        }
        is_member = any(member.member_id == member_id for member in found.members)
        if not is_member or len(readers) < sum(self.partitions.values()):
            return None
        return frozenset(part for part, reader in readers.items() if reader == member_id)
