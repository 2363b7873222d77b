"""Commits of the offsets that librdkafka has stored for a group member."""

import time
from random import Random

from confluent_kafka import Consumer, KafkaError, KafkaException

from bucketlog.client.bounded import bounded
from bucketlog.log_format.backoff import Backoff

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


def commit_stored(kafka: Consumer, timeout_s: float) -> KafkaError | None:
    """Commit, and wait for the response. Returns the error if nothing is committed, else None.

    Near the end of a rebalance, the broker refuses commits. It then refuses those of the previous
    generation, until this member learns of the new one. The member still has its partitions, so
    this function retries.
    """
    deadline = time.monotonic() + timeout_s
    pauses_s = _BACKOFF.pauses_s(Random())
    while (failure := _try_commit(kafka, timeout_s)) is not None:
        if failure.code() not in _REBALANCING or time.monotonic() > deadline:
            return failure
        time.sleep(next(pauses_s))
    return None


def _try_commit(kafka: Consumer, timeout_s: float) -> KafkaError | None:
    try:
        rows = bounded(lambda: kafka.commit(asynchronous=False), timeout_s)
    except KafkaException as error:
        failure: KafkaError = error.args[0]
        return None if failure.code() == KafkaError._NO_OFFSET else failure
    return next((row.error for row in rows or () if row.error is not None), None)
