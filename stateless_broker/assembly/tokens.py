"""Compose the check of access tokens from the settings."""

import asyncio
import time
from collections.abc import Mapping

from bucketlog.log_format.backoff import Backoff
from bucketlog.stateless_broker.authentication.access_token import TokenRules
from bucketlog.stateless_broker.authentication.key_document import KeyFile, KeyUrl, trusting
from bucketlog.stateless_broker.authentication.verification_keys import (
    KeySchedule,
    VerificationKeys,
)
from bucketlog.stateless_broker.health import Health
from bucketlog.stateless_broker.settings.broker import BrokerSettings
from bucketlog.stateless_broker.settings.logins import OAUTHBEARER


def verification_keys(settings: BrokerSettings, health: Health) -> VerificationKeys | None:
    """Return the keys of tokens; None if no listener offers OAUTHBEARER. Raises
    `ConfigurationError`."""
    offered = [
        settings.mechanisms(is_tls=spec.is_tls)
        for spec in settings.listener_specs
        if spec.has_login
    ]
    if not any(OAUTHBEARER in mechanisms for mechanisms in offered):
        return None
    source = _key_source(settings)
    return VerificationKeys(
        lambda: asyncio.to_thread(source.read),
        KeySchedule(
            refresh_ms=settings.oauthbearer_jwks_refresh_ms,
            unknown_key_ms_min=settings.oauthbearer_jwks_unknown_key_ms_min,
            retry=Backoff(
                settings.oauthbearer_jwks_retry_backoff_ms,
                settings.oauthbearer_jwks_retry_backoff_ms_max,
            ),
        ),
        health,
        now_s=time.monotonic,
    )


def _key_source(settings: BrokerSettings) -> KeyFile | KeyUrl:
    bytes_max = settings.oauthbearer_jwks_bytes_max
    if settings.oauthbearer_jwks_file is not None:
        return KeyFile(settings.oauthbearer_jwks_file, bytes_max)
    url = settings.oauthbearer_jwks_url
    assert url is not None, "settings with OAUTHBEARER have a source of keys"
    is_tls = url.lower().startswith("https:")
    context = trusting(settings.oauthbearer_jwks_ca_file) if is_tls else None
    return KeyUrl(url, context, bytes_max, settings.oauthbearer_jwks_timeout_ms)


def token_rules(
    settings: BrokerSettings, tenants: Mapping[str, BrokerSettings] | None = None
) -> TokenRules:
    """Return the rules for access tokens. `tenants`: those whose tokens are accepted, if a claim
    names the tenant."""
    assert settings.oauthbearer_issuer is not None, "settings with OAUTHBEARER have an issuer"
    return TokenRules(
        issuer=settings.oauthbearer_issuer,
        audiences=settings.token_audiences,
        algorithms=settings.token_algorithms,
        clock_skew_s=settings.oauthbearer_clock_skew_ms / 1000,
        scope_claim=settings.oauthbearer_scope_claim_name,
        user_claim=settings.oauthbearer_sub_claim_name,
        token_bytes_max=settings.oauthbearer_token_bytes_max,
        user_bytes_max=settings.user_bytes_max,
        tenant_claim=settings.tenant_claim_name if tenants else None,
        tenants={name: each.token_audiences for name, each in (tenants or {}).items()},
    )
