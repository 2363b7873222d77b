"""Positions are looked up again while brokers do not know a partition's leader."""

from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition

from bucketlog.client.reading_range import end_offsets, found_offsets

MOVING = KafkaError.LEADER_NOT_AVAILABLE
REFUSED = KafkaError.TOPIC_AUTHORIZATION_FAILED


@dataclass
class Consumer:
    """Answers each question with a code of `failures` while there are any, then with offsets."""

    failures: list[int] = field(default_factory=list)
    questions: int = 0

    def get_watermark_offsets(self, spot: KafkaPartition, timeout_s: float) -> tuple[int, int]:
        self.questions += 1
        if self.failures:
            raise KafkaException(KafkaError(self.failures.pop(0)))
        return 0, 7

    def offsets_for_times(
        self, asked: list[KafkaPartition], timeout_s: float
    ) -> list["KafkaPartition | Failed"]:
        self.questions += 1
        if self.failures:
            return [Failed(spot.topic, spot.partition, self.failures.pop(0)) for spot in asked]
        return [KafkaPartition(spot.topic, spot.partition, 7) for spot in asked]


class Failed:
    """A fake partition with an error: only librdkafka can set the error of a `TopicPartition`."""

    def __init__(self, topic: str, partition: int, code: int) -> None:
        self.topic, self.partition, self.error = topic, partition, KafkaError(code)


def ends(consumer: Consumer, timeout_s: float = 60.0) -> Any:
    begin = [KafkaPartition("t", 0, OFFSET_BEGINNING)]
    return end_offsets(cast(Any, consumer), begin, "end", timeout_s)


def found(consumer: Consumer, timeout_s: float = 60.0) -> Any:
    return found_offsets(cast(Any, consumer), {("t", 0): OFFSET_END}, timeout_s)


@pytest.mark.parametrize("look", [ends, found])
def test_a_moving_leader_is_asked_again(look: Any) -> None:
    consumer = Consumer([MOVING, MOVING])
    expected = {("t", 0): 7}
    assert look(consumer) == ((expected, expected) if look is ends else expected)
    assert consumer.questions == 3


@pytest.mark.parametrize("look", [ends, found])
def test_other_errors_are_raised_at_once(look: Any) -> None:
    consumer = Consumer([REFUSED])
    with pytest.raises(Exception, match=r"TOPIC_AUTHORIZATION_FAILED|Topic authorization failed"):
        look(consumer)
    assert consumer.questions == 1


@pytest.mark.parametrize("look", [ends, found])
def test_the_timeout_ends_the_questions(look: Any) -> None:
    consumer = Consumer([MOVING] * 1000)
    with pytest.raises(KafkaException):
        look(consumer, timeout_s=0.05)
    assert 1 <= consumer.questions < 1000
