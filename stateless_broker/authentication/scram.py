"""The server's side of SCRAM-SHA-256 and SCRAM-SHA-512. Pure.

Invariants: the exchange of an unknown user takes the same steps, and fails with the same text, as
one with a wrong password. Every field is bounded by the size of the request. Channel binding is
not supported. Source: RFC 5802, RFC 7677; KIP-84, KIP-48.
"""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from bucketlog.metadata.scram_credentials import ScramMechanism

HASHES = {ScramMechanism.SHA_256: "sha256", ScramMechanism.SHA_512: "sha512"}
ITERATIONS_MIN, ITERATIONS_MAX = 4_096, 16_384
"""Source: Kafka's ScramMechanism and ScramControlManager."""
SALT_BYTES = 24
_SASL_NAME = r"(?:[^,=\x00]|=2C|=3D)*"
_VALUE = r"[^,\x00]*"
_FIRST = re.compile(
    rf"(?P<header>(?P<binding>[ny]),(?:a=(?P<authorization>{_SASL_NAME}))?,)"
    rf"(?P<bare>n=(?P<name>{_SASL_NAME}),r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+)(?P<more>,.*)?)",
    re.DOTALL,
)
_FINAL = re.compile(
    rf"(?P<without_proof>c=(?P<binding>{_VALUE}),r=(?P<nonce>{_VALUE})(?:,{_VALUE})*?)"
    rf",p=(?P<proof>[A-Za-z0-9+/=]+)"
)
_TOKEN_LOGIN = re.compile(r",tokenauth=true(,|$)", re.IGNORECASE)


class LoginFailedError(Exception):
    """The reason is for the broker's log. The client gets it only if `is_public`, or gets
    `client_text` instead."""

    def __init__(
        self, reason: str, *, is_public: bool = False, client_text: str | None = None
    ) -> None:
        super().__init__(reason)
        self.is_public = is_public
        self.client_text = reason if is_public else client_text


class ScramKeys(NamedTuple):
    stored_key: bytes
    server_key: bytes


class ScramCredential(NamedTuple):
    iterations: int
    salt: bytes
    keys: ScramKeys


def keys_of(mechanism: ScramMechanism, salted_password: bytes) -> ScramKeys:
    name = HASHES[mechanism]
    client_key = hmac.digest(salted_password, b"Client Key", name)
    return ScramKeys(
        hashlib.new(name, client_key).digest(), hmac.digest(salted_password, b"Server Key", name)
    )


def salted(mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> bytes:
    """Takes milliseconds. The password is not prepared by SASLprep, as in Kafka."""
    return hashlib.pbkdf2_hmac(HASHES[mechanism], password.encode(), salt, iterations)


@dataclass(frozen=True, slots=True)
class _First:
    header: str
    bare: str
    answer: str
    nonce: str
    user: str
    credential: ScramCredential | None


class ScramExchange:
    """A SCRAM exchange. `find` returns the credential of a user, or None. `decoy` returns the salt
    of an unknown user, always the same for a user. `new_nonce` returns a fresh random text without
    commas. `is_by_token`: the user name is the id of a delegation token."""

    session_s: float | None = None
    refusal: str | None = None
    token_id: str | None = None

    def __init__(
        self,
        mechanism: ScramMechanism,
        *,
        find: Callable[[str], ScramCredential | None],
        decoy: Callable[[str], bytes],
        new_nonce: Callable[[], str],
        is_by_token: bool = False,
    ) -> None:
        self._mechanism = mechanism
        self._find = find
        self._decoy = decoy
        self._new_nonce = new_nonce
        self._is_by_token = is_by_token
        self._first: _First | None = None
        self.claimed: str | None = None
        self.user: str | None = None
        """The user once the exchange has succeeded."""

    def answer(self, message: bytes) -> bytes:
        """The server's next message. Raises `LoginFailedError`."""
        try:
            text = message.decode()
        except UnicodeDecodeError:
            raise LoginFailedError("a message of SCRAM is not UTF-8") from None
        if self.user is not None:
            raise LoginFailedError("a message of SCRAM after the login")
        return self._answer_first(text) if self._first is None else self._answer_final(text)

    def _answer_first(self, text: str) -> bytes:
        match = _FIRST.fullmatch(text)
        if match is None:
            raise LoginFailedError("the first message is not one of SCRAM without channel binding")
        if not self._is_by_token and _names_token(match):
            raise LoginFailedError(
                "Authentication failed: delegation tokens are not supported", is_public=True
            )
        self.claimed = user = _plain_name(match["name"])
        wanted = _plain_name(match["authorization"] or "")
        if wanted and wanted != user:
            raise LoginFailedError(
                "Authentication failed: Client requested an authorization id that is different "
                "from username",
                is_public=True,
            )
        credential = self._find(user)
        salt, iterations = (
            (self._decoy(user)[:SALT_BYTES], ITERATIONS_MIN)
            if credential is None
            else (credential.salt, credential.iterations)
        )
        nonce = match["nonce"] + self._new_nonce()
        answer = f"r={nonce},s={base64.b64encode(salt).decode()},i={iterations}"
        self._first = _First(match["header"], match["bare"], answer, nonce, user, credential)
        return answer.encode()

    def _answer_final(self, text: str) -> bytes:
        first = self._first
        assert first is not None
        match = _FINAL.fullmatch(text)
        if match is None:
            raise LoginFailedError("the final message is not one of SCRAM")
        if match["nonce"] != first.nonce:
            raise LoginFailedError("the nonce of the final message is wrong")
        if _unbase64(match["binding"]) != first.header.encode():
            raise LoginFailedError("the channel binding of the final message is wrong")
        proof = _unbase64(match["proof"])
        signed = f"{first.bare},{first.answer},{match['without_proof']}".encode()
        credential = first.credential
        name = HASHES[self._mechanism]
        size = hashlib.new(name).digest_size
        keys = ScramKeys(bytes(size), bytes(size)) if credential is None else credential.keys
        signature = hmac.digest(keys.stored_key, signed, name)
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=False))
        found = hashlib.new(name, client_key).digest()
        is_right = hmac.compare_digest(found, keys.stored_key) and len(proof) == size
        if not is_right or credential is None:
            raise LoginFailedError(f"user {first.user!r} is unknown, or the password is wrong")
        self.user = first.user
        return b"v=" + base64.b64encode(hmac.digest(keys.server_key, signed, name))


def token_named_by(message: bytes) -> str | None:
    """The id of the delegation token by which the client wants to log in, from its first message.
    None: it wants another login."""
    try:
        match = _FIRST.fullmatch(message.decode())
    except UnicodeDecodeError:
        return None
    return None if match is None or not _names_token(match) else _plain_name(match["name"])


def _names_token(first: re.Match[str]) -> bool:
    return _TOKEN_LOGIN.search(first["more"] or "") is not None


def _plain_name(sasl_name: str) -> str:
    return sasl_name.replace("=2C", ",").replace("=3D", "=")


def _unbase64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise LoginFailedError("a field of the final message is not base64") from None
