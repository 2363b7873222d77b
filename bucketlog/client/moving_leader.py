"""Errors of brokers that do not know a partition's new leader yet, and retries after them."""

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
"""Errors of a broker that does not know a partition's new leader yet, such as a new topic's."""


def settling(timeout_s: float) -> Retries:
    """Return the pauses between retries while brokers learn of a change, which takes moments.
    Retries end after `timeout_s`."""
    pauses = Backoff(20, 500, jitter=1.0, give_up_after_ms=timeout_s * 1000)
    return Retries(pauses, random=Random(), monotonic=time.monotonic)


def asked_again(question: Callable[[], T], timeout_s: float) -> T:
    """Call `question` until brokers know the partition's leader, and return the answer. No retry
    begins after `timeout_s`. Raises `KafkaException`."""
    retries = settling(timeout_s)
    while True:
        try:
            return question()
        except KafkaException as error:
            if error.args[0].code() not in MOVING_LEADER:
                raise
            time.sleep(retries.pause_s(error))
