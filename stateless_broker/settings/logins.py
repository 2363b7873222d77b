"""The broker's settings for logins (SASL): a part of `BrokerSettings`."""

import re
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings

from bucketlog.stateless_broker.settings.types import NotNegative, Positive

PLAIN = "PLAIN"
OAUTHBEARER = "OAUTHBEARER"
MECHANISMS = ("SCRAM-SHA-512", "SCRAM-SHA-256", PLAIN, OAUTHBEARER)
_OVER_TLS = frozenset({PLAIN, OAUTHBEARER})
"""Mechanisms whose messages let an eavesdropper log in, too."""
TOKEN_ALGORITHMS = ("RS256", "ES256", "PS256")
ANY_AUDIENCE = "*"


class LoginSettings(BaseSettings):
    sasl_mechanisms: str = Field(
        "SCRAM-SHA-512,SCRAM-SHA-256",
        description="sasl.enabled.mechanisms: SCRAM-SHA-512, SCRAM-SHA-256, PLAIN and OAUTHBEARER, "
        "separated by commas. Only SASL_SSL listeners offer PLAIN and OAUTHBEARER "
        "(docs/logins.md, docs/oauth.md).",
    )
    credentials_key_file: Path | None = Field(
        None,
        description="File with the keys that encrypt SCRAM credentials in the log: one key per "
        "line, in hexadecimal. The first key encrypts, all of them decrypt. SASL listeners with "
        "SCRAM or PLAIN need it.",
    )
    sasl_request_bytes_max: Positive = Field(
        65_536,
        description="sasl.server.max.receive.size: limit of a request before the login.",
    )
    login_ms_max: Positive = Field(
        10_000, description="A connection that has not logged in after this time is closed."
    )
    login_failure_delay_ms: NotNegative = Field(
        100,
        description="connection.failed.authentication.delay.ms: how long a client waits for the "
        "answer that its login has failed.",
    )
    connections_reauth_ms_max: NotNegative = Field(
        0,
        description="connections.max.reauth.ms: a connection must log in again within this time "
        "(KIP-368); 0: never.",
    )
    plain_checks_in_flight: Positive = Field(
        2,
        description="Limit of passwords of PLAIN that are checked at the same time, and of as many "
        "for the console.",
    )
    plain_remembered_ms: NotNegative = Field(
        60_000,
        description="How long a right password of PLAIN or of the console is remembered, so that "
        "the next login of the user is cheap.",
    )
    scram_credentials_max: Positive = Field(
        10_000, description="Limit of SCRAM credentials in the cluster."
    )
    user_bytes_max: Positive = Field(1_024, description="Limit of the name of a user.")
    delegation_token_key_file: Path | None = Field(
        None,
        description="delegation.token.secret.key: file with the keys of delegation tokens, one per "
        "line, in hexadecimal. Brokers create tokens with the first key, and accept tokens of all "
        "keys. Without this setting, brokers refuse delegation tokens (docs/logins.md).",
    )
    delegation_token_lifetime_ms_max: Positive = Field(
        604_800_000,
        description="delegation.token.max.lifetime.ms: how long a token can be renewed.",
    )
    delegation_token_expiry_ms: Positive = Field(
        86_400_000,
        description="delegation.token.expiry.time.ms: a token that is not renewed within this time "
        "expires.",
    )
    delegation_tokens_max: Positive = Field(
        10_000, description="Limit of delegation tokens in the cluster."
    )
    delegation_token_renewers_max: Positive = Field(
        100, description="Limit of the renewers of a delegation token."
    )
    oauthbearer_jwks_url: str | None = Field(
        None,
        description="sasl.oauthbearer.jwks.endpoint.url: where the provider of tokens publishes "
        "its keys (docs/oauth.md). OAUTHBEARER needs this URL or BUCKETLOG_OAUTHBEARER_JWKS_FILE.",
    )
    oauthbearer_jwks_file: Path | None = Field(
        None, description="File with the keys of the provider of tokens (a JSON Web Key Set)."
    )
    oauthbearer_jwks_ca_file: Path | None = Field(
        None,
        description="Certificates of the authorities, in PEM, that the broker trusts when it "
        "fetches keys; by default, those of the system.",
    )
    oauthbearer_jwks_http_accepted: bool = Field(
        False,
        description="Whether keys may come by http from another machine. Whoever controls the "
        "network could then log in as any user.",
    )
    oauthbearer_jwks_refresh_ms: Positive = Field(
        3_600_000,
        description="sasl.oauthbearer.jwks.endpoint.refresh.ms: how often the keys are loaded.",
    )
    oauthbearer_jwks_retry_backoff_ms: Positive = Field(
        100,
        description="sasl.oauthbearer.jwks.endpoint.retry.backoff.ms: the pause after a load of "
        "keys that failed. Each further failure doubles the pause.",
    )
    oauthbearer_jwks_retry_backoff_ms_max: Positive = Field(
        10_000,
        description="sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms: the longest such pause.",
    )
    oauthbearer_jwks_unknown_key_ms_min: Positive = Field(
        10_000,
        description="Minimum time between two loads of keys because of tokens with unknown keys.",
    )
    oauthbearer_jwks_timeout_ms: Positive = Field(
        5_000, description="Timeout of one request for keys."
    )
    oauthbearer_jwks_bytes_max: Positive = Field(
        262_144, description="Limit of the size of the document with the keys."
    )
    oauthbearer_algorithms: str = Field(
        ",".join(TOKEN_ALGORITHMS),
        description="Accepted algorithms for signatures of tokens: RS256, ES256 and PS256, "
        "separated by commas.",
    )
    oauthbearer_issuer: str | None = Field(
        None,
        description="sasl.oauthbearer.expected.issuer: the required value of the claim iss. "
        "OAUTHBEARER needs this setting.",
    )
    oauthbearer_audiences: str = Field(
        "",
        description="sasl.oauthbearer.expected.audience: the claim aud must have one of these, "
        "separated by commas; *: any audience. OAUTHBEARER needs this setting.",
    )
    oauthbearer_clock_skew_ms: NotNegative = Field(
        30_000,
        description="sasl.oauthbearer.clock.skew.seconds: how far the clocks of the broker and of "
        "the provider may differ.",
    )
    oauthbearer_scope_claim_name: str = Field(
        "scope",
        min_length=1,
        description="sasl.oauthbearer.scope.claim.name: the claim with the scopes. Brokers check "
        "only its form.",
    )
    oauthbearer_sub_claim_name: str = Field(
        "sub",
        min_length=1,
        description="sasl.oauthbearer.sub.claim.name: the claim with the name of the user.",
    )
    oauthbearer_token_bytes_max: Positive = Field(
        16_384, description="Limit of the size of a token."
    )

    @field_validator("sasl_mechanisms")
    @classmethod
    def _mechanisms_are_known(cls, text: str) -> str:
        names = _split(text)
        for name in names:
            if name not in MECHANISMS:
                raise ValueError(
                    f"unknown mechanism {name!r}: choose among {', '.join(MECHANISMS)}"
                )
        if not names:
            raise ValueError(f"no mechanism: choose among {', '.join(MECHANISMS)}")
        return text

    @field_validator("oauthbearer_algorithms")
    @classmethod
    def _algorithms_are_known(cls, text: str) -> str:
        names = _split(text)
        if not names or not set(names) <= set(TOKEN_ALGORITHMS):
            raise ValueError(f"choose among {', '.join(TOKEN_ALGORITHMS)}")
        return text

    @field_validator("oauthbearer_jwks_url")
    @classmethod
    def _url_is_of_http(cls, text: str | None) -> str | None:
        if text is None:
            return None
        parts = urlsplit(text)
        if parts.scheme not in ("https", "http") or not parts.hostname:
            raise ValueError(
                "the URL must begin with https://; for a file, set oauthbearer_jwks_file"
            )
        if parts.username is not None or parts.fragment or not text.isascii():
            raise ValueError("the URL must have no user, no fragment and only ASCII characters")
        if parts.port == 0 or re.search(r"[\s\x00-\x1f\x7f]", text):
            raise ValueError("the URL has a port or a character that no URL has")
        return text

    def mechanisms(self, *, is_tls: bool) -> tuple[str, ...]:
        """The mechanisms of a listener with or without TLS."""
        return tuple(
            name for name in _split(self.sasl_mechanisms) if is_tls or name not in _OVER_TLS
        )

    @property
    def token_algorithms(self) -> frozenset[str]:
        return frozenset(_split(self.oauthbearer_algorithms))

    @property
    def token_audiences(self) -> frozenset[str] | None:
        """The accepted audiences. None: any audience."""
        names = frozenset(_split(self.oauthbearer_audiences))
        return None if ANY_AUDIENCE in names else names

    def check_tokens(self) -> None:
        """Check the settings that OAUTHBEARER needs. Raises `ValueError`."""
        if (self.oauthbearer_jwks_url is None) == (self.oauthbearer_jwks_file is None):
            raise ValueError(
                "OAUTHBEARER needs the provider's keys: set either "
                "BUCKETLOG_OAUTHBEARER_JWKS_URL or BUCKETLOG_OAUTHBEARER_JWKS_FILE"
            )
        if not self.oauthbearer_issuer:
            raise ValueError(
                "OAUTHBEARER needs the issuer of tokens: set BUCKETLOG_OAUTHBEARER_ISSUER"
            )
        if not _split(self.oauthbearer_audiences):
            raise ValueError(
                "OAUTHBEARER needs the audience of tokens: set BUCKETLOG_OAUTHBEARER_AUDIENCES (*: "
                "tokens for any service of the provider may log in)"
            )
        url = urlsplit(self.oauthbearer_jwks_url or "")
        if url.scheme == "http" and not (self.oauthbearer_jwks_http_accepted or _is_local(url)):
            raise ValueError(
                "keys by http could be replaced on their way: use https, or set "
                "BUCKETLOG_OAUTHBEARER_JWKS_HTTP_ACCEPTED=true"
            )


def _is_local(url: SplitResult) -> bool:
    host = url.hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _split(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each.strip() for each in text.split(",") if each.strip()))
