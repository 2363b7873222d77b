"""Settings of logins by token: what brokers refuse to start with."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from bucketlog.stateless_broker.settings.broker import BrokerSettings

GOOD: dict[str, Any] = {
    "bucket_url": "memory://x",
    "listeners": "SASL_SSL://127.0.0.1:0",
    "ssl_certificate_file": Path("tls.crt"),
    "ssl_key_file": Path("tls.key"),
    "sasl_mechanisms": "OAUTHBEARER",
    "oauthbearer_jwks_url": "https://login.example/keys",
    "oauthbearer_issuer": "https://login.example",
    "oauthbearer_audiences": "kafka, other",
}


def made(**changes: Any) -> BrokerSettings:
    return BrokerSettings(**(GOOD | changes))


def test_tokens_need_no_key_for_credentials() -> None:
    found = made()
    assert found.token_audiences == frozenset({"kafka", "other"})
    assert found.token_algorithms == frozenset({"RS256", "ES256", "PS256"})
    assert made(oauthbearer_audiences="*").token_audiences is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sasl_mechanisms": "OAUTHBEARER,PLAIN"}, "BUCKETLOG_CREDENTIALS_KEY_FILE"),
        ({"listeners": "SASL_PLAINTEXT://127.0.0.1:0"}, "has no TLS"),
        ({"oauthbearer_issuer": None}, "BUCKETLOG_OAUTHBEARER_ISSUER"),
        ({"oauthbearer_issuer": ""}, "BUCKETLOG_OAUTHBEARER_ISSUER"),
        ({"oauthbearer_audiences": " , "}, "BUCKETLOG_OAUTHBEARER_AUDIENCES"),
        ({"oauthbearer_jwks_url": None}, "BUCKETLOG_OAUTHBEARER_JWKS_FILE"),
        ({"oauthbearer_jwks_file": Path("keys")}, "set either"),
        ({"oauthbearer_jwks_url": "http://login.example/keys"}, "use https"),
        ({"oauthbearer_jwks_url": "http://localhost.example/keys"}, "use https"),
        ({"oauthbearer_jwks_url": "file:///keys"}, "must begin with https://"),
        ({"oauthbearer_jwks_url": "https://"}, "must begin with https://"),
        ({"oauthbearer_jwks_url": "https://u:p@login.example/"}, "must have no user"),
        ({"oauthbearer_jwks_url": "https://login.example/#a"}, "must have no user, no fragment"),
        ({"oauthbearer_jwks_url": "https://login.example:x/"}, "Port"),
        ({"oauthbearer_jwks_url": "https://login.example:0/"}, "a port or a character"),
        ({"oauthbearer_jwks_url": "https://login.example/a b"}, "a port or a character"),
        ({"oauthbearer_algorithms": "none"}, "choose among RS256, ES256, PS256"),
        ({"oauthbearer_algorithms": "RS256,HS256"}, "choose among RS256, ES256, PS256"),
        ({"oauthbearer_algorithms": ""}, "choose among RS256, ES256, PS256"),
        ({"oauthbearer_sub_claim_name": ""}, "at least 1 character"),
    ],
)
def test_settings_that_do_not_work(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError) as caught:
        made(**changes)
    assert words in str(caught.value)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.9.9.9", "[::1]"])
def test_http_on_this_machine(host: str) -> None:
    made(oauthbearer_jwks_url=f"http://{host}:8080/keys")
    made(
        oauthbearer_jwks_url="http://login.example/keys",
        oauthbearer_jwks_http_accepted=True,
    )


def test_without_the_mechanism_nothing_is_needed() -> None:
    made(
        sasl_mechanisms="SCRAM-SHA-256",
        credentials_key_file=Path("keys"),
        oauthbearer_issuer=None,
        oauthbearer_audiences="",
        oauthbearer_jwks_url=None,
    )
