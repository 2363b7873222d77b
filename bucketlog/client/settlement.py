"""Whether a member of a group that has no partitions gets any: asked of the group's coordinator.

With a cooperative assignor a newcomer's first assignment is always empty: what it shall get is
first given up by the others. Invariant: an empty assignment is final only where the group, when it
was asked, was Stable, had this member in it, and every partition of the topic had a reader.
"""

import time
from concurrent.futures import Future
from typing import Any

from confluent_kafka import ConsumerGroupState, KafkaException

from bucketlog.client.admin import Admin
from bucketlog.client.kafka_errors import log_error

ASK_PAUSE_S = 0.5
"""Between two questions, at the least."""


class Settlement:
    """Never waits: the answer to an earlier question is there or not. Raises `LogError`."""

    def __init__(self, admin: Admin, group: str, topic: str, *, partitions: int) -> None:
        self._admin = admin
        self._group = group
        self._topic = topic
        self._partitions = partitions
        self._question: Future[Any] | None = None
        self._next_at_s = 0.0
        self._is_final = False

    def begin_anew(self) -> None:
        """The group has given or taken partitions: what was heard before says nothing any more."""
        self._question = None
        self._is_final = False

    def has_no_partitions_for(self, member_id: str) -> bool:
        """This member has nothing, and the group has given all there is to others."""
        if self._is_final:
            return True
        if self._question is None:
            if time.monotonic() >= self._next_at_s:
                self._ask()
            return False
        if not self._question.done():
            return False
        question, self._question = self._question, None
        self._is_final = self._has_no_assignment(question, member_id)
        return self._is_final

    def _ask(self) -> None:
        self._next_at_s = time.monotonic() + ASK_PAUSE_S
        futures = self._admin.client.describe_consumer_groups(
            [self._group], request_timeout=self._admin.timeout_s
        )
        self._question = futures[self._group]

    def _has_no_assignment(self, question: "Future[Any]", member_id: str) -> bool:
        try:
            found = question.result()
        except KafkaException as error:
            failure = log_error(error.args[0], f"describing group {self._group!r}")
            if failure.retriable:
                return False
            raise failure from error
        if found.state is not ConsumerGroupState.STABLE:
            return False
        readers = {
            spot.partition: member.member_id
            for member in found.members
            for spot in member.assignment.topic_partitions
            if spot.topic == self._topic
        }
        is_member = any(member.member_id == member_id for member in found.members)
        has_none = member_id not in readers.values()
        return is_member and has_none and len(readers) >= self._partitions
