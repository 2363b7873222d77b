"""A replay into a topic: keys, values, headers and timestamps as they were, negative ones, too (-1:
none). Only 0 becomes 1, a millisecond later: librdkafka takes 0 for "now".

Invariant: what `Copy.positions` says was acknowledged is in the target, in order. A copy that
failed continues from there; at most `CHUNK_RECORDS` records are then sent once more.
"""

from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING

from bucketlog.client.topic import Topic
from bucketlog.log_format.errors import ConfigurationError

if TYPE_CHECKING:
    from bucketlog.client.log import Log
    from bucketlog.client.options import Compression
    from bucketlog.replaying.replay import Replay

CHUNK_RECORDS = 50_000
"""Number of records that are sent before all of them must be acknowledged."""


class Copy:
    """Replay into a topic. `copied` counts acknowledged records."""

    def __init__(self, replay: "Replay[bytes, bytes]", target: str, *, by_key: bool) -> None:
        self._replay = replay
        self._target = Topic(target)
        self._by_key = by_key
        self.copied = 0
        self._done: dict[int, int] = {}

    def run(
        self,
        log: "Log",
        *,
        compression: "Compression" = "none",
        on_rows: Callable[[int, int], None] | None = None,
    ) -> int:
        """Returns how many records were copied. A record goes to the partition it is in;
        `by_key`: to the one that the producer chooses by its key.

        Raises `ConfigurationError` where the target has too few partitions or is what is read,
        `LogError` where a record is not delivered, and what reading raises.
        """
        ranges = self._replay.plan.ranges
        self._check(log, max((each.partition.partition for each in ranges), default=-1))
        waiting = 0
        reached: dict[int, int] = {}
        with (
            log.producer(compression=compression) as producer,
            closing(self._replay.batches_of_records(on_rows=on_rows)) as batches,
        ):
            for records in batches:
                for record in records:
                    producer.send(
                        self._target,
                        None if record.is_tombstone else record.value,
                        key=record.key,
                        headers=record.headers,
                        partition=None if self._by_key else record.partition,
                        timestamp_ms=record.timestamp_ms,
                    )
                    reached[record.partition] = record.offset + 1
                    waiting += 1
                    if waiting >= CHUNK_RECORDS:
                        producer.flush()
                        self._acknowledged(reached, waiting)
                        waiting = 0
            producer.flush()
            self._acknowledged(reached, waiting)
        return self.copied

    @property
    def resume(self) -> str:
        """Return the remaining offsets for `--offsets`; empty if none remain."""
        return ",".join(
            f"{each.partition.partition}:{start}-{each.end}"
            for each in self._replay.plan.ranges
            if (start := self._done.get(each.partition.partition, each.start)) < each.end
        )

    def _acknowledged(self, reached: dict[int, int], records: int) -> None:
        self._done.update(reached)
        self.copied += records

    def _check(self, log: "Log", highest: int) -> None:
        name = self._target.name
        if name == self._replay.topic.name and log.cluster_id() == self._replay.cluster_id():
            raise ConfigurationError(
                f"topic {name!r} would be written to itself", remedy="send it to another topic"
            )
        there = log.topics.partition_count(self._target)
        if not self._by_key and there <= highest:
            raise ConfigurationError(
                f"topic {name!r} has {there} partitions, the records are in up to "
                f"partition {highest}",
                remedy="add partitions, or let the producer choose them by key (--by-key)",
            )
