"""A topic that was just created or extended: the broker that is asked next may not know it yet."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError

from bucketlog.client.admin import Admin
from bucketlog.client.topics import Topics
from bucketlog.log_format.errors import LogError

UNKNOWN = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
DENIED = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)


class Brokers:
    """Stands for `Admin` and its client: each look-up of the topic gets the next answer, which is a
    number of partitions or an error."""

    def __init__(self, *answers: int | KafkaError, timeout_s: float = 60.0) -> None:
        self.client = self
        self.timeout_s = timeout_s
        self._answers: Iterator[int | KafkaError] = iter(answers)

    def create_topics(self, topics: list[Any], **_: Any) -> dict[str, None]:
        return {topic.topic: None for topic in topics}

    def create_partitions(self, wanted: list[Any], **_: Any) -> dict[str, None]:
        return {each.topic: None for each in wanted}

    def wait(self, future: None, doing: str) -> None:
        pass

    def metadata(self, name: str, _doing: str) -> Any:
        answer = next(self._answers)
        error = answer if isinstance(answer, KafkaError) else None
        partitions = dict.fromkeys(range(answer)) if isinstance(answer, int) else {}
        return SimpleNamespace(topics={name: SimpleNamespace(error=error, partitions=partitions)})


def topics(brokers: Brokers) -> Topics:
    stand_in: Any = brokers
    admin: Admin = stand_in
    return Topics(admin)


def test_a_created_topic_is_looked_up_until_it_is_known() -> None:
    assert topics(Brokers(UNKNOWN, UNKNOWN, 3)).create("t", partitions=3).partitions == 3


def test_added_partitions_are_looked_up_until_they_are_known() -> None:
    assert topics(Brokers(1, 1, 4)).add_partitions("t", 4).partitions == 4


def test_a_dry_run_of_more_partitions_does_not_wait_for_them() -> None:
    assert topics(Brokers(1)).add_partitions("t", 4, dry_run=True).partitions == 1


def test_other_errors_are_raised_at_once() -> None:
    with pytest.raises(LogError) as raised:
        topics(Brokers(DENIED, 3)).create("t", partitions=3)
    assert raised.value.code == "TOPIC_AUTHORIZATION_FAILED"


@pytest.mark.parametrize("answer", [UNKNOWN, 1])
def test_the_look_up_ends_with_the_timeout(answer: int | KafkaError) -> None:
    with pytest.raises(LogError) as raised:
        topics(Brokers(*[answer] * 9, timeout_s=0.0)).add_partitions("t", 2)
    assert raised.value.code == "UNKNOWN_TOPIC_OR_PARTITION"
