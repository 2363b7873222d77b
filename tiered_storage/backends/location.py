"""Opening a bucket by its URL: `s3://bucket/prefix`, `file:///folder`, a plain path,
`memory://name`.

Invariant: a bucket is rooted at `<prefix>/<shard>/`, and none of its keys is anywhere else. SDKs
are imported when a URL asks for them, so that a command that needs no S3 starts without them.
"""

import threading
from dataclasses import dataclass
from pathlib import Path
from random import Random
from urllib.parse import unquote, urlsplit

from bucketlog.log_format.errors import BucketRefusedError, ConfigurationError
from bucketlog.tiered_storage.backends.file import FileBucket
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from bucketlog.tiered_storage.backends.s3_options import S3Options, parse_s3_options
from bucketlog.tiered_storage.backends.threaded import ThreadedBucket
from bucketlog.tiered_storage.bucket import Bucket, SyncBucket, check_key
from bucketlog.tiered_storage.retry_steps import bucket_backoff
from bucketlog.tiered_storage.retry_sync import RetrySyncBucket
from bucketlog.tiered_storage.signed_bucket import SignedBucket, SignedSyncBucket
from bucketlog.tiered_storage.state_signature import NO_KEYS, StateKeys

__all__ = [
    "Location",
    "S3Options",
    "open_bucket",
    "open_patient_bucket",
    "open_sync_bucket",
    "parse_location",
    "parse_s3_options",
]

_REMEDY = "use s3://bucket/prefix, file:///folder, a path, or memory://name"

PATIENCE_MS = 5_000
"""The time that a person waits before a terminal."""

_memory: dict[tuple[str, int], MemoryBucket] = {}
_memory_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class Location:
    """A url, taken apart. `scheme` is s3, file or memory; `bucket` is S3's bucket or the memory
    bucket's name; `path` is S3's prefix without slashes at its ends, or an absolute folder."""

    scheme: str
    bucket: str
    path: str


def parse_location(url: str) -> Location:
    """Parse a bucket's URL. Raises `ConfigurationError`."""
    if not url or "\0" in url:
        raise ConfigurationError(f"{url!r} names no bucket", remedy=_REMEDY)
    scheme, separator, rest = url.partition("://")
    if not separator:
        return Location("file", "", str(Path(url).expanduser().absolute()))
    match scheme.lower():
        case "s3":
            return _parse_s3(url, rest)
        case "file":
            parts = urlsplit(url)
            if parts.netloc not in ("", "localhost") or not parts.path.strip("/"):
                raise ConfigurationError(
                    f"{url!r} names no folder of this machine",
                    remedy="use three slashes and an absolute path, as in file:///var/bucketlog",
                )
            if parts.query or parts.fragment:
                raise ConfigurationError(f"{url!r} has a query or a fragment", remedy=_REMEDY)
            return Location("file", "", str(Path(unquote(parts.path))))
        case "memory":
            if not rest:
                raise ConfigurationError(f"{url!r} has no name", remedy="as in memory://test")
            return Location("memory", rest, "")
        case _:
            raise ConfigurationError(f"{url!r}: unknown scheme {scheme!r}", remedy=_REMEDY)


def _parse_s3(url: str, rest: str) -> Location:
    bucket, _, prefix = rest.partition("/")
    prefix = prefix.strip("/")
    if not bucket or any(letter in rest for letter in "?#@ "):
        raise ConfigurationError(
            f"{url!r} is not an S3 location",
            remedy="use s3://bucket/prefix; endpoint and credentials are settings, not in the url",
        )
    if prefix:
        try:
            check_key(prefix)
        except BucketRefusedError as error:
            raise ConfigurationError(
                f"{url!r} has a bad prefix: {error.message}", remedy=error.remedy
            ) from error
    return Location("s3", bucket, prefix)


def _shard_prefix(location: Location, shard: int) -> str:
    return f"{location.path}/{shard}/" if location.path else f"{shard}/"


def _open_local(location: Location, shard: int) -> SyncBucket:
    if location.scheme == "file":
        return FileBucket(Path(location.path) / str(shard))
    with _memory_lock:
        return _memory.setdefault((location.bucket, shard), MemoryBucket())


def _parse(url: str, shard: int) -> Location:
    if shard < 0:
        raise ConfigurationError(f"shard {shard}", remedy="shards are numbered from 0")
    return parse_location(url)


def open_sync_bucket(
    url: str,
    *,
    shard: int = 0,
    s3: S3Options | None = None,
    state_keys: StateKeys = NO_KEYS,
) -> SyncBucket:
    """Open without a request. The caller closes it. Raises `ConfigurationError` for a bad url.

    With `state_keys`, checkpoints, floors and manifests are signed and checked."""
    location = _parse(url, shard)
    if location.scheme != "s3":
        return SignedSyncBucket(_open_local(location, shard), state_keys)
    from bucketlog.tiered_storage.backends.s3_sync import SyncS3Bucket

    return SignedSyncBucket(
        SyncS3Bucket(location.bucket, _shard_prefix(location, shard), s3 or S3Options()), state_keys
    )


def open_patient_bucket(
    url: str,
    *,
    shard: int = 0,
    s3: S3Options | None = None,
    give_up_after_ms: int = PATIENCE_MS,
) -> SyncBucket:
    """Open the bucket as `open_sync_bucket` does, and repeat requests after retriable errors for
    `give_up_after_ms`."""
    inner = open_sync_bucket(url, shard=shard, s3=s3)
    return RetrySyncBucket(inner, bucket_backoff(give_up_after_ms), random=Random())


async def open_bucket(
    url: str,
    *,
    shard: int = 0,
    s3: S3Options | None = None,
    state_keys: StateKeys = NO_KEYS,
) -> Bucket:
    """Open a bucket as `open_sync_bucket` does, for asynchronous use."""
    location = _parse(url, shard)
    if location.scheme != "s3":
        return SignedBucket(ThreadedBucket(_open_local(location, shard)), state_keys)
    from bucketlog.tiered_storage.backends.s3 import S3Bucket

    inner = await S3Bucket.connect(
        location.bucket, _shard_prefix(location, shard), s3 or S3Options()
    )
    return SignedBucket(inner, state_keys)
