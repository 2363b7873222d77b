"""Compose the logins of clients from the settings and the log."""

import hmac
import logging
import secrets
import time
from collections.abc import Callable
from hashlib import sha512

from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_format.key_file import read_key_file
from bucketlog.metadata.scram_credentials import CredentialName, ScramMechanism
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.authentication.access_token import TokenRules
from bucketlog.stateless_broker.authentication.login import Exchange, LoginRules
from bucketlog.stateless_broker.authentication.oauthbearer import OauthbearerExchange
from bucketlog.stateless_broker.authentication.plain import PasswordCheck, PlainExchange
from bucketlog.stateless_broker.authentication.realms import FindCredential
from bucketlog.stateless_broker.authentication.scram import ScramCredential, ScramExchange
from bucketlog.stateless_broker.authentication.sealing import CredentialSeal
from bucketlog.stateless_broker.authentication.token_login import (
    Find,
    FindToken,
    ScramOrTokenExchange,
    TokenLogin,
)
from bucketlog.stateless_broker.authentication.token_secrets import TokenSecrets
from bucketlog.stateless_broker.authentication.verification_keys import VerificationKeys
from bucketlog.stateless_broker.settings.broker import BrokerSettings
from bucketlog.stateless_broker.settings.logins import OAUTHBEARER, PLAIN

NONCE_BYTES = 24
USER = "User"
"""The type of principals that log in."""
logger = logging.getLogger(__name__)


def credential_seal(settings: BrokerSettings, cluster_id: str) -> CredentialSeal | None:
    """Read the keys of credentials; None without a file. Raises `ConfigurationError`."""
    if settings.credentials_key_file is None:
        return None
    keys = read_key_file(settings.credentials_key_file)
    return CredentialSeal(keys, cluster_id=cluster_id, token_bytes=secrets.token_bytes)


def credentials_of(view: View, seal: CredentialSeal | None) -> FindCredential:
    """The credentials of one log. `seal` None: there are none. A credential that does not open is
    logged, and nobody can log in with it."""

    def find(user: str, mechanism: ScramMechanism) -> ScramCredential | None:
        name = CredentialName(user, mechanism)
        sealed = view.scram_credentials.by_name.get(name)
        if sealed is None or seal is None:
            return None
        try:
            return seal.open(name, sealed)
        except InvalidDataError as error:
            logger.error("%s", error)
            return None

    return find


def token_secrets(settings: BrokerSettings, cluster_id: str) -> TokenSecrets | None:
    """Read the secrets. Returns None without a key file: delegation tokens are off. Raises
    `ConfigurationError`."""
    if settings.delegation_token_key_file is None:
        return None
    keys = read_key_file(settings.delegation_token_key_file)
    kept_max = 2 * settings.delegation_tokens_max + 1
    return TokenSecrets(keys, cluster_id=cluster_id, kept_max=kept_max)


def tokens_of(view: View, tokens: TokenSecrets | None) -> FindToken:
    """The delegation tokens of one log. `tokens` None: there are none. Nobody can log in with a
    token that has expired, or whose key is unknown."""

    async def find(token_id: str, mechanism: ScramMechanism) -> TokenLogin | None:
        token = view.delegation_tokens.by_id.get(token_id)
        if token is None or tokens is None:
            return None
        kind, _, owner = token.identity.owner.partition(":")
        credential = await tokens.credential(token.identity, mechanism)
        valid_s = token.expires_ms / 1000 - time.time()
        if credential is None or valid_s <= 0 or kind != USER:
            return None
        return TokenLogin(owner, valid_s, credential)

    return find


class Logins:
    """The rules of logins. `find` gives the credentials of users, `find_token` those of delegation
    tokens. `keys` or `tokens` None: no OAUTHBEARER. `has_realms`: users are `USER@TENANT`."""

    def __init__(
        self,
        settings: BrokerSettings,
        find: FindCredential,
        *,
        find_token: FindToken,
        keys: VerificationKeys | None,
        tokens: TokenRules | None,
        has_realms: bool = False,
    ) -> None:
        self._settings = settings
        self._find = find
        self._find_token = find_token
        self._keys = keys
        self._tokens = tokens
        self._has_realms = has_realms
        self._secret = secrets.token_bytes(32)
        self._passwords = PasswordCheck(
            find=find,
            secret=self._secret,
            checks_in_flight=settings.plain_checks_in_flight,
            remembered_ms=settings.plain_remembered_ms,
            now_s=time.monotonic,
        )

    def rules(self, *, is_tls: bool) -> LoginRules:
        """The rules of a listener with or without TLS."""
        settings = self._settings
        offered = settings.mechanisms(is_tls=is_tls)
        return LoginRules(
            mechanisms={
                name: self._maker(name)
                for name in offered
                if name != OAUTHBEARER or self._tokens is not None
            },
            ms_max=settings.login_ms_max,
            failure_delay_ms=settings.login_failure_delay_ms,
            request_bytes_max=settings.sasl_request_bytes_max,
            reauthentication_ms_max=settings.connections_reauth_ms_max,
            now_s=time.monotonic,
            has_realms=self._has_realms,
        )

    def _maker(self, name: str) -> Callable[[], Exchange]:
        if name == PLAIN:
            return lambda: PlainExchange(self._passwords)
        if name == OAUTHBEARER:
            keys, rules = self._keys, self._tokens
            assert keys is not None, "a listener with OAUTHBEARER has keys"
            assert rules is not None, "a listener with OAUTHBEARER has rules for tokens"
            return lambda: OauthbearerExchange(rules, keys, time.time, has_realms=self._has_realms)
        mechanism = ScramMechanism(name)

        def find(user: str) -> ScramCredential | None:
            return self._find(user, mechanism)

        def exchange(find: Find, is_by_token: bool) -> ScramExchange:
            return ScramExchange(
                mechanism,
                find=find,
                decoy=lambda user: hmac.digest(self._secret, user.encode(), sha512),
                new_nonce=lambda: secrets.token_urlsafe(NONCE_BYTES),
                is_by_token=is_by_token,
            )

        return lambda: ScramOrTokenExchange(
            users=find,
            tokens=lambda token_id: self._find_token(token_id, mechanism),
            exchange=exchange,
        )
