"""Reading the log from the bucket alone, without Redis and without a broker: the requests.

What is believed of the answers is decided in `tiered_storage.log_cut`. Invariant kept here: pass 2
lists after pass 1 has ended. Footers are of immutable objects, so that when they are fetched does
not matter; registrations are listed last, since a writer registers before its first segment.
"""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from bucketlog.errors import CorruptObjectError, InvalidDataError, ObjectNotFoundError
from bucketlog.model import SegmentId, SegmentIndex, WriterId
from tiered_storage import keys
from tiered_storage.bucket import Suffix, SyncBucket
from tiered_storage.chains import read_chains
from tiered_storage.log_cut import LogSnapshot, cut_log, wanted_footers
from tiered_storage.segment import decode_footer

FOOTER_GUESS_BYTES = 16 * 1024
REQUESTS_IN_FLIGHT = 16


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
    first = read_chains(bucket.list(keys.LOG))
    second = read_chains(bucket.list(keys.LOG))
    _check_registered(second, bucket)
    footers = read_footers(
        bucket,
        wanted_footers(second),
        requests_in_flight=requests_in_flight,
        guess_bytes=footer_guess_bytes,
    )
    return cut_log(first, second, {index.segment: index for index in footers})


def _check_registered(chains: Iterable[WriterId], bucket: SyncBucket) -> None:
    registered = {keys.parse_writer_registration(info.key)[1] for info in bucket.list(keys.WRITERS)}
    for writer in chains:
        if writer not in registered:
            raise InvalidDataError(
                f"{keys.chain(writer)!r} holds the chain of a writer that never registered",
                remedy="keep other objects out of the log, and restore a bucket as a whole",
            )


def read_footers(
    bucket: SyncBucket,
    segments: Sequence[SegmentId],
    *,
    requests_in_flight: int = REQUESTS_IN_FLIGHT,
    guess_bytes: int = FOOTER_GUESS_BYTES,
) -> list[SegmentIndex]:
    """The footers of existing segments, in the order asked for. Raises `CorruptObjectError`."""
    if not segments:
        return []
    with ThreadPoolExecutor(min(requests_in_flight, len(segments))) as pool:
        return list(pool.map(lambda segment: _read_footer(bucket, segment, guess_bytes), segments))


def _read_footer(bucket: SyncBucket, segment: SegmentId, guess_bytes: int) -> SegmentIndex:
    key = keys.segment(segment)
    wanted = guess_bytes
    for _ in range(3):  # the guess, maybe the trailer's own length, the footer
        try:
            body = bucket.get(key, Suffix(wanted))
        except ObjectNotFoundError as error:
            raise CorruptObjectError(
                key, 0, "it was listed and is gone", remedy="restore it; a log's objects stay"
            ) from error
        index = decode_footer(key, body.data, body.object_size_bytes)
        if not isinstance(index, int):
            if index.segment != segment:
                raise CorruptObjectError(key, 0, f"its footer says it is {tuple(index.segment)}")
            return index
        wanted = index
    raise CorruptObjectError(key, 0, f"its footer needs more than {wanted} bytes")
