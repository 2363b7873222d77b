"""Certificates as OpenSSL takes them: loaded, and tried in their own handshake.

Invariant: a context that `load_tls` returns has served a handshake in memory. Its key fits, its
certificates are in order and valid now. Everything else is an error that names the file.
"""

import re
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.stateless_broker.settings.tls import ClientAuth, TlsSettings, TlsVersion

_CERTIFICATE = re.compile("-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
_VERIFY_MODES = {
    ClientAuth.NONE: ssl.CERT_NONE,
    ClientAuth.REQUESTED: ssl.CERT_OPTIONAL,
    ClientAuth.REQUIRED: ssl.CERT_REQUIRED,
}
_VERSIONS = {TlsVersion.TLS_1_2: ssl.TLSVersion.TLSv1_2, TlsVersion.TLS_1_3: ssl.TLSVersion.TLSv1_3}
HANDSHAKE_STEPS = 10


@dataclass(frozen=True, slots=True)
class LoadedTls:
    """A context with its certificates. `expires_s`: when the first of the presented certificates
    expires (Unix time)."""

    context: ssl.SSLContext
    expires_s: float


def load_tls(settings: TlsSettings) -> LoadedTls:
    """Reads files, and takes milliseconds. Raises `ConfigurationError`."""
    certificate, key = settings.ssl_certificate_file, settings.ssl_key_file
    assert certificate is not None, "settings with SSL listeners have a certificate"
    assert key is not None, "settings with SSL listeners have a key"
    password = _password(settings.ssl_key_password_file)
    context = _context(settings, certificate, key, password)
    if settings.ssl_ca_file is not None:
        _trust(context, settings.ssl_ca_file)
    context.verify_mode = _VERIFY_MODES[settings.ssl_client_auth]
    # Without a client's certificate, which the handshake in memory does not have.
    tried = _context(settings, certificate, key, password)
    return LoadedTls(context, _try_handshake(tried, certificate))


def _context(
    settings: TlsSettings, certificate: Path, key: Path, password: Callable[[], str]
) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.minimum_version = _VERSIONS[settings.ssl_protocol_min]
    if settings.ssl_cipher_suites is not None:
        try:
            context.set_ciphers(settings.ssl_cipher_suites)
        except ssl.SSLError as error:
            raise ConfigurationError(
                f"BUCKETLOG_SSL_CIPHER_SUITES: OpenSSL knows no cipher of "
                f"{settings.ssl_cipher_suites!r}",
                remedy="use an OpenSSL cipher list, as `openssl ciphers` shows it, or leave it out",
            ) from error
    _read("BUCKETLOG_SSL_CERTIFICATE_FILE", certificate)
    _read("BUCKETLOG_SSL_KEY_FILE", key)
    try:
        context.load_cert_chain(certificate, key, password)
    except ssl.SSLError as error:
        raise _wrong_pair(certificate, key, error) from error
    return context


def _wrong_pair(certificate: Path, key: Path, error: ssl.SSLError) -> ConfigurationError:
    if error.reason == "KEY_VALUES_MISMATCH":
        return ConfigurationError(
            f"the key in {key} is not that of the certificate in {certificate}",
            remedy="put the certificate's own key into BUCKETLOG_SSL_KEY_FILE",
        )
    if not _CERTIFICATE.search(_read("BUCKETLOG_SSL_CERTIFICATE_FILE", certificate)):
        return ConfigurationError(
            f"{certificate} holds no certificate",
            remedy="write the certificate and those of its issuers there, in PEM",
        )
    if "PRIVATE KEY" not in _read("BUCKETLOG_SSL_KEY_FILE", key):
        return ConfigurationError(f"{key} holds no key", remedy="write the key there, in PEM")
    reason = error.reason or str(error)
    return ConfigurationError(
        f"OpenSSL does not take the certificate in {certificate} with the key in {key}: {reason}",
        remedy="check both with `openssl x509` and `openssl pkey`; an encrypted key needs "
        "BUCKETLOG_SSL_KEY_PASSWORD_FILE with its password",
    )


def _password(file: Path | None) -> Callable[[], str]:
    """Return a function that gives the key's password. Without one, OpenSSL would ask at the
    terminal."""
    lines = _read("BUCKETLOG_SSL_KEY_PASSWORD_FILE", file).splitlines() if file else []
    password = lines[0] if lines else ""
    return lambda: password


def _trust(context: ssl.SSLContext, file: Path) -> None:
    text = _read("BUCKETLOG_SSL_CA_FILE", file)
    try:
        context.load_verify_locations(cadata="\n".join(_CERTIFICATE.findall(text)))
    except (ssl.SSLError, ValueError) as error:
        raise ConfigurationError(
            f"{file} holds no certificates that OpenSSL reads",
            remedy="write the certificates that issue those of clients there, in PEM",
        ) from error


def _read(setting: str, file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise ConfigurationError(
            f"{setting}: cannot read {file}: {error.strerror}",
            remedy="name a file that the broker may read",
        ) from error


def _try_handshake(server: ssl.SSLContext, certificate: Path) -> float:
    """Return when the first certificate of the file expires. The client trusts the last
    certificate, so all must be in order. Raises `ConfigurationError`."""
    text = _read("BUCKETLOG_SSL_CERTIFICATE_FILE", certificate)
    chain = _CERTIFICATE.findall(text)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    client.load_verify_locations(cadata=chain[-1])
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    there = server.wrap_bio(to_server, to_client, server_side=True)
    here = client.wrap_bio(to_client, to_server)
    try:
        _shake_hands(here, there)
    except ssl.SSLCertVerificationError as error:
        raise ConfigurationError(
            f"the certificate in {certificate} is not valid: {error.verify_message}",
            remedy="renew it; behind it, the file has its issuers, each issued by the next",
        ) from error
    except ssl.SSLError as error:
        raise ConfigurationError(
            f"OpenSSL cannot serve with the certificate in {certificate}: {error.reason}",
            remedy="check the certificate, its key, and BUCKETLOG_SSL_CIPHER_SUITES",
        ) from error
    issuers = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    issuers.load_verify_locations(cadata="\n".join(chain))
    presented = [here.getpeercert() or {}, *issuers.get_ca_certs()]
    return min(ssl.cert_time_to_seconds(str(each["notAfter"])) for each in presented)


def _shake_hands(client: ssl.SSLObject, server: ssl.SSLObject) -> None:
    """Run a handshake in memory. Raises `ssl.SSLError`."""
    for _ in range(HANDSHAKE_STEPS):
        is_done = True
        for side in (client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                is_done = False
        if is_done:
            return
    raise ssl.SSLError("the handshake does not end")
