"""The errors of a group member, which name its group and topics."""

import logging

from confluent_kafka import KafkaError
from confluent_kafka import TopicPartition as KafkaPartition

from bucketlog.client.kafka_errors import log_error
from bucketlog.log_format.errors import LogError

_logger = logging.getLogger("bucketlog.kafka")


class GroupErrors:
    """Once something fatal has happened, all errors name it."""

    def __init__(self, what: str) -> None:
        """`what`: the group and its topics."""
        self._what = what
        self._fatal: KafkaError | None = None

    def of(self, error: KafkaError, what: str) -> LogError:
        """The error of `what` the member was doing."""
        if error.code() == KafkaError.FENCED_INSTANCE_ID:
            self._fatal = error
        is_fatal = error.code() == KafkaError._FATAL
        if is_fatal and "group.instance.id" in error.str():  # librdkafka names it in words alone
            self._fatal = KafkaError(KafkaError.FENCED_INSTANCE_ID, error.str())
        return log_error(self._fatal or error if is_fatal else error, self.doing(what))

    def doing(self, what: str) -> str:
        return f"{self._what}: {what}"

    def commit_answered(self, error: KafkaError | None, spots: list[KafkaPartition]) -> None:
        """An automatic commit that fails is tried again, or its records come again."""
        failure = error or next((spot.error for spot in spots if spot.error is not None), None)
        if failure is not None and failure.code() != KafkaError._NO_OFFSET:
            _logger.warning("%s", log_error(failure, self.doing("committing offsets")))
