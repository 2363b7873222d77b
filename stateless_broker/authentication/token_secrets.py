"""The secrets of delegation tokens, and the credentials that follow from them (KIP-48).

Invariants: a secret follows from the key and from all that is fixed about the token, so a token
with another owner has another secret (docs/decisions/0033-delegation-tokens.md). A token of an
unknown key has no secret here. Memory is bounded by `kept_max`.
"""

import asyncio
import base64
import hmac
from collections.abc import Mapping, Sequence
from hashlib import sha256, sha512

from bucketlog.log_format.key_file import key_id
from bucketlog.metadata.delegation_tokens import DelegationToken, TokenIdentity
from bucketlog.metadata.scram_credentials import ScramMechanism
from bucketlog.stateless_broker.authentication.scram import (
    ITERATIONS_MIN,
    SALT_BYTES,
    ScramCredential,
    keys_of,
    salted,
)

_PURPOSE = b"bucketlog delegation tokens 1"


class TokenSecrets:
    """The first of `keys` makes tokens; those of all keys are accepted. `kept_max`: how many
    secrets and credentials are remembered, so that they are computed once."""

    def __init__(self, keys: Sequence[bytes], *, cluster_id: str, kept_max: int) -> None:
        self.key_id = key_id(keys[0])
        self._keys = {key_id(key): hmac.digest(key, _PURPOSE, sha256) for key in keys}
        self._cluster_id = cluster_id
        self._kept_max = kept_max
        self._secrets: dict[TokenIdentity, bytes] = {}
        self._identities: dict[bytes, TokenIdentity] = {}
        self._seen: set[str] = set()
        """Ids of tokens whose secrets `find` has computed."""
        self._credentials: dict[tuple[TokenIdentity, ScramMechanism], ScramCredential] = {}

    def secret(self, identity: TokenIdentity) -> bytes | None:
        """The HMAC of the token. None: its key is unknown here."""
        known = self._secrets.get(identity)
        key = self._keys.get(identity.key_id)
        if known is not None or key is None:
            return known
        if len(self._secrets) >= self._kept_max:
            self._secrets.clear()
            self._identities.clear()
            self._seen = set()
        found = hmac.digest(key, self._about(identity), sha512)
        self._secrets[identity] = found
        self._identities[found] = identity
        return found

    def find(self, tokens: Mapping[str, DelegationToken], secret: bytes) -> DelegationToken | None:
        """The token with this secret. Computes the secrets of tokens that are new."""
        for token_id in tokens.keys() - self._seen:
            self.secret(tokens[token_id].identity)
        self._seen = set(tokens)
        identity = self._identities.get(secret)
        found = None if identity is None else tokens.get(identity.token_id)
        return found if found is not None and found.identity == identity else None

    def token_id(self, secret: bytes) -> str | None:
        """Return the id of a token that `find` has found, for the audit log. The token may be
        forgotten by now."""
        identity = self._identities.get(secret)
        return None if identity is None else identity.token_id

    async def credential(
        self, identity: TokenIdentity, mechanism: ScramMechanism
    ) -> ScramCredential | None:
        """Return the credential of a token. Its keys are computed once, in a thread."""
        known = self._credentials.get((identity, mechanism))
        secret = self.secret(identity)
        if known is not None or secret is None:
            return known
        about = mechanism.encode() + b"\0" + secret
        salt = hmac.digest(self._keys[identity.key_id], about, sha512)[:SALT_BYTES]
        password = base64.b64encode(secret).decode()
        made = await asyncio.to_thread(salted, mechanism, password, salt, ITERATIONS_MIN)
        if len(self._credentials) >= self._kept_max:
            self._credentials.clear()
        found = ScramCredential(ITERATIONS_MIN, salt, keys_of(mechanism, made))
        self._credentials[identity, mechanism] = found
        return found

    def _about(self, identity: TokenIdentity) -> bytes:
        texts = (
            self._cluster_id,
            identity.token_id,
            identity.owner,
            identity.requester,
            *identity.renewers,
        )
        parts = [text.encode() for text in texts]
        numbers = (
            identity.issued_ms.to_bytes(8, "big"),
            identity.max_ms.to_bytes(8, "big"),
            len(identity.renewers).to_bytes(4, "big"),
        )
        return b"".join(numbers) + b"".join(len(part).to_bytes(4, "big") + part for part in parts)
