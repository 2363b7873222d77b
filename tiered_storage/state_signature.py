"""Signatures of the objects by which brokers delete: checkpoints, floors and manifests. Pure,
except for `read_state_keys`.

Format: docs/format/signature.md. A signature is a trailer of 52 bytes after the object's own
bytes: an HMAC-SHA256 over the object's name and bytes. Invariants: with keys, a signature with a
known key that does not match is always refused. Objects without a signature, or signed with an
unknown key, are refused unless `unsigned_accepted`. Without keys, a trailer is removed and not
checked.
"""

import hmac
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from bucketlog.log_format.errors import CorruptObjectError, InvalidDataError
from bucketlog.log_format.key_file import key_id, read_key_file
from bucketlog.log_format.model import Buffer
from bucketlog.tiered_storage import keys

VERSION = 1
MAGIC = b"bktlogsg"
SIGNED_PREFIXES = (keys.CHECKPOINTS, keys.FLOORS, keys.MANIFESTS)

_HEAD = struct.Struct(">8sHH8s")
_NAME = struct.Struct(">I")
_MAC_BYTES = 32
TRAILER_BYTES = _HEAD.size + _MAC_BYTES
_REMEDY = (
    "if brokers wrote it before they had BUCKETLOG_STATE_KEY_FILE, set "
    "BUCKETLOG_STATE_UNSIGNED_ACCEPTED=true for a time (docs/operations.md#signed-state); "
    "otherwise find out who writes to the bucket"
)


class VerifiedBytes(NamedTuple):
    """An object's own bytes, and whether a signature was checked."""

    data: Buffer
    is_signed: bool


def is_signed_kind(key: str) -> bool:
    """Return whether objects with this name may have a signature."""
    return key.startswith(SIGNED_PREFIXES)


def has_trailer(end: Buffer) -> bool:
    """Return whether `end`, the last bytes of an object, has a trailer."""
    return bytes(end[-TRAILER_BYTES:][: len(MAGIC)]) == MAGIC


@dataclass(frozen=True, slots=True)
class StateKeys:
    """The keys of signatures. The first of `secrets` signs, all of them verify. Without secrets,
    nothing is signed or verified."""

    secrets: tuple[bytes, ...] = ()
    unsigned_accepted: bool = False

    def __repr__(self) -> str:
        return f"StateKeys({len(self.secrets)} secrets)"

    def trailer(self, key: str, parts: Sequence[Buffer]) -> bytes:
        """The trailer for an object of these parts; empty without a secret."""
        if not self.secrets:
            return b""
        secret = self.secrets[0]
        head = _HEAD.pack(MAGIC, VERSION, 0, key_id(secret))
        return head + _mac(secret, key, parts, head)

    def open(self, key: str, data: Buffer) -> VerifiedBytes:
        """Check a whole object and remove its trailer. Raises `CorruptObjectError`, and
        `InvalidDataError` for an unknown version."""
        view = memoryview(data)
        if not has_trailer(view):
            if self.secrets and not self.unsigned_accepted:
                raise CorruptObjectError(key, 0, "it has no signature", remedy=_REMEDY)
            return VerifiedBytes(data, False)
        payload, trailer = view[:-TRAILER_BYTES], view[-TRAILER_BYTES:]
        head, mac = bytes(trailer[: _HEAD.size]), bytes(trailer[_HEAD.size :])
        _, version, flags, secret_id = _HEAD.unpack(head)
        if version != VERSION or flags:
            raise InvalidDataError(
                f"{key!r} has a signature of version {version}; this release reads {VERSION}",
                remedy="use the release of bucketlog that wrote it, or a later one",
            )
        if not self.secrets:
            return VerifiedBytes(payload, False)
        secret = next((each for each in self.secrets if key_id(each) == secret_id), None)
        if secret is None:
            if self.unsigned_accepted:  # an attacker could also omit the trailer
                return VerifiedBytes(payload, False)
            raise CorruptObjectError(
                key,
                len(payload),
                f"it is signed with an unknown key (id {secret_id.hex()})",
                remedy="add that key to the file of BUCKETLOG_STATE_KEY_FILE",
            )
        if not hmac.compare_digest(mac, _mac(secret, key, [payload], head)):
            raise CorruptObjectError(
                key,
                len(payload),
                "its signature does not match its bytes and its name",
                remedy="find out who writes to the bucket; restore the object from a version or a "
                "copy",
            )
        return VerifiedBytes(payload, True)


NO_KEYS = StateKeys()


def _mac(secret: bytes, key: str, parts: Sequence[Buffer], head: bytes) -> bytes:
    name = key.encode()
    made = hmac.new(secret, b"bucketlog state" + head + _NAME.pack(len(name)) + name, sha256)
    for part in parts:
        made.update(part)
    return made.digest()


def read_state_keys(path: Path, *, unsigned_accepted: bool = False) -> StateKeys:
    """Read the keys of signatures. Raises `ConfigurationError`."""
    return StateKeys(read_key_file(path), unsigned_accepted)
