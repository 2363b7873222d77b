"""Reading the log from the bucket alone, without Redis and without a broker: the requests.

What is believed of the answers is decided in `tiered_storage.log_cut`. Invariants kept here: pass 2
lists after pass 1 has ended; floors are listed after both, and where one is above the checkpoint
that reading began with, it begins again. Footers and checkpoints are of immutable objects, so that
when they are fetched does not matter. A checkpoint that is damaged is passed over, loudly.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from bucketlog.log_format.checkpoint import Checkpoint
from bucketlog.log_format.errors import (
    CorruptObjectError,
    InvalidDataError,
    ObjectNotFoundError,
    StaleCheckpointError,
)
from bucketlog.log_format.model import SegmentId, SegmentIndex, WriterId
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import ObjectInfo, Suffix, SyncBucket
from bucketlog.tiered_storage.chains import Chain
from bucketlog.tiered_storage.checkpoint import check_stored_bytes, decode_checkpoint, newest_first
from bucketlog.tiered_storage.concurrent_requests import request_each
from bucketlog.tiered_storage.floors import check_not_below
from bucketlog.tiered_storage.log_cut import LogSnapshot, cut_log, wanted_footers
from bucketlog.tiered_storage.segment import decode_footer
from bucketlog.tiered_storage.tails import Tail, chains_of, registered_after, tail_starts, whole_log

logger = logging.getLogger(__name__)

FOOTER_GUESS_BYTES = 16 * 1024
REQUESTS_IN_FLIGHT = 16
TRIES = 5
"""Number of times a reader begins: again where the log below its checkpoint was thinned out
meanwhile."""


def read_log(
    bucket: SyncBucket,
    *,
    requests_in_flight: int = REQUESTS_IN_FLIGHT,
    footer_guess_bytes: int = FOOTER_GUESS_BYTES,
) -> LogSnapshot:
    """The part of the log that may be believed now: all that was acknowledged before the call.

    `footer_guess_bytes` of each segment's end are fetched first; a longer footer costs a second
    GET. Raises `CorruptObjectError`, `InvalidDataError` and the bucket's errors.
    """
    return LogReader(
        bucket, requests_in_flight=requests_in_flight, footer_guess_bytes=footer_guess_bytes
    ).read()


class LogReader:
    """Reads the log again and again. What cannot change it asks for once: it remembers the newest
    checkpoint and the footers after it."""

    def __init__(
        self,
        bucket: SyncBucket,
        *,
        requests_in_flight: int = REQUESTS_IN_FLIGHT,
        footer_guess_bytes: int = FOOTER_GUESS_BYTES,
    ) -> None:
        self._bucket = bucket
        self._requests_in_flight = requests_in_flight
        self._footer_guess_bytes = footer_guess_bytes
        self._checkpoint: Checkpoint | None = None
        self._footers: dict[SegmentId, SegmentIndex] = {}

    def read(self) -> LogSnapshot:
        """Read the log as `read_log` does."""
        for _ in range(TRIES - 1):
            try:
                return self._read_once()
            except StaleCheckpointError as error:
                logger.info("%s", error)
        return self._read_once()

    def _read_once(self) -> LogSnapshot:
        bucket = self._bucket
        checkpoint = self._read_checkpoint()
        second: Mapping[WriterId, Chain] = {}
        try:
            first, second = (
                chains_of(
                    read_tails(bucket, checkpoint, requests_in_flight=self._requests_in_flight)
                )
                for _ in range(2)
            )
            self._read_footers(wanted_footers(second))
            snapshot = cut_log(first, second, self._footers, checkpoint)
        except (CorruptObjectError, InvalidDataError) as error:
            check_not_below(checkpoint, bucket.list(keys.FLOORS))  # else nothing is wrong
            if isinstance(error, CorruptObjectError):
                self._check_there(error.key, second)
            raise
        check_not_below(checkpoint, bucket.list(keys.FLOORS))
        return snapshot

    def _check_there(self, key: str, chains: Mapping[WriterId, Chain]) -> None:
        """Raise `StaleCheckpointError` if the object at `key`, past a hole of a chain, is deleted:
        the hole became a seal, and the object was of a void segment. No floor says so."""
        past_holes = {info.key for chain in chains.values() for info in chain.void}
        if key in past_holes and self._bucket.head(key) is None:
            raise StaleCheckpointError(
                f"{key}, listed past a hole, is deleted by now", remedy="the reading begins again"
            )

    def _read_checkpoint(self) -> Checkpoint | None:
        listed = newest_first(self._bucket.list(keys.CHECKPOINTS))
        known = self._checkpoint
        if known is not None and listed and listed[0].key == keys.checkpoint(known.ticket):
            return known
        self._checkpoint = next(_sound_checkpoints(self._bucket, listed), None)
        return self._checkpoint

    def _read_footers(self, wanted: Sequence[SegmentId]) -> None:
        missing = [segment for segment in wanted if segment not in self._footers]
        found = read_footers(
            self._bucket,
            missing,
            requests_in_flight=self._requests_in_flight,
            guess_bytes=self._footer_guess_bytes,
        )
        known = self._footers | {index.segment: index for index in found}
        self._footers = {segment: known[segment] for segment in wanted}


def read_checkpoint(bucket: SyncBucket) -> Checkpoint | None:
    """The newest that is sound. Raises `InvalidDataError` and the bucket's errors."""
    found = read_checkpoints(bucket, 1)
    return found[0] if found else None


def read_checkpoints(bucket: SyncBucket, count: int) -> list[Checkpoint]:
    """Return up to `count` sound checkpoints, the newest first. Raises as `read_checkpoint`."""
    listed = newest_first(bucket.list(keys.CHECKPOINTS))
    return list(islice(_sound_checkpoints(bucket, listed), count))


def _sound_checkpoints(bucket: SyncBucket, listed: Iterable[ObjectInfo]) -> Iterator[Checkpoint]:
    for info in listed:
        try:
            check_stored_bytes(info)
            yield decode_checkpoint(info.key, bucket.get(info.key).data)
        except ObjectNotFoundError:
            logger.info("%s was replaced by a newer one", info.key)
        except CorruptObjectError as error:
            logger.error("%s; the one before it is read", error)


def read_tails(
    bucket: SyncBucket,
    checkpoint: Checkpoint | None,
    *,
    requests_in_flight: int = REQUESTS_IN_FLIGHT,
) -> dict[WriterId, Tail]:
    """Return the tails after `checkpoint`, by one listing. Raises `InvalidDataError`,
    `CorruptObjectError` and the bucket's errors."""
    if checkpoint is None:
        return whole_log(list(bucket.list(keys.LOG)), bucket.list(keys.WRITERS))
    registered = bucket.list(keys.WRITERS, start_after=registered_after(checkpoint))
    starts = tail_starts(checkpoint, registered)
    tails = request_each(
        lambda start: start.read(bucket.list(start.prefix, start_after=start.start_after)),
        starts,
        requests_in_flight=requests_in_flight,
    )
    return {start.writer: tail for start, tail in zip(starts, tails, strict=True)}


def read_footers(
    bucket: SyncBucket,
    segments: Sequence[SegmentId],
    *,
    requests_in_flight: int = REQUESTS_IN_FLIGHT,
    guess_bytes: int = FOOTER_GUESS_BYTES,
) -> list[SegmentIndex]:
    """The footers of existing segments, in the order asked for. Raises `CorruptObjectError`, also
    for a segment that does not exist."""

    def footer(segment: SegmentId) -> SegmentIndex:
        try:
            return _read_footer(bucket, segment, guess_bytes)
        except ObjectNotFoundError as error:
            raise CorruptObjectError(
                error.key, 0, "it was listed and is gone", remedy="restore it; a log's objects stay"
            ) from error

    return request_each(footer, segments, requests_in_flight=requests_in_flight)


def read_footers_left(
    bucket: SyncBucket,
    segments: Sequence[SegmentId],
    *,
    requests_in_flight: int = REQUESTS_IN_FLIGHT,
    guess_bytes: int = FOOTER_GUESS_BYTES,
) -> dict[SegmentId, SegmentIndex]:
    """The footers of those segments that brokers have not deleted yet. Raises
    `CorruptObjectError`."""

    def footer(segment: SegmentId) -> SegmentIndex | None:
        try:
            return _read_footer(bucket, segment, guess_bytes)
        except ObjectNotFoundError:
            return None

    found = request_each(footer, segments, requests_in_flight=requests_in_flight)
    return {index.segment: index for index in found if index is not None}


def _read_footer(bucket: SyncBucket, segment: SegmentId, guess_bytes: int) -> SegmentIndex:
    key = keys.segment(segment)
    wanted = guess_bytes
    for _ in range(3):  # the guess, maybe the trailer's own length, the footer
        body = bucket.get(key, Suffix(wanted))
        index = decode_footer(key, body.data, body.object_size_bytes)
        if not isinstance(index, int):
            if index.segment != segment:
                raise CorruptObjectError(key, 0, f"its footer says it is {tuple(index.segment)}")
            return index
        wanted = index
    raise CorruptObjectError(key, 0, f"its footer needs more than {wanted} bytes")
