"""Key-encryption keys: their places, and how they wrap data keys.

A name is that of the topic config `encryption.key.id`: `local:NAME` or `aws-kms:KEY`. Invariant: a
key-encryption key is never in the bucket, and a wrapped data key opens only for the topic and the
key id for which it was made.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol

from bucketlog.log_format.encryption_errors import KeyRefusedError
from bucketlog.log_format.model import TopicId
from bucketlog.log_format.wrapped_key import WrappedKey

LOCAL = "local"
AWS_KMS = "aws-kms"


class KeyUse(NamedTuple):
    """The use of a data key."""

    topic_id: TopicId
    key_id: bytes


class CreatedKey(NamedTuple):
    """A new data key, in the clear and encrypted."""

    data_key: bytes
    wrapped: bytes


class KeyService(Protocol):
    """A place of key-encryption keys. `name` is the part after the colon. Calls may block.

    Raises `KeyRefusedError`, `KeyUnavailableError`.
    """

    def create(self, name: str, use: KeyUse) -> CreatedKey: ...

    def unwrap(self, name: str, wrapped: bytes, use: KeyUse) -> bytes: ...


class KeyAccess(NamedTuple):
    """The process' access to key-encryption keys. `key_file` None: no local keys. The region of a
    KMS key is that of its ARN, else `kms_region`, else that of the environment."""

    key_file: Path | None = None
    kms_region: str | None = None
    kms_endpoint_url: str | None = None
    kms_timeout_ms: int = 5_000


class KeyServices:
    """All places of key-encryption keys that a process can reach. `token_bytes` gives random
    bytes."""

    def __init__(
        self, access: KeyAccess, *, token_bytes: Callable[[int], bytes] = os.urandom
    ) -> None:
        self._access = access
        self._token_bytes = token_bytes
        self._services: dict[str, KeyService] = {}

    def create(self, wrapped_by: str, use: KeyUse) -> CreatedKey:
        """A new data key. Raises `KeyRefusedError`, `KeyUnavailableError`."""
        place, _, name = wrapped_by.partition(":")
        return self._service(place, wrapped_by).create(name, use)

    def unwrap(self, key: WrappedKey) -> bytes:
        """The data key. Raises `KeyRefusedError`, `KeyUnavailableError`."""
        place, _, name = key.wrapped_by.partition(":")
        use = KeyUse(key.topic_id, key.key_id)
        return self._service(place, key.wrapped_by).unwrap(name, key.wrapped, use)

    def _service(self, place: str, named: str) -> KeyService:
        service = self._services.get(place)
        if service is None:
            service = self._services[place] = self._made(place, named)
        return service

    def _made(self, place: str, named: str) -> KeyService:
        if place == LOCAL:
            from bucketlog.tiered_storage.encryption.local_keys import LocalKeys

            return LocalKeys(self._access.key_file, token_bytes=self._token_bytes)
        if place == AWS_KMS:
            from bucketlog.tiered_storage.encryption.aws_kms import AwsKms

            return AwsKms(self._access)
        raise KeyRefusedError(
            f"the encryption key {named!r} is in a place that this version does not know",
            remedy="use local:NAME or aws-kms:KEY, or upgrade bucketlog",
        )
