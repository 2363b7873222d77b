"""The secrets of delegation tokens: what they depend on, and by which keys they are accepted."""

import asyncio
import base64
import hmac
from hashlib import sha256, sha512

import pytest

from bucketlog.metadata.delegation_tokens import DelegationToken, TokenIdentity
from bucketlog.metadata.scram_credentials import ScramMechanism
from bucketlog.stateless_broker.authentication.scram import keys_of, salted
from bucketlog.stateless_broker.authentication.token_secrets import TokenSecrets

OLD, NEW = b"o" * 32, b"n" * 40
CLUSTER = "cluster"


def secrets_of(*keys: bytes, cluster_id: str = CLUSTER, kept_max: int = 100) -> TokenSecrets:
    return TokenSecrets(keys, cluster_id=cluster_id, kept_max=kept_max)


def identity(key: bytes = NEW, token_id: str = "id") -> TokenIdentity:
    key_id = hmac.digest(key, b"bucketlog key id", sha256)[:8]
    return TokenIdentity(token_id, "User:ann", "User:eve", ("User:bob",), 7, 11, key_id)


def test_the_secret_is_that_of_the_format() -> None:
    """docs/format/segment.md#delegation-tokens"""
    key = hmac.digest(NEW, b"bucketlog delegation tokens 1", sha256)
    about = (7).to_bytes(8, "big") + (11).to_bytes(8, "big") + (1).to_bytes(4, "big")
    for text in (b"cluster", b"id", b"User:ann", b"User:eve", b"User:bob"):
        about += len(text).to_bytes(4, "big") + text
    assert secrets_of(NEW).secret(identity()) == hmac.digest(key, about, sha512)
    assert secrets_of(NEW).key_id == identity().key_id


CHANGES = {
    "token_id": "other",
    "owner": "User:admin",
    "requester": "User:admin",
    "renewers": ("User:bob", "User:eve"),
    "issued_ms": 8,
    "max_ms": 12,
}


@pytest.mark.parametrize("field", CHANGES)
def test_a_changed_token_has_another_secret(field: str) -> None:
    assert CHANGES.keys() | {"key_id"} == set(TokenIdentity._fields)
    changed = identity()._replace(**{field: CHANGES[field]})  # type: ignore[arg-type]  # by name
    assert secrets_of(NEW).secret(changed) != secrets_of(NEW).secret(identity())


def test_a_token_of_another_cluster_has_another_secret() -> None:
    assert secrets_of(NEW, cluster_id="x").secret(identity()) != secrets_of(NEW).secret(identity())


def test_keys_that_are_replaced() -> None:
    old = secrets_of(OLD).secret(identity(OLD))
    assert secrets_of(NEW, OLD).secret(identity(OLD)) == old
    assert secrets_of(NEW, OLD).key_id == identity(NEW).key_id
    assert secrets_of(NEW).secret(identity(OLD)) is None


@pytest.mark.parametrize("mechanism", list(ScramMechanism))
def test_the_credential_is_that_of_the_secret(mechanism: ScramMechanism) -> None:
    async def run() -> None:
        ours = secrets_of(NEW)
        found = await ours.credential(identity(), mechanism)
        assert found is not None
        assert found == await secrets_of(NEW).credential(identity(), mechanism)
        secret = ours.secret(identity())
        assert secret is not None
        password = base64.b64encode(secret).decode()
        expected = keys_of(mechanism, salted(mechanism, password, found.salt, found.iterations))
        assert found.keys == expected
        assert await secrets_of(OLD).credential(identity(), mechanism) is None

    asyncio.run(run())


@pytest.mark.parametrize("kept_max", [1, 100])
def test_tokens_are_found_by_their_secrets(kept_max: int) -> None:
    ours = secrets_of(NEW, kept_max=kept_max)
    tokens = {name: DelegationToken(identity(token_id=name), 9) for name in ("a", "b", "c")}
    known = {name: secrets_of(NEW).secret(token.identity) for name, token in tokens.items()}
    secret = known["b"]
    assert secret is not None
    if kept_max > 1:
        assert ours.find(tokens, secret) == tokens["b"]
        renewed = tokens | {"b": DelegationToken(tokens["b"].identity, 10)}
        assert ours.find(renewed, secret) == renewed["b"]
        assert ours.token_id(secret) == "b"
    assert ours.find(tokens, b"x" * 64) is None
    gone = {name: token for name, token in tokens.items() if name != "b"}
    assert ours.find(gone, secret) is None
    changed = tokens | {"b": DelegationToken(tokens["b"].identity._replace(owner="User:eve"), 9)}
    assert secrets_of(NEW).find(changed, secret) is None
