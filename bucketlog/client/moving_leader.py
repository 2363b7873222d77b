"""Errors of brokers that are about to learn who leads a partition, and how long to ask again."""

import time
from collections.abc import Callable
from random import Random
from typing import TypeVar

from confluent_kafka import KafkaError, KafkaException

from bucketlog.log_format.backoff import Backoff, Retries

T = TypeVar("T")

MOVING_LEADER = frozenset(
    {
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
    }
)
"""A broker answers one of these while it learns of a new leader, such as a new topic's."""


def settling(timeout_s: float) -> Retries:
    """Make the pauses between questions to brokers that learn of a change within moments. They
    give up after `timeout_s`."""
    pauses = Backoff(20, 500, jitter=1.0, give_up_after_ms=timeout_s * 1000)
    return Retries(pauses, random=Random(), monotonic=time.monotonic)


def asked_again(question: Callable[[], T], timeout_s: float) -> T:
    """Ask brokers, and ask again while the leader moves, for up to `timeout_s`. Raises
    `KafkaException`."""
    retries = settling(timeout_s)
    while True:
        try:
            return question()
        except KafkaException as error:
            if error.args[0].code() not in MOVING_LEADER:
                raise
            time.sleep(retries.pause_s(error))
