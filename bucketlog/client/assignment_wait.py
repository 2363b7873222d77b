"""One log line of a group member that waits for partitions: why, and what shortens the wait.

Invariant: it never waits itself. The group's coordinator is asked once for each wait.
"""

import logging
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from confluent_kafka import ConsumerGroupState, KafkaException

from bucketlog.client.kafka_errors import log_error

TELL_AFTER_S = 3.0
SHORTEN = (
    "The wait gets shorter if members leave by close() or the end of their with block, with a "
    "shorter session_timeout_s, or with an instance_id, which takes over at once after a crash"
)

_logger = logging.getLogger("bucketlog.consumer")
_REBALANCING = frozenset(
    {ConsumerGroupState.PREPARING_REBALANCING, ConsumerGroupState.COMPLETING_REBALANCING}
)


class AssignmentWait:
    """`look` is called while the member has no partitions, and `end` when it has some.

    `what`: the group and its topics, for the message. `ask` asks for the group's description
    without waiting for the response.
    """

    def __init__(
        self, what: str, ask: Callable[[], "Future[Any]"], clock_s: Callable[[], float]
    ) -> None:
        self._what = what
        self._ask = ask
        self._clock_s = clock_s
        self._since_s: float | None = None
        self._question: Future[Any] | None = None
        self._is_told = False

    def end(self) -> None:
        self._since_s = self._question = None
        self._is_told = False

    def look(self, member_id: str) -> None:
        """Log the reason once, when the wait has lasted for 3 s."""
        if self._is_told:
            return
        now_s = self._clock_s()
        if self._since_s is None:
            self._since_s = now_s
        if now_s - self._since_s < TELL_AFTER_S:
            return
        if self._question is None:
            self._question = self._ask()
        if self._question.done():
            self._is_told = True
            _logger.warning(
                "%s: this member has waited for partitions for %.0f s. %s. %s.",
                self._what,
                now_s - self._since_s,
                _reason(self._question, member_id),
                SHORTEN,
            )


def _reason(answered: "Future[Any]", member_id: str) -> str:
    try:
        found = answered.result()
    except KafkaException as error:
        return f"The reason is not known: {log_error(error.args[0], 'describing the group')}"
    others = [each for each in found.members if each.member_id != member_id]
    named = ", ".join(f"{each.client_id} at {each.host.removeprefix('/')}" for each in others[:3])
    more = "" if len(others) <= 3 else f" and {len(others) - 3} more"
    if found.state in _REBALANCING and others:
        return (
            f"The group is rebalancing and waits for its other members ({named}{more}): a member "
            "that died counts until its session ends, and a member that is busy must poll first"
        )
    if found.state is ConsumerGroupState.STABLE and others:
        return (
            f"Other members have the partitions ({named}{more}): the topic may have fewer "
            "partitions than the group has members"
        )
    return "The group has no other members: its coordinator has not answered yet"
