"""Keys of encrypted topics for readers without a broker.

Invariant: a reader of an unencrypted log imports no cipher, and asks no key service.
"""

import time
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from bucketlog.log_format.model import TopicIdPartition
from bucketlog.log_format.wrapped_key import WrappedKey
from bucketlog.tiered_storage.encryption.key_service import KeyAccess, KeyServices
from bucketlog.tiered_storage.encryption.partition_seals import PartitionSeals

if TYPE_CHECKING:
    from bucketlog.tiered_storage.encryption.opened_keys import OpenedKeys

ACCESSES_KEPT = 8


class KeyOptions(BaseSettings):
    """Options of the access to key-encryption keys. Missing options are taken from the environment,
    by the names of the broker's settings."""

    model_config = SettingsConfigDict(
        env_prefix="BUCKETLOG_ENCRYPTION_", env_ignore_empty=True, frozen=True, extra="forbid"
    )

    key_file: Path | None = Field(default=None, description="with the local keys")
    kms_region: str | None = Field(default=None, description="of KMS keys without an ARN")
    kms_endpoint_url: str | None = Field(
        default=None, description="of AWS KMS, if not its usual one"
    )
    kms_timeout_ms: int = Field(default=5_000, ge=1, description="of one request to AWS KMS")

    def access(self) -> KeyAccess:
        return KeyAccess(self.key_file, self.kms_region, self.kms_endpoint_url, self.kms_timeout_ms)


def partition_seals(
    access: KeyAccess, topic: str, partition: int, data_keys: Sequence[WrappedKey]
) -> PartitionSeals | None:
    """Return the seals that open the batches of a partition; None if the topic has no data keys.
    Their calls raise `KeyRefusedError`, `KeyUnavailableError`, `BrokenSealError`."""
    if not data_keys:
        return None
    from bucketlog.tiered_storage.encryption.opened_keys import KeyedPartition, TopicSeals

    topic_id = data_keys[0].topic_id
    seals = TopicSeals(_opened_keys(access), topic, {key.key_id: key for key in data_keys})
    return KeyedPartition(seals, TopicIdPartition(topic_id, partition))


@lru_cache(maxsize=ACCESSES_KEPT)
def _opened_keys(access: KeyAccess) -> "OpenedKeys":
    """Return the opened keys of the process. All its tasks share the keys that were unwrapped."""
    from bucketlog.tiered_storage.encryption.opened_keys import OpenedKeys

    return OpenedKeys(KeyServices(access).unwrap, now_s=time.monotonic)
