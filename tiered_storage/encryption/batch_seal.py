"""The seal of batches: AES-256-GCM over the records of a batch. Pure, except for the nonce.

Format: docs/format/segment.md#encrypted-batches. Invariants: the header stays readable, so that
offsets, tiers, deletion and checks of CRCs need no key. The seal covers the header without the base
offset, and binds the topic, the partition and the data key: a batch that was changed, or moved to
another partition, does not open. An opened batch has the bytes that the producer's batch had after
its validation.
"""

import struct
from collections.abc import Callable

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from bucketlog.log_format.batch import HEADER_LENGTH, LENGTH_OVERHEAD, SEALED, BatchHeader
from bucketlog.log_format.encryption_errors import BrokenSealError
from bucketlog.log_format.model import Buffer, TopicIdPartition
from bucketlog.log_format.rewriting import covered_bytes, header_before, with_payload
from bucketlog.log_format.wrapped_key import DATA_KEY_ID_BYTES
from bucketlog.tiered_storage.encryption.partition_seals import OpenedBatch

DATA_KEY_BYTES = 32
VERSION = 1
NONCE_BYTES = 12
TAG_BYTES = 16
_PURPOSE = b"bucketlog batch 1"
_HEAD = struct.Struct(f">B{DATA_KEY_ID_BYTES}s{NONCE_BYTES}s")
_PLACE = struct.Struct(f">16si{DATA_KEY_ID_BYTES}s")
SEAL_BYTES = _HEAD.size + TAG_BYTES
"""Number of bytes that sealing adds to a batch."""


class BatchSeal:
    """Seals and opens the batches of one data key. Threads may share it. `token_bytes` gives random
    bytes."""

    def __init__(
        self, key_id: bytes, data_key: bytes, *, token_bytes: Callable[[int], bytes]
    ) -> None:
        assert len(data_key) == DATA_KEY_BYTES
        self.key_id = key_id
        self._cipher = AESGCM(data_key)
        self._token_bytes = token_bytes

    def seal(self, partition: TopicIdPartition, batch: Buffer, header: BatchHeader) -> bytearray:
        """The sealed batch. Its header tells its new length and CRC."""
        sealed = header._replace(attributes=header.attributes | SEALED)
        nonce = self._token_bytes(NONCE_BYTES)
        payload = memoryview(batch)[HEADER_LENGTH : header.size_bytes]
        about = self._about(partition, sealed)
        return with_payload(
            sealed,
            _HEAD.pack(VERSION, self.key_id, nonce),
            self._cipher.encrypt(nonce, payload, about),
        )

    def open(self, partition: TopicIdPartition, batch: Buffer, header: BatchHeader) -> OpenedBatch:
        """Open a batch that this key has sealed according to `sealed_by`. Raises
        `BrokenSealError`."""
        sealed = memoryview(batch)[HEADER_LENGTH : header.size_bytes]
        _, _, nonce = _HEAD.unpack_from(sealed)
        try:
            payload = self._cipher.decrypt(
                nonce, sealed[_HEAD.size :], self._about(partition, header)
            )
        except (InvalidTag, ValueError):
            raise BrokenSealError(
                f"the batch at offset {header.base_offset} of partition {partition.partition} of "
                f"topic {partition.topic_id.hex()} was changed, or moved there, after data key "
                f"{self.key_id.hex()} encrypted it",
                remedy="restore the object from a copy, and find out who writes to the bucket",
            ) from None
        plain = header._replace(attributes=header.attributes & ~SEALED)
        head = header_before(plain, payload)
        length = HEADER_LENGTH - LENGTH_OVERHEAD + len(payload)
        return OpenedBatch(plain._replace(batch_length=length), head, payload)

    def _about(self, partition: TopicIdPartition, header: BatchHeader) -> bytes:
        place = _PLACE.pack(partition.topic_id, partition.partition, self.key_id)
        return _PURPOSE + place + covered_bytes(header)


def sealed_by(batch: Buffer, header: BatchHeader) -> bytes:
    """The id of the data key that sealed the batch. Raises `BrokenSealError`."""
    if header.size_bytes < HEADER_LENGTH + SEAL_BYTES:
        raise BrokenSealError(f"the sealed batch at offset {header.base_offset} is cut short")
    version, key_id, _ = _HEAD.unpack_from(batch, HEADER_LENGTH)
    if version != VERSION:
        raise BrokenSealError(
            f"the batch at offset {header.base_offset} has a seal of version {version}",
            remedy="a newer bucketlog wrote it: upgrade this one",
        )
    return bytes(key_id)
