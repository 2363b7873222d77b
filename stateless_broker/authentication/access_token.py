"""Access tokens (JWT) of an OpenID Connect provider: whether one is good, and whose it is. Pure.

Invariants: a token is accepted only if a key of the provider has signed it with an allowed
algorithm. Unsigned tokens, and tokens that are signed with a shared secret, are never accepted.
Nothing in a token is believed before its signature is verified, except which key to look for. The
size of a token is bounded before it is read. Source: RFC 7515, RFC 7519, RFC 8725; Kafka's
BrokerJwtValidator.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from jwt import PyJWS
from jwt.exceptions import InvalidTokenError

from bucketlog.stateless_broker.authentication.key_set import KeySet

SHOWN_CHARACTERS = 80
_jws = PyJWS()


@dataclass(frozen=True, slots=True)
class TokenRules:
    """The conditions that a token must meet. `audiences` None: any audience is accepted.
    `user_claim` names the claim that has the user, `tenant_claim` the claim that has the tenant.
    `tenants` are the tenants whose tokens are accepted, each with its audiences, which then replace
    `audiences`."""

    issuer: str
    audiences: frozenset[str] | None
    algorithms: frozenset[str]
    clock_skew_s: float
    scope_claim: str
    user_claim: str
    token_bytes_max: int
    user_bytes_max: int
    tenant_claim: str | None = None
    tenants: Mapping[str, frozenset[str] | None] = field(default_factory=dict)


class AcceptedToken(NamedTuple):
    user: str
    session_s: float
    """Time until the token expires. If only the clock skew keeps an expired token valid, the rest
    of the skew."""
    tenant: str = ""
    """The tenant that the token names; empty if tokens do not name tenants."""


class TokenRefusedError(Exception):
    """The reason is for the broker's log. It never has the token."""


class UnknownKeyError(TokenRefusedError):
    """The provider may have new keys."""


def accept_token(token: str, keys: KeySet, rules: TokenRules, now_s: float) -> AcceptedToken:
    """Check a token. `now_s` is Unix time. Raises `TokenRefusedError`."""
    if len(token) > rules.token_bytes_max:
        raise TokenRefusedError(
            f"it has {len(token)} bytes (BUCKETLOG_OAUTHBEARER_TOKEN_BYTES_MAX)"
        )
    claims = _signed_claims(token, keys, rules)
    tenant = _tenant(claims, rules)
    _check_parties(claims, rules.issuer, rules.tenants[tenant] if tenant else rules.audiences)
    session_s = _check_times(claims, rules.clock_skew_s, now_s)
    _check_scopes(claims, rules.scope_claim)
    return AcceptedToken(_user(claims, rules), session_s, tenant)


def _signed_claims(token: str, keys: KeySet, rules: TokenRules) -> Mapping[str, Any]:
    try:
        header = _jws.get_unverified_header(token)
    except InvalidTokenError as error:
        raise TokenRefusedError(f"it is not a JWT: {_shown(error)}") from None
    algorithm, key_id = header.get("alg"), header.get("kid")
    if not isinstance(algorithm, str) or algorithm not in rules.algorithms:
        raise TokenRefusedError(f"its algorithm {_shown(algorithm)} is not allowed")
    suitable = keys.suitable(key_id, algorithm)
    if not suitable:
        raise UnknownKeyError(f"no key {_shown(key_id)} for {algorithm} is known")
    if key_id is None and len(suitable) > 1:
        raise TokenRefusedError("it does not name its key, and there are several")
    for key in suitable:
        try:
            payload = _jws.decode(token, key.public_key, algorithms=[algorithm])
        except InvalidTokenError as error:
            reason = _shown(error)
            continue
        return _claims(payload)
    raise TokenRefusedError(f"its signature is not accepted: {reason}")


def _claims(payload: bytes) -> Mapping[str, Any]:
    try:
        claims = json.loads(payload)
    except (ValueError, RecursionError):
        claims = None
    if not isinstance(claims, dict):
        raise TokenRefusedError("its claims are not a JSON object")
    return claims


def _tenant(claims: Mapping[str, Any], rules: TokenRules) -> str:
    if rules.tenant_claim is None:
        return ""
    tenant = claims.get(rules.tenant_claim)
    if not isinstance(tenant, str) or tenant not in rules.tenants:
        raise TokenRefusedError(
            f"its claim {_shown(rules.tenant_claim)} does not name a tenant of the listener"
        )
    return tenant


def _check_parties(
    claims: Mapping[str, Any], expected: str, audiences: frozenset[str] | None
) -> None:
    issuer = claims.get("iss")
    if issuer != expected:
        raise TokenRefusedError(f"its issuer {_shown(issuer)} is not the expected one")
    if audiences is None:
        return
    audience = claims.get("aud")
    given = audience if isinstance(audience, list) else [audience]
    if not any(isinstance(each, str) and each in audiences for each in given):
        raise TokenRefusedError(f"its audience {_shown(audience)} is not an expected one")


def _check_times(claims: Mapping[str, Any], skew_s: float, now_s: float) -> float:
    """Return the time until the token expires, or the rest of the clock skew. Raises
    `TokenRefusedError`."""
    expires, issued = _time(claims, "exp"), _time(claims, "iat")
    if expires is None or issued is None:
        raise TokenRefusedError("it does not say when it expires (exp) and was issued (iat)")
    if expires + skew_s <= now_s:
        raise TokenRefusedError(f"it expired {now_s - expires:.0f} s ago")
    for begins in (issued, _time(claims, "nbf")):
        if begins is not None and begins - skew_s > now_s:
            raise TokenRefusedError(f"it is valid only in {begins - now_s:.0f} s")
    left_s = expires - now_s
    return left_s if left_s > 0 else left_s + skew_s


def _time(claims: Mapping[str, Any], name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    try:
        if isinstance(value, bool) or not math.isfinite(value) or value < 0:
            raise ValueError(name)
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise TokenRefusedError(f"its claim {name} is not a time") from None


def _check_scopes(claims: Mapping[str, Any], name: str) -> None:
    """A text, or different texts that are not blank. Which scopes there are does not matter."""
    value = claims.get(name)
    scopes = value if isinstance(value, list) else [value] if isinstance(value, str) else []
    if not all(isinstance(each, str) and each.strip() for each in scopes):
        raise TokenRefusedError(f"its claim {_shown(name)} has a scope that is blank or no text")
    if len({each.strip() for each in scopes}) < len(scopes):
        raise TokenRefusedError(f"its claim {_shown(name)} has a scope twice")


def _user(claims: Mapping[str, Any], rules: TokenRules) -> str:
    user = claims.get(rules.user_claim)
    if not isinstance(user, str) or not user.strip():
        raise TokenRefusedError(f"its claim {_shown(rules.user_claim)} names no user")
    user = user.strip()
    try:
        size = len(user.encode())
    except UnicodeEncodeError:
        raise TokenRefusedError("the name of its user cannot be encoded") from None
    if size > rules.user_bytes_max:
        raise TokenRefusedError(f"the name of its user has {size} bytes (BUCKETLOG_USER_BYTES_MAX)")
    return user


def _shown(value: object) -> str:
    """Part of a value from a token or about one, for the log."""
    text = str(value) if isinstance(value, Exception) else ascii(value)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"
