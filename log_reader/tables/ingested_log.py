"""The log that an ingest reads: its content when a run begins, and the plans of its stretches."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from uuid import UUID

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_reader.fetch import read_planned
from bucketlog.log_reader.options import (
    ReadOptions,
    Subscribe,
    check_batch,
    check_stream,
    open_log,
    parse_options,
)
from bucketlog.log_reader.plan import TaskPiece
from bucketlog.log_reader.planning import LogFollower, look_up_times, selected_log
from bucketlog.log_reader.ranges import resolve_ranges
from bucketlog.log_reader.replay_plan import plan_batch
from bucketlog.log_reader.tables.progress import LogPartition, Offsets
from bucketlog.tiered_storage.bucket import SyncBucket
from bucketlog.tiered_storage.log_cut_reading import LogReader

_STARTING = "starting"
_OWN_OPTIONS = {
    "path": "--bucket",
    "subscribe": "--topics",
    "subscribepattern": "--topics",
    "assign": "--topics",
    "topicids": "--topics",
    "failondataloss": "--fail-on-data-loss",
}
"""Options that the ingest itself sets, each with the option of the ingest."""


class LogConnection:
    """The bucket of a log and its reader, which is opened at the first use. Ingests of one process
    can share a connection: until `close`, the footer of each log segment is read once."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._opened: tuple[SyncBucket, LogReader] | None = None

    @property
    def is_open(self) -> bool:
        return self._opened is not None

    def opened(self) -> tuple[SyncBucket, LogReader]:
        if self._opened is None:
            bucket = open_log(self._options)
            self._opened = bucket, LogReader(bucket)
        return self._opened

    def close(self) -> None:
        """Close the bucket, and forget the log. The next use opens the bucket again."""
        opened, self._opened = self._opened, None
        if opened is not None:
            opened[0].close()


class IngestedLog:
    """The source of an ingest. `options` are the source's, without a selection and without
    `failOnDataLoss`: a planned stretch is read whole, or the batch fails.

    Without `connection`, the log opens its own connection.
    """

    def __init__(
        self,
        url: str,
        topics: list[str],
        options: Mapping[str, str],
        connection: LogConnection | None = None,
    ) -> None:
        if not topics:
            raise ConfigurationError("no topics to ingest", remedy="name at least one")
        _refuse_own_options(options)
        self._given = {**options, "path": url}
        self._options = parse_options({**self._given, "subscribe": ",".join(topics)})
        assert isinstance(self._options.selection, Subscribe)
        check_batch(self._options)
        check_stream(self._options)  # an ingest has no end either
        if self._options.ignored:
            raise ConfigurationError(
                f"options for clients of Kafka: {', '.join(self._options.ignored)}",
                remedy="leave them out: an ingest reads the bucket, and no broker",
            )
        self.connection = connection or LogConnection(self._options)

    def check(self) -> None:
        """Check that the log and its topics exist, unless the connection is already open. Raises
        the errors of `now`."""
        if not self.connection.is_open:
            try:
                _, follower = self._opened()
                selected_log(follower.read(), self._options)
            except BaseException:
                self.close()  # the next run checks again
                raise

    def now(self, *, is_first: bool, fail_on_data_loss: bool) -> list[LogPartition]:
        """Starting offsets count where nothing was ingested before, as they do for a query's first
        start in Spark. Raises `ConfigurationError`, `CorruptObjectError`, the bucket's errors."""
        options = replace(self._options, fail_on_data_loss=fail_on_data_loss)
        if not is_first:
            options = replace(options, starting=None)
        bucket, follower = self._opened()
        log = selected_log(follower.read(), options)
        times = look_up_times(bucket, options, log, [options.starting])
        ranges = resolve_ranges(options, log.selected, log.parts, times)
        return [
            LogPartition(
                wanted.topic,
                str(UUID(bytes=bytes(wanted.partition.topic_id))),
                wanted.partition.partition,
                wanted.start,
                wanted.end,
            )
            for wanted in ranges
        ]

    def reading(
        self, start: Offsets, end: Offsets, parts: Iterable[LogPartition]
    ) -> dict[str, str]:
        """Options of the source that read this stretch of `parts`. A topic that was created again
        since is refused whenever the stretch is planned."""
        topic_ids = {part.topic: part.topic_id for part in parts}
        options = {
            name: value
            for name, value in self._given.items()
            if not name.lower().startswith(_STARTING)
        }
        assign: dict[str, list[int]] = {}
        bounds: dict[str, dict[str, dict[int, int]]] = {"startingOffsets": {}, "endingOffsets": {}}
        for (topic, partition), first in start.items():
            if first == end[topic, partition]:
                continue
            assign.setdefault(topic, []).append(partition)
            bounds["startingOffsets"].setdefault(topic, {})[partition] = first
            bounds["endingOffsets"].setdefault(topic, {})[partition] = end[topic, partition]
        options["assign"] = json.dumps(assign)
        options["topicIds"] = json.dumps({topic: topic_ids[topic] for topic in assign})
        return options | {name: json.dumps(bound) for name, bound in bounds.items()}

    def plan(
        self, options: ReadOptions, *, cores: Callable[[], int]
    ) -> list[tuple[TaskPiece, ...]]:
        """Return the tasks of the stretch that `options` describe, as `plan_batch` makes them."""
        bucket, follower = self._opened()
        return plan_batch(bucket, options, cores=cores, snapshot=follower.read())

    def has_records(self, options: ReadOptions, tasks: Iterable[Sequence[TaskPiece]]) -> bool:
        """Return whether `tasks`, planned with `options`, have a record. Reads until the first
        record, usually with one range GET. Raises the errors of `read_planned`."""
        bucket, _ = self._opened()
        for pieces in tasks:
            with closing(read_planned(bucket, options, pieces, ["offset"])) as batches:
                if next(batches, None) is not None:
                    return True
        return False

    def close(self) -> None:
        """Close the connection. The next use opens it again."""
        self.connection.close()

    def _opened(self) -> tuple[SyncBucket, LogFollower]:
        bucket, reader = self.connection.opened()
        return bucket, LogFollower(bucket, self._options, reader)


def _refuse_own_options(options: Mapping[str, str]) -> None:
    for name in options:
        own = _OWN_OPTIONS.get(name.lower())
        if own is not None:
            raise ConfigurationError(f"option {name!r} belongs to the ingest", remedy=f"give {own}")
