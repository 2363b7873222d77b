"""Key-encryption keys in a file: a line for each key, its name and then the key in hexadecimal.

Format of a wrapped data key: docs/format/segment.md#data-keys. Invariant: the file is read for each
use, so that a key that was added works, and one that was deleted does not, without a restart.
"""

import hmac
import re
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from bucketlog.log_format.encryption_errors import KeyRefusedError
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_format.key_file import KEY_BYTES_MIN, read_private_lines
from bucketlog.tiered_storage.encryption.batch_seal import DATA_KEY_BYTES, NONCE_BYTES
from bucketlog.tiered_storage.encryption.key_service import CreatedKey, KeyUse

_LINE = re.compile(r"([A-Za-z0-9._-]{1,100})\s+([0-9A-Fa-f]+)")
_PURPOSE = b"bucketlog data keys 1"
HOW_TO_GIVE = (
    "BUCKETLOG_ENCRYPTION_KEY_FILE for brokers and commands, encryption.keyFile for Spark and "
    "bucketlog.replay"
)


class LocalKeys:
    """Keys in a file. `path` None: this process has no key file. `token_bytes` gives random
    bytes."""

    def __init__(self, path: Path | None, *, token_bytes: Callable[[int], bytes]) -> None:
        self._path = path
        self._token_bytes = token_bytes

    def create(self, name: str, use: KeyUse) -> CreatedKey:
        """Create a data key. Raises `KeyRefusedError`."""
        data_key, nonce = self._token_bytes(DATA_KEY_BYTES), self._token_bytes(NONCE_BYTES)
        cipher = self._cipher(name)
        return CreatedKey(data_key, nonce + cipher.encrypt(nonce, data_key, _about(name, use)))

    def unwrap(self, name: str, wrapped: bytes, use: KeyUse) -> bytes:
        """Unwrap a data key. Raises `KeyRefusedError`."""
        cipher = self._cipher(name)
        nonce, sealed = wrapped[:NONCE_BYTES], wrapped[NONCE_BYTES:]
        try:
            data_key = cipher.decrypt(nonce, sealed, _about(name, use))
        except (InvalidTag, ValueError):
            data_key = b""
        if len(data_key) != DATA_KEY_BYTES:
            raise KeyRefusedError(
                f"the encryption key 'local:{name}' in {self._path} did not make data key "
                f"{use.key_id.hex()} of topic {use.topic_id.hex()}: another key has its name",
                remedy=f"put the right key of name {name} into that file",
            )
        return data_key

    def _cipher(self, name: str) -> AESGCM:
        if self._path is None:
            raise KeyRefusedError(
                f"the topic is encrypted with the key 'local:{name}', and no key file is given",
                remedy=f"name a file that has this key: {HOW_TO_GIVE}",
            )
        try:
            secret = read_named_keys(self._path).get(name)
        except ConfigurationError as error:
            raise KeyRefusedError(
                f"the encryption key 'local:{name}' cannot be read: {error.message}",
                remedy=error.remedy,
            ) from error
        if secret is None:
            raise KeyRefusedError(
                f"the encryption key 'local:{name}' is not in {self._path}",
                remedy=f"add the line '{name} KEY' to that file; if somebody deleted the key on "
                "purpose, the records that it protects are erased",
            )
        return AESGCM(hmac.digest(secret, _PURPOSE, sha256))


def read_named_keys(path: Path) -> dict[str, bytes]:
    """The keys of a file by name. Raises `ConfigurationError`, also if others may read the file."""
    remedy = f"add a key with: (umask 077; echo NAME $(openssl rand -hex 32) >> {path})"
    found: dict[str, bytes] = {}
    for number, line in read_private_lines(path, remedy):
        match = _LINE.fullmatch(line)
        secret = bytes.fromhex(match[2]) if match and len(match[2]) % 2 == 0 else b""
        if match is None or len(secret) < KEY_BYTES_MIN:  # do not quote the line
            raise ConfigurationError(
                f"line {number} of the key file {path} is not a name and a key of "
                f"{KEY_BYTES_MIN} bytes or more in hexadecimal",
                remedy=remedy,
            )
        if match[1] in found:
            raise ConfigurationError(
                f"the key file {path} has two keys of name {match[1]}", remedy="delete one of them"
            )
        found[match[1]] = secret
    return found


def _about(name: str, use: KeyUse) -> bytes:
    return use.topic_id + use.key_id + name.encode()
