"""Checkpoints for tests, made of a bucket by the same pure steps as a broker's."""

from bucketlog.log_format.checkpoint import Checkpoint
from bucketlog.log_format.model import SegmentIndex, WriterId
from bucketlog.metadata.checkpoint import extended
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import SyncBucket
from bucketlog.tiered_storage.checkpoint import encode_checkpoint
from bucketlog.tiered_storage.checkpoint_cut import cut_prefix, low_ticket
from bucketlog.tiered_storage.log_cut_reading import read_checkpoint, read_footers, read_tails
from bucketlog.tiered_storage.tails import Tail

Tails = dict[WriterId, Tail]


def indexes_of(bucket: SyncBucket, tails: Tails) -> list[SegmentIndex]:
    names = [
        keys.parse_segment(info.key) for tail in tails.values() for info in tail.chain.committed
    ]
    return read_footers(bucket, names, requests_in_flight=1)


def made_of(
    bucket: SyncBucket, base: Checkpoint | None, first: Tails, second: Tails, *, active_epoch: int
) -> Checkpoint | None:
    """From two listings after `base`; None where there is nothing new."""
    low = low_ticket(indexes_of(bucket, first), active_epoch=active_epoch)
    if base is not None and low <= base.ticket:
        return None
    footers = {index.segment: index for index in indexes_of(bucket, second)}
    prefix = cut_prefix(low, second, footers)
    return extended(base, prefix.segments, low, prefix.writers, created_ms=1)


def write_checkpoint(bucket: SyncBucket, *, active_epoch: int = 1) -> Checkpoint:
    """On the newest one; what is in the bucket does not change meanwhile."""
    base = read_checkpoint(bucket)
    tails = read_tails(bucket, base)
    made = made_of(bucket, base, tails, tails, active_epoch=active_epoch)
    assert made is not None, "nothing new"
    assert bucket.create(keys.checkpoint(made.ticket), [encode_checkpoint(made)])
    return made
