"""`cluster.json`: whose bucket this is, and in which format. Create-only, never changed.

Invariant: of several brokers that find none, one writes it and all continue with that one.
"""

import hashlib
from uuid import UUID

from pydantic import BaseModel, ConfigDict, ValidationError

from bucketlog.log_format.errors import (
    ConfigurationError,
    CorruptObjectError,
    InvalidDataError,
    ObjectNotFoundError,
)
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import Bucket, SyncBucket, listed
from bucketlog.tiered_storage.segment import body_crc32c

FORMAT_VERSION = 1
"""Version of the format of everything under the prefix: keys, segments, checkpoints."""

MARK_CHARS = 32
_RESTORE = "restore it from a copy, or give the cluster a separate bucket or prefix"


class ClusterIdentity(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    cluster_id: UUID
    format_version: int
    created_ms: int


class _FormatVersion(BaseModel):
    """The part of the file that every version has."""

    format_version: int


class NoLogError(ConfigurationError):
    def __init__(self, place: str) -> None:
        super().__init__(f"there is no log in {place}", remedy="check the url, prefix and all")


async def read_cluster(bucket: Bucket) -> ClusterIdentity | None:
    """Return the cluster's identity; None if the bucket has none. Raises `CorruptObjectError` for a
    damaged one, and `InvalidDataError` for a format that this version does not know."""
    try:
        data = bytes((await bucket.get(keys.CLUSTER)).data)
    except ObjectNotFoundError:
        return None
    return _parsed(data)


def read_cluster_sync(bucket: SyncBucket, place: str = "this bucket") -> ClusterIdentity:
    """Return the cluster's identity. Raises `NoLogError`, which names `place`, if the bucket has
    none; otherwise as `read_cluster`."""
    try:
        return _parsed(bytes(bucket.get(keys.CLUSTER).data))
    except ObjectNotFoundError:
        raise NoLogError(place) from None


def _parsed(data: bytes) -> ClusterIdentity:
    try:
        version = _FormatVersion.model_validate_json(data).format_version
        if version == FORMAT_VERSION:
            return ClusterIdentity.model_validate_json(data)
    except ValidationError as error:
        reason = f"it is not a cluster identity: {error.errors()[0]['msg']}"
        raise CorruptObjectError(keys.CLUSTER, 0, reason, remedy=_RESTORE) from error
    raise InvalidDataError(
        f"the bucket has format version {version}, this is bucketlog for {FORMAT_VERSION}",
        remedy="use the bucketlog that wrote it, or a newer one",
    )


async def bucket_mark(bucket: Bucket, url: str) -> str:
    """A value that differs between a bucket and its copies: a digest of the URL and of the store's
    time of `cluster.json`. Call it after `ensure_cluster`. Raises the bucket's errors."""
    times = [info.modified_ms for info in await listed(bucket, keys.CLUSTER)]
    text = f"{url.rstrip('/')} {times}"
    return hashlib.sha256(text.encode()).hexdigest()[:MARK_CHARS]


async def ensure_cluster(
    bucket: Bucket,
    *,
    new_cluster_id: UUID,
    now_ms: int,
    expected_cluster_id: UUID | None = None,
) -> ClusterIdentity:
    """Return the bucket's identity. A bucket without one gets `new_cluster_id`.

    If `expected_cluster_id` is given and the bucket belongs to another cluster, or would get
    another id, this raises `ConfigurationError`. Otherwise, it raises as `read_cluster`.
    """
    identity = await read_cluster(bucket)
    if identity is None and expected_cluster_id in (None, new_cluster_id):
        mine = ClusterIdentity(
            cluster_id=new_cluster_id, format_version=FORMAT_VERSION, created_ms=now_ms
        )
        data = mine.model_dump_json().encode()
        if await bucket.create(keys.CLUSTER, [data], crc32c=body_crc32c([data])):
            return mine
        identity = await read_cluster(bucket)
    if identity is None:
        raise ConfigurationError(
            f"the bucket has no {keys.CLUSTER}, cluster {expected_cluster_id} was expected",
            remedy="check bucket, prefix and shard",
        )
    if expected_cluster_id not in (None, identity.cluster_id):
        raise ConfigurationError(
            f"the bucket is cluster {identity.cluster_id}'s, not {expected_cluster_id}'s",
            remedy="check bucket, prefix and shard; two clusters cannot share one",
        )
    return identity
