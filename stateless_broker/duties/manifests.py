"""Manifests for duties: each is read once, and kept as long as somebody asks for it."""

from bucketlog.log_format.lru import LruCache
from bucketlog.log_format.model import TierObject, TierRow
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import Bucket
from bucketlog.tiered_storage.manifest import MANIFEST_SPAN, decode_manifest


class Manifests:
    """A cache of manifests. It keeps the `kept_max` manifests that were asked for last."""

    def __init__(self, bucket: Bucket, *, kept_max: int) -> None:
        self._bucket = bucket
        self._kept: LruCache[TierObject, tuple[TierRow, ...]] = LruCache(kept_max)

    async def listed(self, there: TierObject) -> tuple[TierRow, ...]:
        """Return the rows of a manifest. Raises `BucketError`, `CorruptObjectError`,
        `InvalidDataError`."""
        rows = self._kept.find(there)
        if rows is None:
            body = await self._bucket.get(keys.tier_object(there), MANIFEST_SPAN)
            rows = tuple(decode_manifest(there, body.data))
            self._kept.keep(there, rows)
        return rows
