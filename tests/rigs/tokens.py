"""A provider of tokens in the test's process: it signs what a test wants, and has a key set."""

import base64
import json
import time
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt import PyJWS
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

ISSUER, AUDIENCE, USER = "https://issuer.example", "kafka", "ann"
PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


def rsa_key(bits: int = 2048) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65_537, bits)


def ec_key(curve: ec.EllipticCurve | None = None) -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(curve or ec.SECP256R1())


def public_row(key: PrivateKey, **members: Any) -> dict[str, Any]:
    public = key.public_key()
    found: dict[str, Any] = (
        RSAAlgorithm.to_jwk(public, as_dict=True)
        if isinstance(public, rsa.RSAPublicKey)
        else ECAlgorithm.to_jwk(public, as_dict=True)
    )
    found.pop("key_ops", None)
    return found | members


def document(*rows: dict[str, Any]) -> bytes:
    return json.dumps({"keys": rows}).encode()


def claims(now_s: float, **changes: Any) -> dict[str, Any]:
    """Those of a good token; None leaves one out."""
    found = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": USER,
        "iat": int(now_s),
        "exp": int(now_s) + 300,
        "scope": "read write",
    } | changes
    return {name: value for name, value in found.items() if value is not None}


def signed(
    key: PrivateKey, given: dict[str, Any], algorithm: str = "RS256", kid: str | None = "1"
) -> str:
    """Whatever the claims are: PyJWT's `encode` would refuse some."""
    headers = None if kid is None else {"kid": kid}
    return PyJWS().encode(json.dumps(given).encode(), key, algorithm, headers=headers)


def encoded(header: dict[str, Any], given: dict[str, Any], signature: bytes = b"") -> str:
    """A token by hand, whatever its parts are."""
    parts = (json.dumps(header).encode(), json.dumps(given).encode(), signature)
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)


def public_pem(key: PrivateKey) -> bytes:
    return key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )


@dataclass
class Provider:
    """Signs with its newest key. `rotate` gives it a new key, and forgets the others."""

    issuer: str = ISSUER
    key: rsa.RSAPrivateKey = field(default_factory=rsa_key)
    generation: int = 1

    @property
    def kid(self) -> str:
        return f"key-{self.generation}"

    @property
    def document(self) -> bytes:
        return document(public_row(self.key, kid=self.kid, use="sig", alg="RS256"))

    def rotate(self) -> None:
        self.key, self.generation = rsa_key(), self.generation + 1

    def token(self, *, lasts_s: float = 300, **changes: Any) -> str:
        """`lasts_s`: from now on. A negative one has expired."""
        now_s = time.time()
        given = {"iss": self.issuer, "exp": now_s + lasts_s} | changes
        return signed(self.key, claims(now_s, **given), kid=self.kid)
