"""Base of the administration of topics and groups: one AdminClient, waiting, looking up offsets."""

from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from datetime import datetime
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec

from bucketlog.client.kafka_errors import log_error
from bucketlog.client.moving_leader import asked_again
from bucketlog.client.own_process import OwnProcess

EARLIEST: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]  # not annotated
LATEST: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # not annotated


def at_time(when: datetime) -> OffsetSpec:
    """The first record at or after it."""
    spec: OffsetSpec = OffsetSpec.for_timestamp(int(when.timestamp() * 1000))
    return spec


class Admin:
    """Connects when it is first used. Raises `LogError`."""

    def __init__(self, config: Mapping[str, Any], *, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        self.config = dict(config)
        self._connected: AdminClient | None = None

    @property
    def client(self) -> AdminClient:
        if self._connected is None:
            # A question creates nothing.
            self._connected = AdminClient({**self.config, "allow.auto.create.topics": False})
            self._process = OwnProcess("connection", self._connected)
        self._process.check()
        return self._connected

    def metadata(self, topic: str | None, doing: str) -> Any:
        """Brokers, topics and the cluster's id, as one broker sees them. `topic` None: all topics.
        Raises `LogError`."""
        try:
            return self.client.list_topics(topic, timeout=self.timeout_s)
        except KafkaException as error:
            raise log_error(error.args[0], doing) from error

    def wait(self, future: "Future[Any]", doing: str) -> Any:
        try:
            return future.result()
        except KafkaException as error:
            raise log_error(error.args[0], doing) from error

    def offsets(
        self, topic: str, partitions: Iterable[int], spec: OffsetSpec, doing: str
    ) -> dict[int, int]:
        """By partition; -1 where no record is as late as the time that was asked for."""
        found = self.offsets_and_times(topic, partitions, spec, doing)
        return {partition: offset for partition, (offset, _) in found.items()}

    def offsets_and_times(
        self, topic: str, partitions: Iterable[int], spec: OffsetSpec, doing: str
    ) -> dict[int, tuple[int, int]]:
        """Offsets and the timestamps of their records in ms, by partition; a timestamp is -1
        unless a time was asked for. A broker that does not know yet that it leads a partition is
        asked again, for up to `timeout_s`."""
        spots = [KafkaPartition(topic, partition) for partition in partitions]
        if not spots:
            return {}

        def ask() -> dict[int, tuple[int, int]]:
            futures = self.client.list_offsets(
                dict.fromkeys(spots, spec), request_timeout=self.timeout_s
            )
            found = {spot.partition: each.result() for spot, each in futures.items()}
            return {at: (each.offset, each.timestamp) for at, each in found.items()}

        try:
            return asked_again(ask, self.timeout_s)
        except KafkaException as error:
            raise log_error(error.args[0], doing) from error
