"""Commits of a group's member: what librdkafka has stored, through the rebalances meanwhile."""

import time
from random import Random

from confluent_kafka import Consumer, KafkaError, KafkaException

from bucketlog.client.bounded import bounded
from bucketlog.log_format.backoff import Backoff

_REBALANCING = frozenset({KafkaError.REBALANCE_IN_PROGRESS, KafkaError.ILLEGAL_GENERATION})
_BACKOFF = Backoff(first_pause_ms=50, longest_pause_ms=400, jitter=1.0)
"""A rebalance refuses the commits of all members at once."""


def commit_stored(kafka: Consumer, timeout_s: float) -> KafkaError | None:
    """Commit, and wait for the answer. Returns why nothing is committed, or None.

    Waits for the end of a rebalance: the broker refuses commits shortly before it, and those of the
    generation before, until this member, which still has its partitions, knows.
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
