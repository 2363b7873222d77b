"""Sealed credentials, opened by the description of their format and by other keys."""

import hmac
import secrets
from hashlib import sha256

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from bucketlog.log_format.errors import InvalidDataError
from bucketlog.metadata.scram_credentials import CredentialName, SealedCredential
from bucketlog.stateless_broker.authentication.scram import ScramCredential, ScramKeys
from bucketlog.stateless_broker.authentication.sealing import CredentialSeal

OLD, NEW = b"o" * 32, b"n" * 40
NAME = CredentialName("ann", "SCRAM-SHA-512")
CREDENTIAL = ScramCredential(8192, b"some salt", ScramKeys(b"s" * 64, b"t" * 64))


def seal(*keys: bytes, cluster_id: str = "cluster") -> CredentialSeal:
    return CredentialSeal(keys, cluster_id=cluster_id, token_bytes=secrets.token_bytes)


@pytest.mark.parametrize("size", [32, 64])
def test_what_was_sealed_opens(size: int) -> None:
    keys = ScramKeys(bytes(range(size)), bytes(range(size, 2 * size)))
    credential = CREDENTIAL._replace(keys=keys)
    sealed = seal(NEW).seal(NAME, credential)
    assert seal(NEW).open(NAME, sealed) == credential
    assert (sealed.iterations, sealed.salt) == (credential.iterations, credential.salt)
    assert keys.stored_key not in sealed.sealed
    assert keys.server_key not in sealed.sealed


def test_the_bytes_are_those_of_the_format() -> None:
    """docs/format/segment.md#credentials"""
    sealed = seal(NEW).seal(NAME, CREDENTIAL)
    assert sealed.key_id == hmac.digest(NEW, b"bucketlog key id", sha256)[:8]
    parts = (b"cluster", b"ann", b"SCRAM-SHA-512", b"some salt")
    about = (8192).to_bytes(4, "big")
    about += b"".join(len(part).to_bytes(4, "big") + part for part in parts)
    cipher = AESGCM(hmac.digest(NEW, b"bucketlog credentials 1", sha256))
    plain = cipher.decrypt(sealed.sealed[:12], sealed.sealed[12:], about)
    assert plain == b"s" * 64 + b"t" * 64
    assert len(sealed.sealed) == 12 + 128 + 16


def test_no_two_are_alike() -> None:
    one = seal(NEW)
    assert one.seal(NAME, CREDENTIAL).sealed != one.seal(NAME, CREDENTIAL).sealed


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        (NAME._replace(user="bob"), {}),
        (NAME._replace(mechanism="SCRAM-SHA-256"), {}),
        (CredentialName("an", "nSCRAM-SHA-512"), {}),
        (NAME, {"iterations": 4096}),
        (NAME, {"salt": b"other salt"}),
        (NAME, {"sealed": b""}),
        (NAME, {"sealed": b"short"}),
    ],
)
def test_what_is_not_of_this_credential_does_not_open(
    name: CredentialName, changes: dict[str, object]
) -> None:
    sealed = seal(NEW).seal(NAME, CREDENTIAL)
    changed = SealedCredential(**(sealed._asdict() | changes))
    with pytest.raises(InvalidDataError, match="was not sealed with its key"):
        seal(NEW).open(name, changed)


def test_no_byte_may_change() -> None:
    sealed = seal(NEW).seal(NAME, CREDENTIAL)
    for at in range(len(sealed.sealed)):
        changed = bytearray(sealed.sealed)
        changed[at] ^= 1
        with pytest.raises(InvalidDataError):
            seal(NEW).open(NAME, sealed._replace(sealed=bytes(changed)))
    with pytest.raises(InvalidDataError):
        seal(NEW).open(NAME, sealed._replace(sealed=sealed.sealed[:-1]))


def test_a_credential_of_another_cluster_does_not_open() -> None:
    sealed = seal(NEW, cluster_id="other").seal(NAME, CREDENTIAL)
    with pytest.raises(InvalidDataError):
        seal(NEW).open(NAME, sealed)


def test_rotation_of_keys() -> None:
    before = seal(OLD).seal(NAME, CREDENTIAL)
    assert seal(OLD, NEW).seal(NAME, CREDENTIAL).key_id == before.key_id
    both = seal(NEW, OLD)
    assert both.open(NAME, before) == CREDENTIAL
    after = both.seal(NAME, CREDENTIAL)
    assert after.key_id != before.key_id
    assert seal(OLD, NEW).open(NAME, after) == CREDENTIAL
    with pytest.raises(InvalidDataError, match=r"unknown key .*BUCKETLOG_CREDENTIALS_KEY_FILE"):
        seal(NEW).open(NAME, before)
    with pytest.raises(InvalidDataError, match="was not sealed with its key"):
        seal(OLD, NEW).open(NAME, after._replace(key_id=before.key_id))
