"""Offsets are asked for again while a broker learns that it leads a partition."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition

from bucketlog.client.admin import LATEST, Admin
from bucketlog.log_format.errors import LogError

NEWER_EPOCH = KafkaError.UNKNOWN_LEADER_EPOCH


class Asked(Admin):
    """Each question gets the next answer: an offset or the code of an error."""

    def __init__(self, *answers: SimpleNamespace | int, timeout_s: float = 60.0) -> None:
        super().__init__({}, timeout_s=timeout_s)
        self.answers = list(answers)

    @property
    def client(self) -> Any:
        return self

    def list_offsets(self, asked: dict[KafkaPartition, Any], **_: Any) -> Any:
        answer, answered = self.answers.pop(0), Future[Any]()
        if isinstance(answer, int):
            answered.set_exception(KafkaException(KafkaError(answer)))
        else:
            answered.set_result(answer)
        return dict.fromkeys(asked, answered)


OFFSET = SimpleNamespace(offset=7, timestamp=-1)


@pytest.mark.parametrize(
    "code",
    [
        NEWER_EPOCH,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
    ],
)
def test_a_leader_that_moves_is_asked_again(code: int) -> None:
    admin = Asked(code, code, OFFSET)
    assert admin.offsets("t", [0, 1], LATEST, "asking") == {0: 7, 1: 7}
    assert admin.answers == []


def test_other_errors_are_raised_at_once() -> None:
    admin = Asked(KafkaError.TOPIC_AUTHORIZATION_FAILED, OFFSET)
    with pytest.raises(LogError) as raised:
        admin.offsets("t", [0], LATEST, "asking")
    assert raised.value.kafka_code == KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert admin.answers == [OFFSET]


def test_the_error_is_raised_after_the_timeout() -> None:
    admin = Asked(*[NEWER_EPOCH] * 9, timeout_s=0.0)
    with pytest.raises(LogError) as raised:
        admin.offsets("t", [0], LATEST, "asking")
    assert raised.value.kafka_code == NEWER_EPOCH


def test_nothing_is_asked_about_no_partition() -> None:
    assert Asked().offsets("t", [], LATEST, "asking") == {}
