"""The public keys that tokens are verified with: one JSON Web Key Set. Pure.

Invariants: only public keys of RSA (2048 to 4096 bits) and of the curve P-256 are used, so one
check takes about 0.1 ms. A key serves only the algorithms of its kind, and only the algorithm that
the set names for it. Symmetric keys are never used. Source: RFC 7517, RFC 7518.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from jwt.algorithms import ECAlgorithm, RSAAlgorithm
from jwt.exceptions import InvalidKeyError

from bucketlog.log_format.errors import InvalidDataError

ALGORITHMS = ("RS256", "ES256", "PS256")
RSA_BITS_MIN, RSA_BITS_MAX = 2048, 4096
PublicKey = RSAPublicKey | EllipticCurvePublicKey
_KINDS: Mapping[str, type[PublicKey]] = {
    "RS256": RSAPublicKey,
    "PS256": RSAPublicKey,
    "ES256": EllipticCurvePublicKey,
}
_MEMBERS = {"RSA": ("kty", "n", "e"), "EC": ("kty", "crv", "x", "y")}
"""The public members of a key. Private ones are not even looked at."""
_REMEDY = "check that the URL or the file is the key set (JWKS) of the provider of tokens"


@dataclass(frozen=True, slots=True)
class VerificationKey:
    """A key that verifies tokens. `algorithm` None: all algorithms of the key's kind."""

    key_id: str | None
    algorithm: str | None
    public_key: PublicKey

    def serves(self, algorithm: str) -> bool:
        is_kind = isinstance(self.public_key, _KINDS[algorithm])
        return is_kind and self.algorithm in (None, algorithm)


@dataclass(frozen=True, slots=True)
class KeySet:
    keys: tuple[VerificationKey, ...] = ()

    def suitable(self, key_id: str | None, algorithm: str) -> list[VerificationKey]:
        """The keys that may have signed. Without a key id, all keys of the kind may."""
        return [
            key
            for key in self.keys
            if (key_id is None or key.key_id == key_id) and key.serves(algorithm)
        ]


def read_key_set(document: bytes) -> KeySet:
    """Keys that are not understood are left out, as RFC 7517 asks. Raises `InvalidDataError` if the
    document is not a key set, or if no key is left."""
    try:
        content = json.loads(document)
    except (ValueError, RecursionError):
        raise InvalidDataError("the key set is not JSON", remedy=_REMEDY) from None
    rows = content.get("keys") if isinstance(content, dict) else None
    if not isinstance(rows, list):
        raise InvalidDataError("the key set has no list of keys", remedy=_REMEDY)
    keys = tuple(key for row in rows if (key := _key(row)) is not None)
    if not keys:
        raise InvalidDataError(
            "the key set has no key for signatures with RSA (2048 to 4096 bits) or P-256",
            remedy=_REMEDY,
        )
    return KeySet(keys)


def _key(row: object) -> VerificationKey | None:
    if not isinstance(row, dict) or row.get("use", "sig") != "sig":
        return None
    public_key = _public_key(row)
    key_id, algorithm = row.get("kid"), row.get("alg")
    if public_key is None or not isinstance(key_id, str | None):
        return None
    if algorithm is not None and algorithm not in ALGORITHMS:
        return None
    return VerificationKey(key_id, algorithm, public_key)


def _public_key(row: Mapping[str, Any]) -> PublicKey | None:
    members = _MEMBERS.get(str(row.get("kty")))
    if members is None:
        return None
    public = {name: row[name] for name in members if isinstance(row.get(name), str)}
    try:
        found = (RSAAlgorithm if public["kty"] == "RSA" else ECAlgorithm).from_jwk(public)
    except (InvalidKeyError, ValueError, KeyError):
        return None
    if isinstance(found, RSAPublicKey) and RSA_BITS_MIN <= found.key_size <= RSA_BITS_MAX:
        return found
    if isinstance(found, EllipticCurvePublicKey) and isinstance(found.curve, SECP256R1):
        return found
    return None
