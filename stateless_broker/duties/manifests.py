"""What manifests list, as duties need it: read once, kept as long as somebody asks for it."""

from collections import OrderedDict

from bucketlog.model import TierObject, TierRow
from tiered_storage import keys
from tiered_storage.bucket import Bucket
from tiered_storage.manifest import decode_manifest


class Manifests:
    """`kept_max` of them are kept, those that were asked for last."""

    def __init__(self, bucket: Bucket, *, kept_max: int) -> None:
        self._bucket = bucket
        self._kept_max = kept_max
        self._kept: OrderedDict[TierObject, tuple[TierRow, ...]] = OrderedDict()

    async def listed(self, there: TierObject) -> tuple[TierRow, ...]:
        """Raises `BucketError`, `CorruptObjectError`, `InvalidDataError`."""
        rows = self._kept.get(there)
        if rows is None:
            body = await self._bucket.get(keys.tier_object(there))
            rows = self._kept[there] = tuple(decode_manifest(there, body.data))
        self._kept.move_to_end(there)
        while len(self._kept) > self._kept_max:
            self._kept.popitem(last=False)
        return rows
