"""Keys of credentials, encrypted for the log.

Format: docs/format/segment.md#credentials. Invariants: without the secret key, nobody can read or
make a sealed credential. One that belongs to another user, mechanism or cluster does not open.
"""

import hmac
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_format.key_file import key_id
from bucketlog.metadata.scram_credentials import CredentialName, SealedCredential
from bucketlog.stateless_broker.authentication.scram import ScramCredential, ScramKeys

_NONCE_BYTES = 12
_PURPOSE = b"bucketlog credentials 1"


class CredentialSeal:
    """The seal of credentials. The first of `secrets` seals; all of them open. `token_bytes` gives
    random bytes."""

    def __init__(
        self, secrets: Sequence[bytes], *, cluster_id: str, token_bytes: Callable[[int], bytes]
    ) -> None:
        self._current = key_id(secrets[0])
        self._ciphers: Mapping[bytes, AESGCM] = {
            key_id(secret): AESGCM(hmac.digest(secret, _PURPOSE, sha256)) for secret in secrets
        }
        self._cluster_id = cluster_id
        self._token_bytes = token_bytes

    def seal(self, name: CredentialName, credential: ScramCredential) -> SealedCredential:
        nonce = self._token_bytes(_NONCE_BYTES)
        plain = b"".join(credential.keys)
        about = self._about(name, credential.iterations, credential.salt)
        sealed = nonce + self._ciphers[self._current].encrypt(nonce, plain, about)
        return SealedCredential(credential.iterations, credential.salt, self._current, sealed)

    def open(self, name: CredentialName, sealed: SealedCredential) -> ScramCredential:
        """Open a sealed credential. Raises `InvalidDataError`."""
        cipher = self._ciphers.get(sealed.key_id)
        if cipher is None:
            raise InvalidDataError(
                f"the credential of user {name.user!r} is sealed with an unknown key (id "
                f"{sealed.key_id.hex()})",
                remedy="add that key to the file of BUCKETLOG_CREDENTIALS_KEY_FILE",
            )
        nonce, data = sealed.sealed[:_NONCE_BYTES], sealed.sealed[_NONCE_BYTES:]
        about = self._about(name, sealed.iterations, sealed.salt)
        try:
            plain = cipher.decrypt(nonce, data, about)
        except (InvalidTag, ValueError):
            raise InvalidDataError(
                f"the credential of user {name.user!r} was not sealed with its key",
                remedy="set the credential again, and find out who writes to the bucket",
            ) from None
        half = len(plain) // 2
        return ScramCredential(
            sealed.iterations, sealed.salt, ScramKeys(plain[:half], plain[half:])
        )

    def _about(self, name: CredentialName, iterations: int, salt: bytes) -> bytes:
        parts = (self._cluster_id.encode(), name.user.encode(), name.mechanism.encode(), salt)
        return iterations.to_bytes(4, "big") + b"".join(
            len(part).to_bytes(4, "big") + part for part in parts
        )
