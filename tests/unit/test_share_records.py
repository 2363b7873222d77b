"""What a member of a share group gets of the batches that were read."""

import pytest

from bucketlog.consumers.share.window import (
    AcquiredRange,
    AcquireLimits,
    Extent,
    ShareWindow,
    WindowLimits,
)
from bucketlog.log_format.batch import stamp_base_offset
from bucketlog.log_format.control_batch import Marker, encode_marker
from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_format.transactions import AbortedTransaction
from bucketlog.stateless_broker.handlers.share_records import overlapping, split_batches
from tests.rigs.wire_client import build_batch


def batch(base_offset: int, producer_id: int = -1) -> bytes:
    """Two records."""
    of_producer = 0 if producer_id >= 0 else -1
    data = bytearray(
        build_batch(
            [(None, b"a"), (None, b"b")],
            producer_id=producer_id,
            producer_epoch=of_producer,
            base_sequence=of_producer,
            transactional=producer_id >= 0,
        )
    )
    stamp_base_offset(memoryview(data), base_offset)
    return bytes(data)


def marker(base_offset: int, producer_id: int) -> bytes:
    return encode_marker(
        Marker(committed=False, coordinator_epoch=0),
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=0,
        timestamp_ms=0,
    )


ABORTED = [AbortedTransaction(7, 2, 6)]
DATA = batch(0) + batch(2, 7) + batch(4, 8) + marker(6, 7) + batch(9, 7)


def test_markers_and_aborted_batches_are_not_delivered() -> None:
    extents = [each.extent for each in split_batches(DATA, ABORTED)]
    assert extents == [
        Extent(0, 1, True),
        Extent(2, 3, False),
        Extent(4, 5, True),
        Extent(6, 6, False),
        Extent(9, 10, True),
    ]
    everything = [each.extent.delivered for each in split_batches(DATA, ())]
    assert everything == [True, True, True, False, True]


def test_a_response_has_the_batches_with_acquired_records() -> None:
    batches = split_batches(DATA, ABORTED)
    window = ShareWindow(0)
    ranges = window.acquire(
        "m",
        [each.extent for each in batches],
        AcquireLimits(3, 10, True),
        WindowLimits(100, 5, 10),
        read_from=0,
        now_ms=0,
    )
    assert ranges == [AcquiredRange(0, 1, 1), AcquiredRange(4, 4, 1)]
    assert overlapping(batches, ranges) == batch(0) + batch(4, 8)
    assert overlapping(batches, []) == b""


def test_cut_batches_are_an_error() -> None:
    with pytest.raises(InvalidDataError):
        split_batches(DATA[:-1], ())
