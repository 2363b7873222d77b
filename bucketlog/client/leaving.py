"""Leaving of a member from its group."""

import time

from confluent_kafka import Consumer as KafkaConsumer

LEAVE_POLL_S = 0.02


def leave(kafka: KafkaConsumer, timeout_s: float, *, is_idle: bool) -> None:
    """Leave the group and close the client.

    `is_idle`: a cooperative member without partitions. librdkafka's close sends no LeaveGroup for
    such a member, and the group would wait for it until its session ends. Unsubscribing does, once
    the rebalance that is under way is over; `timeout_s` bounds the wait for it. Raises
    `KafkaException`.
    """
    if is_idle:
        deadline = time.monotonic() + timeout_s
        kafka.unsubscribe()
        while kafka.memberid() and time.monotonic() < deadline:
            kafka.poll(LEAVE_POLL_S)
    kafka.close()
