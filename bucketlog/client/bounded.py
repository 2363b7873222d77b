"""Calls into librdkafka that wait for a broker for ever, bounded."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from confluent_kafka import KafkaError, KafkaException

T = TypeVar("T")


def bounded(call: Callable[[], T], timeout_s: float) -> T:
    """What `call` returns or raises; `KafkaException` _TIMED_OUT if it takes longer.

    It is then left to itself in a daemon thread, which keeps no process from ending. What else
    than a `KafkaException` it raises is reported by `threading.excepthook`.
    """
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(call())
        except KafkaException as error:
            outcome.set_exception(error)
        finally:
            if not outcome.done():
                outcome.cancel()

    threading.Thread(target=run, daemon=True, name="bucketlog bounded call").start()
    try:
        return outcome.result(timeout_s)
    except TimeoutError:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT)) from None
