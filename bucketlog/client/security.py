"""How a client reaches brokers over TLS and logs in: `connect(security=Security(...))`.

Invariants: TLS is on unless `tls=False` says otherwise, certificates are always verified, and the
name in the certificate is checked unless `verify_hostname=False`. No password or token is in the
repr.
"""

import ssl
from dataclasses import dataclass, field
from os import PathLike, fspath
from pathlib import Path
from typing import Any, get_args

from bucketlog.client.access_tokens import TokenSource, librdkafka_callback
from bucketlog.client.mechanisms import DEFAULT_MECHANISM, OAUTHBEARER, Mechanism
from bucketlog.log_format.errors import ConfigurationError

MECHANISMS: tuple[Mechanism, ...] = get_args(Mechanism)
FilePath = str | PathLike[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Security:
    """TLS and a login, for `connect`. There is a login if `username` or `token` is given.

    Args:
        ca_file: File with the certificates of the authorities that the client trusts, in PEM; None
            means those of the system.
        certificate_file: File with the client's own certificate, in PEM; None means no certificate.
        key_file: File with the key of this certificate, in PEM; None means no certificate.
        key_password: Password that decrypts the key; None means that the key is not encrypted.
        username: Name of the user; None means no login with a password.
        password: Password of the user; None means no login with a password.
        mechanism: How the client logs in: "SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN" or
            "OAUTHBEARER".
        tls: Whether connections use TLS. Without TLS, use a network that nobody else can read.
        verify_hostname: Whether the name in a broker's certificate must be the name in its address.
        token: Function that returns an access token, such as `ClientCredentials(...)` or
            `TokenFile(...)`. The client then logs in with OAUTHBEARER. None means no token.

    Raises:
        ConfigurationError: If options contradict each other, or if a file cannot be read.

    Examples:
        >>> bucketlog.Security(username="ann", password="secret")
        Security(ca_file=None, ..., username='ann', mechanism='SCRAM-SHA-512', tls=True, ...)
    """

    ca_file: FilePath | None = None
    certificate_file: FilePath | None = None
    key_file: FilePath | None = None
    key_password: str | None = field(default=None, repr=False)
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    mechanism: Mechanism = DEFAULT_MECHANISM
    tls: bool = True
    verify_hostname: bool = True
    token: TokenSource | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.mechanism not in MECHANISMS:
            raise ConfigurationError(
                f"the mechanism {self.mechanism!r} is not supported",
                remedy=f"choose one of {', '.join(MECHANISMS)}",
            )
        if self.username is not None and self.password is None:
            raise ConfigurationError(
                f"user {self.username!r} has no password", remedy="give the password, too"
            )
        if self.password is not None and self.username is None:
            raise ConfigurationError("a password without a user", remedy="give the username, too")
        self._check_token()
        if (self.certificate_file is None) != (self.key_file is None):
            raise ConfigurationError(
                "a certificate without its key, or a key without its certificate",
                remedy="give certificate_file and key_file",
            )
        if not self.tls:
            self._check_without_tls()
        for file in (self.ca_file, self.certificate_file, self.key_file):
            _check_readable(file)

    def _check_token(self) -> None:
        if self.token is None:
            if self.mechanism == OAUTHBEARER:
                raise ConfigurationError(
                    "OAUTHBEARER without a token", remedy="give token, or choose a mechanism"
                )
            return
        if self.username is not None or self.mechanism not in (DEFAULT_MECHANISM, OAUTHBEARER):
            raise ConfigurationError(
                "a token, and also a user or a mechanism for passwords", remedy="leave one out"
            )
        object.__setattr__(self, "mechanism", OAUTHBEARER)

    def _check_without_tls(self) -> None:
        if self.token is not None:
            raise ConfigurationError(
                "OAUTHBEARER without TLS would send the token readable for the network",
                remedy="use TLS",
            )
        if self.username is None:
            raise ConfigurationError(
                "neither TLS nor a login", remedy="leave out security, or give a username"
            )
        if self.mechanism == "PLAIN":
            raise ConfigurationError(
                "PLAIN without TLS would send the password readable for the network",
                remedy="use TLS, or a SCRAM mechanism",
            )
        if self.ca_file is not None or self.certificate_file is not None:
            raise ConfigurationError(
                "certificates without TLS", remedy="leave out tls=False, or the certificates"
            )

    @property
    def has_login(self) -> bool:
        """Whether the client logs in, with a password or a token."""
        return self.username is not None or self.token is not None

    @property
    def protocol(self) -> str:
        """Kafka's name of the security protocol: SSL, SASL_SSL or SASL_PLAINTEXT."""
        if not self.has_login:
            return "SSL"
        return "SASL_SSL" if self.tls else "SASL_PLAINTEXT"

    def librdkafka(self) -> dict[str, Any]:
        """Return the same settings under librdkafka's names.

        Returns:
            The settings by their names. They contain the password.
        """
        found: dict[str, Any] = {"security.protocol": self.protocol}
        if self.tls:
            found["enable.ssl.certificate.verification"] = True
            found["ssl.endpoint.identification.algorithm"] = (
                "https" if self.verify_hostname else "none"
            )
        files = {
            "ssl.ca.location": self.ca_file,
            "ssl.certificate.location": self.certificate_file,
            "ssl.key.location": self.key_file,
        }
        found |= {name: fspath(file) for name, file in files.items() if file is not None}
        if self.key_password is not None:
            found["ssl.key.password"] = self.key_password
        if self.token is not None:
            found |= {
                "sasl.mechanism": self.mechanism,
                "oauth_cb": librdkafka_callback(self.token),
            }
        if self.username is not None:
            found |= {
                "sasl.mechanism": self.mechanism,
                "sasl.username": self.username,
                "sasl.password": self.password,
            }
        return found

    def ssl_context(self) -> ssl.SSLContext:
        """Return a TLS context with the certificates of these files.

        Returns:
            A context that verifies certificates, and refuses versions before TLS 1.2.

        Raises:
            ConfigurationError: If a file cannot be used. The error names the file.
        """
        try:
            context = ssl.create_default_context(
                cafile=None if self.ca_file is None else fspath(self.ca_file)
            )
        except ssl.SSLError as error:
            raise ConfigurationError(
                f"the CA file {self.ca_file} has no certificates in PEM ({error.reason})",
                remedy="give the file with the certificate of the authority",
            ) from error
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.check_hostname = self.verify_hostname
        if self.certificate_file is None or self.key_file is None:
            return context
        try:
            # Without a password, OpenSSL would ask the terminal for it.
            context.load_cert_chain(
                self.certificate_file, self.key_file, password=self.key_password or ""
            )
        except (ssl.SSLError, ValueError) as error:
            reason = getattr(error, "reason", None) or "not in PEM, or of another key"
            raise ConfigurationError(
                f"the certificate {self.certificate_file} and the key {self.key_file} cannot be "
                f"used ({reason})",
                remedy="give a pair that belongs together, in PEM, and the key's password if it "
                "has one",
            ) from None
        return context


def _check_readable(file: FilePath | None) -> None:
    if file is None:
        return
    try:
        Path(file).open("rb").close()
    except OSError as error:
        raise ConfigurationError(
            f"the file {fspath(file)} cannot be read: {error.strerror}",
            remedy="correct its path or its permissions",
        ) from error
