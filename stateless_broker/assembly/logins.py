"""How clients log in, put together from the settings and the log."""

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
from bucketlog.stateless_broker.assembly.tokens import token_rules
from bucketlog.stateless_broker.authentication.login import Exchange, LoginRules
from bucketlog.stateless_broker.authentication.oauthbearer import OauthbearerExchange
from bucketlog.stateless_broker.authentication.plain import PasswordCheck, PlainExchange
from bucketlog.stateless_broker.authentication.scram import ScramCredential, ScramExchange
from bucketlog.stateless_broker.authentication.sealing import CredentialSeal
from bucketlog.stateless_broker.authentication.verification_keys import VerificationKeys
from bucketlog.stateless_broker.login_settings import OAUTHBEARER, PLAIN
from bucketlog.stateless_broker.settings import BrokerSettings

NONCE_BYTES = 24
logger = logging.getLogger(__name__)


def credential_seal(settings: BrokerSettings, cluster_id: str) -> CredentialSeal | None:
    """None without a key file. Raises `ConfigurationError`."""
    if settings.credentials_key_file is None:
        return None
    keys = read_key_file(settings.credentials_key_file)
    return CredentialSeal(keys, cluster_id=cluster_id, token_bytes=secrets.token_bytes)


class Logins:
    """The rules of logins, for all listeners of a broker. `seal` None: no mechanism with
    credentials. `keys` None: no OAUTHBEARER."""

    def __init__(
        self,
        settings: BrokerSettings,
        view: View,
        *,
        seal: CredentialSeal | None,
        keys: VerificationKeys | None,
    ) -> None:
        self._settings = settings
        self._seal = seal
        self._keys = keys
        self._view = view
        self._secret = secrets.token_bytes(32)
        self._passwords = PasswordCheck(
            find=self._find,
            secret=self._secret,
            checks_in_flight=settings.plain_checks_in_flight,
            remembered_ms=settings.plain_remembered_ms,
            now_s=time.monotonic,
        )

    def rules(self, *, is_tls: bool) -> LoginRules:
        """The rules of a listener with or without TLS."""
        settings = self._settings
        return LoginRules(
            mechanisms={name: self._maker(name) for name in settings.mechanisms(is_tls=is_tls)},
            ms_max=settings.login_ms_max,
            failure_delay_ms=settings.login_failure_delay_ms,
            request_bytes_max=settings.sasl_request_bytes_max,
            reauthentication_ms_max=settings.connections_reauth_ms_max,
            now_s=time.monotonic,
        )

    def _maker(self, name: str) -> Callable[[], Exchange]:
        if name == PLAIN:
            return lambda: PlainExchange(self._passwords)
        if name == OAUTHBEARER:
            keys, rules = self._keys, token_rules(self._settings)
            assert keys is not None, "a listener with OAUTHBEARER has keys"
            return lambda: OauthbearerExchange(rules, keys, time.time)
        mechanism = ScramMechanism(name)
        return lambda: ScramExchange(
            mechanism,
            find=lambda user: self._find(user, mechanism),
            decoy=lambda user: hmac.digest(self._secret, user.encode(), sha512),
            new_nonce=lambda: secrets.token_urlsafe(NONCE_BYTES),
        )

    def _find(self, user: str, mechanism: ScramMechanism) -> ScramCredential | None:
        """A credential that does not open is logged, and nobody can log in with it."""
        name = CredentialName(user, mechanism)
        sealed = self._view.scram_credentials.by_name.get(name)
        if sealed is None or self._seal is None:
            return None
        try:
            return self._seal.open(name, sealed)
        except InvalidDataError as error:
            logger.error("%s", error)
            return None
