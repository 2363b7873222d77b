"""The client's side of SCRAM-SHA-256, SCRAM-SHA-512 and PLAIN. Pure, except for its nonce.

Invariant: a server that does not know the user's credential is refused, even if it accepts the
login. Source: RFC 5802, RFC 7677, RFC 4616; KIP-84. As in Kafka, a password's bytes are used as
they are, without SASLprep.
"""

import base64
import binascii
import hashlib
import hmac
import re
import secrets

HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
ITERATIONS_MAX = 1_000_000
"""A server that asks for more would keep this client busy for seconds."""
_NONCE_BYTES = 24
_FIRST = re.compile(r"r=([\x21-\x2b\x2d-\x7e]+),s=([A-Za-z0-9+/=]+),i=(\d{1,9})(?:,.*)?")
_FINAL = re.compile(r"v=([A-Za-z0-9+/=]+)(?:,.*)?")


class ServerTokenError(Exception):
    """The server's token breaks the protocol, or does not prove that it knows the user."""


def plain_token(username: str, password: str) -> bytes:
    return b"\0".join((b"", username.encode(), password.encode()))


class ScramClient:
    """One exchange: `first`, then `final` with the server's answer, then `check` with the last."""

    def __init__(
        self, mechanism: str, username: str, password: str, nonce: str | None = None
    ) -> None:
        self._hash = HASHES[mechanism]
        self._password = password.encode()
        self._nonce = nonce or secrets.token_urlsafe(_NONCE_BYTES)
        name = username.replace("=", "=3D").replace(",", "=2C")
        self._first_bare = f"n={name},r={self._nonce}"
        self._server_signature = b""

    def first(self) -> bytes:
        return f"n,,{self._first_bare}".encode()

    def final(self, server_first: bytes) -> bytes:
        """Raises `ServerTokenError`."""
        text = server_first.decode(errors="replace")
        found = _FIRST.fullmatch(text)
        if found is None or not found[1].startswith(self._nonce) or found[1] == self._nonce:
            raise ServerTokenError("its first token is not one of SCRAM")
        salt, iterations = _decoded(found[2]), int(found[3])
        if not 0 < iterations <= ITERATIONS_MAX:
            raise ServerTokenError(f"it asks for {iterations} iterations")
        salted = hashlib.pbkdf2_hmac(self._hash, self._password, salt, iterations)
        without_proof = f"c=biws,r={found[1]}"
        signed = f"{self._first_bare},{text},{without_proof}".encode()
        client_key = hmac.digest(salted, b"Client Key", self._hash)
        stored_key = hashlib.new(self._hash, client_key).digest()
        signature = hmac.digest(stored_key, signed, self._hash)
        proof = bytes(one ^ other for one, other in zip(client_key, signature, strict=True))
        server_key = hmac.digest(salted, b"Server Key", self._hash)
        self._server_signature = hmac.digest(server_key, signed, self._hash)
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def check(self, server_final: bytes) -> None:
        """Raises `ServerTokenError` if the server does not know the user's credential."""
        found = _FINAL.fullmatch(server_final.decode(errors="replace"))
        if found is None or not self._server_signature:
            raise ServerTokenError("its last token is not one of SCRAM")
        if not hmac.compare_digest(_decoded(found[1]), self._server_signature):
            raise ServerTokenError("it does not know this user's credential: it may be an impostor")


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ServerTokenError("its token is not in base64") from None
