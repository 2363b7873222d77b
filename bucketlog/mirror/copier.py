"""Copies some partitions: fetches from the source and writes to the target, in a loop.

Invariants: the position of a partition is the end of its log in the target; a mirror keeps no other
state. After an error, a lost connection or a refused batch, the copier asks the target for this end
again. Batches of a partition are written in order, over one connection. If a batch is refused, the
batches behind it are refused, too, because each must begin at the end of the partition.
"""

import ssl
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from bucketlog.client.broker_connection import Address, BrokerConnection, open_connection
from bucketlog.client.security import Security
from bucketlog.log_format.errors import BucketlogError, LogError
from bucketlog.log_format.wire.frames import MalformedRequestError
from bucketlog.mirror.batches import copied, gap
from bucketlog.mirror.settings import MirrorSettings
from bucketlog.mirror.source import (
    EARLIEST,
    LATEST,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    Partition,
    SourceBroker,
    SourcePartition,
    list_offsets,
)
from bucketlog.mirror.target import receive_results, send_batches

OFFSET_OUT_OF_RANGE, UNKNOWN_TOPIC, NOT_LEADER = 1, 3, 6
UNKNOWN_TOPIC_ID, INCONSISTENT_TOPIC_ID = 100, 103
NOT_THERE = NOT_LEADER, UNKNOWN_TOPIC, UNKNOWN_TOPIC_ID, INCONSISTENT_TOPIC_ID
"""Errors if another broker leads the partition, or if the topic is deleted. `TopicMirror.sync`
finds deleted topics."""
FATAL = {
    29: "TOPIC_AUTHORIZATION_FAILED",
    31: "CLUSTER_AUTHORIZATION_FAILED",
    42: "INVALID_REQUEST",
    44: "POLICY_VIOLATION",
    87: "INVALID_RECORD",
    2: "CORRUPT_MESSAGE",
    76: "UNSUPPORTED_COMPRESSION_TYPE",
}
LOST = (EOFError, OSError, ssl.SSLError, MalformedRequestError, TimeoutError)


class MirrorError(BucketlogError):
    """The copy of a partition cannot continue."""

    code = "MIRROR"


@dataclass(slots=True)
class PartitionProgress:
    """How far a partition is copied.

    `topic_id` is the id at the source; None if the source has no topic ids. `position` is the end
    in the target; None while the end is unknown. `fetch_from` is the offset of the next Fetch.
    `log_start`, `stable_end` (the last stable offset) and `high_watermark` are those of the source
    in the last Fetch response; -1 before the first response.
    """

    topic_id: bytes | None = None
    position: int | None = None
    fetch_from: int = 0
    log_start: int = -1
    stable_end: int = -1
    high_watermark: int = -1

    @property
    def lag(self) -> int | None:
        """The number of offsets that the target lacks; None while the number is unknown."""
        if self.position is None or self.high_watermark < 0:
            return None
        return max(self.high_watermark - self.position, 0)


@dataclass(frozen=True, slots=True)
class Clusters:
    """The access of workers to both clusters. `leaders` asks the source at each call."""

    source_security: Security | None
    target_security: Security | None
    target_brokers: Sequence[Address]
    leaders: Callable[[], Mapping[Partition, Address]]


class Copier:
    """A worker of a mirror. One thread runs `run`; others may read `progress` and call `assign`."""

    def __init__(
        self,
        number: int,
        clusters: Clusters,
        settings: MirrorSettings,
        stop: threading.Event,
        report: Callable[[str], None],
    ) -> None:
        self._number = number
        self._clusters = clusters
        self._settings = settings
        self._stop = stop
        self._report = report
        self.progress: dict[Partition, PartitionProgress] = {}
        self.records = 0
        self.size_bytes = 0
        self.failure: BucketlogError | None = None

    def assign(self, topic_ids: Mapping[Partition, bytes | None]) -> None:
        """Copy only these partitions from now on. `topic_ids` has the topic's id at the source."""
        present = self.progress
        self.progress = {
            each: present[each]
            if each in present and present[each].topic_id == topic_id
            else PartitionProgress(topic_id)
            for each, topic_id in topic_ids.items()
        }

    def run(self) -> None:
        """Copy until `stop` is set, or until an error that cannot be retried, which is then in
        `failure`."""
        while not self._stop.is_set():
            try:
                with ExitStack() as opened:
                    self._copy(opened)
            except LOST as error:
                self._report(f"connection lost, trying again: {str(error) or type(error).__name__}")
            except LogError as error:
                if not error.retriable:
                    self.failure = error
                    return
                self._report(f"trying again: {error}")
            except BucketlogError as error:
                self.failure = error
                return
            for each in self.progress.values():
                each.position = None
            self._stop.wait(self._settings.retry_pause_s)

    def _copy(self, opened: ExitStack) -> None:
        brokers = self._clusters.target_brokers
        target = opened.enter_context(
            self._connection(brokers[self._number % len(brokers)], of_target=True)
        )
        leaders = self._clusters.leaders()
        sources: dict[Address, SourceBroker] = {}
        while not self._stop.is_set():
            progress = self.progress
            if not progress:
                self._stop.wait(self._settings.retry_pause_s)
                continue
            self._look_up_positions(target, progress)
            if any(partition not in leaders for partition in progress):
                leaders = self._clusters.leaders()
            by_leader: dict[Address, dict[Partition, PartitionProgress]] = {}
            for partition, each in progress.items():
                if partition in leaders:
                    by_leader.setdefault(leaders[partition], {})[partition] = each
            if not by_leader:
                self._stop.wait(self._settings.retry_pause_s)
            for address, led in by_leader.items():
                if address not in sources:
                    sources[address] = SourceBroker(
                        opened.enter_context(self._connection(address, of_target=False))
                    )
                if not self._copy_once(sources[address], target, led, len(by_leader)):
                    leaders = self._clusters.leaders()

    def _connection(self, address: Address, *, of_target: bool) -> BrokerConnection:
        clusters = self._clusters
        security = clusters.target_security if of_target else clusters.source_security
        return open_connection(address, security, self._settings.timeout_s)

    def _look_up_positions(
        self, target: BrokerConnection, progress: Mapping[Partition, PartitionProgress]
    ) -> None:
        unknown = [partition for partition, each in progress.items() if each.position is None]
        if not unknown:
            return
        for partition, (error, offset) in list_offsets(
            target, unknown, LATEST, READ_UNCOMMITTED
        ).items():
            if error in FATAL:
                raise MirrorError(f"{partition} in the target: {FATAL[error]}")
            if not error:
                progress[partition].position = offset
                progress[partition].fetch_from = offset

    def _copy_once(
        self,
        source: SourceBroker,
        target: BrokerConnection,
        progress: Mapping[Partition, PartitionProgress],
        leaders: int,
    ) -> bool:
        """Fetch once, and write the records. Returns False if the source's leaders must be looked
        up again."""
        settings = self._settings
        known = {
            partition: (each.topic_id, each.fetch_from)
            for partition, each in progress.items()
            if each.position is not None
        }
        if not known:
            self._stop.wait(settings.retry_pause_s)
            return True
        answers = source.fetch(
            known,
            wait_ms=settings.fetch_wait_ms // leaders,
            bytes_max=settings.fetch_bytes,
            partition_bytes_max=settings.partition_bytes,
        )
        is_led = True
        wanted: dict[Partition, Sequence[bytes | bytearray]] = {}
        ends: dict[Partition, int] = {}
        for answer in answers:
            each = progress[answer.partition]
            if answer.error in NOT_THERE:
                is_led = False
            elif answer.error == OFFSET_OUT_OF_RANGE:
                wanted[answer.partition], ends[answer.partition] = self._out_of_range(
                    source.connection, answer.partition, each
                )
            elif answer.error in FATAL:
                raise MirrorError(f"{answer.partition} in the source: {FATAL[answer.error]}")
            elif answer.error:
                self._report(
                    f"{answer.partition}: the source answers with error code {answer.error}"
                )
                is_led = False
            else:
                wanted[answer.partition], ends[answer.partition] = self._taken(answer, each)
        written = {partition: rows for partition, rows in wanted.items() if rows}
        for partition in self._write(target, written):
            progress[partition].position = None
        for partition in written:
            if progress[partition].position is not None:
                progress[partition].position = progress[partition].fetch_from = ends[partition]
        if not is_led:
            self._stop.wait(settings.retry_pause_s)
        return is_led

    def _taken(
        self, answer: SourcePartition, progress: PartitionProgress
    ) -> tuple[Sequence[bytes | bytearray], int]:
        assert progress.position is not None
        if answer.high_watermark < progress.position:
            raise _diverged(answer.partition, answer.high_watermark, progress.position)
        progress.high_watermark, progress.stable_end = answer.high_watermark, answer.stable_end
        progress.log_start = answer.log_start
        found = copied(
            answer.records, progress.position, answer.aborted, f"{answer.partition} in the source"
        )
        self.records += found.records
        batches, end = list(found.batches), found.end
        if not len(answer.records) and progress.fetch_from >= answer.stable_end > end:
            # the source has deleted all records behind the position
            batches, end = [*batches, *gap(end, answer.stable_end)], answer.stable_end
        return batches, end

    def _out_of_range(
        self, source: BrokerConnection, partition: Partition, progress: PartitionProgress
    ) -> tuple[Sequence[bytes], int]:
        """Continue at the log start, if the source has deleted the next records.

        Raises `MirrorError` if the source ends before the target.
        """
        assert progress.position is not None
        error, start = list_offsets(source, [partition], EARLIEST, READ_COMMITTED)[partition]
        _, end = list_offsets(source, [partition], LATEST, READ_UNCOMMITTED)[partition]
        if error:
            raise EOFError
        if end < progress.position:
            raise _diverged(partition, end, progress.position)
        if progress.position:
            self._report(
                f"{partition}: the source has deleted offsets {progress.position} to {start - 1} "
                "before they were copied"
            )
        progress.fetch_from = start
        return [], progress.position

    def _write(
        self,
        target: BrokerConnection,
        wanted: Mapping[Partition, Sequence[bytes | bytearray]],
    ) -> set[Partition]:
        """Write the batches of all partitions, with many requests in flight. Returns the partitions
        of which a batch was refused."""
        rounds = max((len(rows) for rows in wanted.values()), default=0)
        for number in range(rounds):
            batches = {
                partition: rows[number] for partition, rows in wanted.items() if number < len(rows)
            }
            send_batches(target, batches, self._settings.write_timeout_ms)
            self.size_bytes += sum(map(len, batches.values()))
        doubtful: set[Partition] = set()
        for _ in range(rounds):
            for written in receive_results(target):
                if not written.error:
                    continue
                if written.error in FATAL:
                    raise MirrorError(
                        f"{written.partition}: the target refuses a batch: "
                        f"{written.message or FATAL[written.error]}"
                    )
                doubtful.add(written.partition)
        return doubtful


def _diverged(partition: Partition, source_end: int, target_end: int) -> MirrorError:
    return MirrorError(
        f"{partition} ends at {source_end} in the source, and at {target_end} in the target: the "
        "source has lost records, or the topic was created again",
        remedy="delete the topic in the target, and mirror the topic again",
    )
