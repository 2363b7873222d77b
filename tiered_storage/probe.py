"""The probe at start: does this bucket keep the promises that the commit protocol needs
(docs/bucket.md)?

Invariant: a store that lets a second create of one key succeed, or that changes the stored bytes by
it, is refused; nothing of the log is touched.
"""

from bucketlog.log_format.errors import BucketError, BucketRefusedError, ObjectNotFoundError
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import Bucket, Suffix
from bucketlog.tiered_storage.segment import body_crc32c

_FIRST = b"bucketlog probe: the first create must stay"
_SECOND = b"bucketlog probe: the second create must be refused"
_TAIL_LENGTH = 16
_OTHER_STORE = "use a store that knows create-only PUT (If-None-Match: *), or upgrade this one"


async def probe(bucket: Bucket, *, nonce: str, name: str) -> None:
    """Prove the five verbs on its own key, which is deleted again.

    `nonce` is fresh each time; `name` is what people call the bucket, its url. Raises
    `BucketRefusedError`; `BucketUnavailableError` if the bucket could not be asked.
    """
    key = f"{keys.PROBES}{nonce}"
    if not await bucket.create(key, [_FIRST], crc32c=body_crc32c([_FIRST])):
        raise BucketRefusedError(
            f"bucket {name}: the new key {key!r} is taken",
            remedy="another probe used this nonce: start again",
        )
    try:
        await _check(bucket, key, name)
    except BucketError:
        await _delete_quietly(bucket, key)
        raise
    await bucket.delete([key])
    if await bucket.head(key) is not None:
        raise BucketRefusedError(
            f"bucket {name}: {key!r} was deleted and is still there",
            remedy="use a store in which a deleted object is gone (no object lock)",
        )


async def _check(bucket: Bucket, key: str, name: str) -> None:
    if await bucket.create(key, [_SECOND], crc32c=body_crc32c([_SECOND])):
        raise BucketRefusedError(
            f"bucket {name} is not create-only: a second create of {key!r} succeeded",
            remedy=_OTHER_STORE,
        )
    try:
        whole = await bucket.get(key)
        tail = await bucket.get(key, Suffix(_TAIL_LENGTH))
    except ObjectNotFoundError as error:
        raise BucketRefusedError(
            f"bucket {name}: {key!r} was created and is not there", remedy=_OTHER_STORE
        ) from error
    if whole.data != _FIRST:
        raise BucketRefusedError(
            f"bucket {name} is not create-only: a refused create of {key!r} changed its bytes",
            remedy=_OTHER_STORE,
        )
    if tail != (_FIRST[-_TAIL_LENGTH:], len(_FIRST) - _TAIL_LENGTH, len(_FIRST)):
        raise BucketRefusedError(
            f"bucket {name} does not answer suffix ranges rightly",
            remedy="use a store that knows Range: bytes=-N",
        )
    if [info.key async for info in bucket.list(key)] != [key]:
        raise BucketRefusedError(
            f"bucket {name}: {key!r} was created and is not listed",
            remedy="use a store whose listings show what was written before they began",
        )


async def _delete_quietly(bucket: Bucket, key: str) -> None:
    try:
        await bucket.delete([key])
    except BucketError:
        pass  # the reason why the bucket is refused matters more
