"""Access tokens: which are accepted, and why others are refused. Keys: which are used."""

import hmac
import json
from functools import cache
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from bucketlog.log_format.errors import InvalidDataError
from bucketlog.stateless_broker.authentication.access_token import (
    AcceptedToken,
    TokenRefusedError,
    TokenRules,
    UnknownKeyError,
    accept_token,
)
from bucketlog.stateless_broker.authentication.key_set import KeySet, read_key_set
from tests.rigs.tokens import (
    AUDIENCE,
    ISSUER,
    claims,
    document,
    ec_key,
    encoded,
    public_pem,
    public_row,
    rsa_key,
    signed,
)

NOW_S = 1_000_000.0
SKEW_S = 30
RULES = TokenRules(
    issuer=ISSUER,
    audiences=frozenset({AUDIENCE, "other"}),
    algorithms=frozenset({"RS256", "ES256", "PS256"}),
    clock_skew_s=SKEW_S,
    scope_claim="scope",
    user_claim="sub",
    token_bytes_max=4096,
    user_bytes_max=20,
)


@cache
def key(name: str) -> Any:
    return ec_key() if name.startswith("EC") else rsa_key()


def keys() -> KeySet:
    return read_key_set(
        document(
            public_row(key("RSA"), kid="1", use="sig"), public_row(key("EC"), kid="2", alg="ES256")
        )
    )


def accepted(token: str, rules: TokenRules = RULES, now_s: float = NOW_S) -> AcceptedToken:
    return accept_token(token, keys(), rules, now_s)


def refused(token: str, rules: TokenRules = RULES, now_s: float = NOW_S) -> str:
    with pytest.raises(TokenRefusedError) as caught:
        accept_token(token, keys(), rules, now_s)
    return str(caught.value)


def good(**changes: Any) -> str:
    return signed(key("RSA"), claims(NOW_S, **changes))


@pytest.mark.parametrize(
    ("name", "algorithm", "kid"),
    [("RSA", "RS256", "1"), ("RSA", "PS256", "1"), ("EC", "ES256", "2"), ("RSA", "RS256", None)],
)
def test_a_good_token(name: str, algorithm: str, kid: str | None) -> None:
    token = signed(key(name), claims(NOW_S), algorithm, kid)
    assert accepted(token) == AcceptedToken("ann", 300)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"iss": "https://evil.example"}, "its issuer 'https://evil.example'"),
        ({"iss": f"{ISSUER}/"}, "its issuer"),
        ({"iss": None}, "its issuer None"),
        ({"aud": "account"}, "its audience 'account'"),
        ({"aud": ["account", 1, None]}, "its audience"),
        ({"aud": None}, "its audience None"),
        ({"aud": []}, "its audience"),
        ({"aud": {"kafka": 1}}, "its audience"),
        ({"exp": None}, "when it expires"),
        ({"iat": None}, "when it expires"),
        ({"exp": NOW_S - SKEW_S}, "it expired 30 s ago"),
        ({"exp": 0}, "it expired"),
        ({"nbf": NOW_S + SKEW_S + 1}, "it is valid only in 31 s"),
        ({"iat": NOW_S + SKEW_S + 1}, "it is valid only in 31 s"),
        ({"exp": float("nan")}, "its claim exp is not a time"),
        ({"exp": float("inf")}, "its claim exp is not a time"),
        ({"exp": 10**400}, "its claim exp is not a time"),
        ({"exp": True}, "its claim exp is not a time"),
        ({"exp": str(NOW_S + 300)}, "its claim exp is not a time"),
        ({"nbf": [NOW_S]}, "its claim nbf is not a time"),
        ({"iat": -1}, "its claim iat is not a time"),
        ({"sub": None}, "its claim 'sub' names no user"),
        ({"sub": " \t"}, "its claim 'sub' names no user"),
        ({"sub": 7}, "its claim 'sub' names no user"),
        ({"sub": "x" * 21}, "21 bytes (BUCKETLOG_USER_BYTES_MAX)"),
        ({"sub": "\ud800"}, "cannot be encoded"),
        ({"scope": ["a", "a "]}, "a scope twice"),
        ({"scope": ["a", None]}, "a scope that is blank or no text"),
        ({"scope": " "}, "a scope that is blank or no text"),
    ],
)
def test_claims_that_are_refused(changes: dict[str, Any], words: str) -> None:
    assert words in refused(good(**changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"aud": "other"},
        {"aud": ["account", AUDIENCE]},
        {"exp": NOW_S + 0.5},
        {"nbf": NOW_S + SKEW_S},
        {"nbf": NOW_S},
        {"scope": None},
        {"scope": ["a", "b"]},
        {"scope": {"a": 1}},
        {"extra": {"deep": [1, 2]}},
    ],
)
def test_claims_that_are_accepted(changes: dict[str, Any]) -> None:
    assert accepted(good(**changes)).user == "ann"


def test_the_session_of_a_token() -> None:
    token = good(exp=NOW_S + 100)
    assert accepted(token).session_s == 100
    assert accepted(token, now_s=NOW_S + 99).session_s == 1
    assert accepted(token, now_s=NOW_S + 110).session_s == SKEW_S - 10  # only the skew is left
    assert "it expired" in refused(token, now_s=NOW_S + 100 + SKEW_S)


def test_other_claims_and_any_audience() -> None:
    rules = TokenRules(
        issuer=ISSUER,
        audiences=None,
        algorithms=frozenset({"RS256"}),
        clock_skew_s=0,
        scope_claim="scp",
        user_claim="client_id",
        token_bytes_max=4096,
        user_bytes_max=20,
    )
    token = good(aud=None, client_id=" app ", scp=["a"], scope=["b", "b"])
    assert accepted(token, rules).user == "app"
    assert "its claim 'scp'" in refused(good(client_id="app", scp=["a", "a"]), rules)
    assert "not allowed" in refused(signed(key("EC"), claims(NOW_S), "ES256", "2"), rules)


def test_signatures_that_are_refused() -> None:
    other = rsa_key()
    assert "signature" in refused(signed(other, claims(NOW_S)))
    head, _, signature = good().split(".")
    _, body, _ = good(sub="eve").split(".")
    assert "signature" in refused(f"{head}.{body}.{signature}")
    assert "signature" in refused(f"{good().rpartition('.')[0]}.")
    # a key of one kind does not serve the algorithm of another kind
    with pytest.raises(UnknownKeyError):
        accepted(signed(key("EC"), claims(NOW_S), "ES256", "1"))
    with pytest.raises(UnknownKeyError):
        accepted(signed(key("RSA"), claims(NOW_S), "RS256", "2"))
    with pytest.raises(UnknownKeyError):
        accepted(signed(key("RSA"), claims(NOW_S), kid="3"))


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "", None, "RS512", ["RS256"], 1, {}])
def test_algorithms_that_are_refused(algorithm: object) -> None:
    for signature in (b"", b"x" * 256):
        token = encoded({"alg": algorithm, "kid": "1"}, claims(NOW_S), signature)
        assert "is not allowed" in refused(token)
    assert "not allowed" in refused(encoded({"kid": "1"}, claims(NOW_S)))


@pytest.mark.parametrize("algorithm", ["HS256", "RS256"])
def test_a_public_key_as_a_shared_secret(algorithm: str) -> None:
    unsigned = encoded({"alg": algorithm, "kid": "1"}, claims(NOW_S)).rstrip(".")
    for secret in (public_pem(key("RSA")), json.dumps(public_row(key("RSA"))).encode()):
        forged = hmac.digest(secret, unsigned.encode(), "sha256")
        assert refused(encoded({"alg": algorithm, "kid": "1"}, claims(NOW_S), forged))


@pytest.mark.parametrize(
    "token",
    [
        "",
        "a",
        "a.b",
        "a.b.c",
        "...",
        "e30.e30.e30",
        "W10.e30.e30",
        "é.é.é",
        encoded({"alg": "RS256", "kid": 1}, {}),
        encoded({"alg": "RS256", "kid": "1", "crit": ["x"], "x": 1}, {}),
        encoded({"alg": "RS256", "kid": "1", "b64": False, "crit": ["b64"]}, {}),
        encoded({"alg": "RS256", "kid": ["1"]}, {}),
    ],
)
def test_what_is_no_token(token: str) -> None:
    assert refused(token)


def test_a_deep_header_and_a_large_token() -> None:
    deep = "[" * 1500
    assert refused(encoded({"alg": "RS256"}, {}).replace("e30", deep))
    nested: Any = 1
    for _ in range(400):
        nested = [nested]
    assert refused(encoded({"alg": nested}, {}))
    assert "(BUCKETLOG_OAUTHBEARER_TOKEN_BYTES_MAX)" in refused("a" * 4097)


def test_a_long_value_is_cut_in_the_reason() -> None:
    assert len(refused(good(iss="x" * 2000))) < 200
    assert len(refused(encoded({"alg": "x" * 2000}, {}))) < 200
    assert len(refused(signed(key("RSA"), claims(NOW_S), kid="x" * 2000))) < 200


def test_without_a_key_id_only_one_key_may_be_meant() -> None:
    rows = [public_row(key(name), kid=name) for name in ("RSA", "RSA 2")]
    several = read_key_set(document(*rows))
    with pytest.raises(TokenRefusedError, match="does not name its key"):
        accept_token(signed(key("RSA"), claims(NOW_S), kid=None), several, RULES, NOW_S)
    with pytest.raises(UnknownKeyError):
        accept_token(good(), KeySet(), RULES, NOW_S)


def test_a_key_serves_only_the_algorithm_that_the_set_names() -> None:
    named = read_key_set(document(public_row(key("RSA"), kid="1", alg="RS256")))
    assert accept_token(good(), named, RULES, NOW_S).user == "ann"
    with pytest.raises(UnknownKeyError):
        accept_token(signed(key("RSA"), claims(NOW_S), "PS256"), named, RULES, NOW_S)


def test_two_keys_with_one_id() -> None:
    rows = [public_row(key(name), kid="1") for name in ("RSA 2", "RSA")]
    assert accept_token(good(), read_key_set(document(*rows)), RULES, NOW_S).user == "ann"


def test_keys_that_are_left_out() -> None:
    wanted = public_row(key("RSA"), kid="1")
    rows = [
        public_row(key("RSA"), kid="encrypts", use="enc"),
        public_row(key("RSA"), kid="another algorithm", alg="RS512"),
        public_row(rsa_key(1024), kid="short"),
        public_row(ec_key(ec.SECP384R1()), kid="another curve"),
        public_row(key("RSA"), kid=7),
        {"kty": "oct", "k": "c2VjcmV0", "kid": "secret"},
        {"kty": "RSA", "kid": "no numbers"},
        {"kty": "RSA", "n": "!", "e": "AQAB", "kid": "no number"},
        {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA", "kid": "no point"},
        {"kty": ["RSA"]},
    ]
    found = read_key_set(json.dumps({"keys": [*rows, wanted, 7, None, "x"]}).encode())
    assert [each.key_id for each in found.keys] == ["1"]
    with pytest.raises(InvalidDataError, match="no key for signatures"):
        read_key_set(document(*rows))


@pytest.mark.parametrize(
    "content", [b"", b"\xff", b"[]", b"{}", b'{"keys": {}}', b"<html>", b"[" * 100_000]
)
def test_what_is_no_key_set(content: bytes) -> None:
    with pytest.raises(InvalidDataError, match="key set"):
        read_key_set(content)


def test_private_numbers_are_not_used() -> None:
    from jwt.algorithms import RSAAlgorithm

    row = RSAAlgorithm.to_jwk(key("RSA"), as_dict=True)
    assert "d" in row
    (found,) = read_key_set(document(row | {"kid": "1", "use": "sig"})).keys
    assert found.public_key == key("RSA").public_key()
