"""The broker's settings for listeners with the protocol SSL: a part of `BrokerSettings`."""

from enum import StrEnum
from pathlib import Path

from pydantic import Field, field_validator, model_validator
from pydantic_settings import BaseSettings

from bucketlog.stateless_broker.settings.principal_rules import PrincipalRule, read_principal_rules
from bucketlog.stateless_broker.settings.types import NotNegative, Positive


class TlsVersion(StrEnum):
    TLS_1_2 = "TLSv1.2"
    TLS_1_3 = "TLSv1.3"


class ClientAuth(StrEnum):
    """The use of clients' certificates. A certificate that a client presents must be valid."""

    NONE = "none"
    REQUESTED = "requested"
    REQUIRED = "required"


class TlsSettings(BaseSettings):
    ssl_certificate_file: Path | None = Field(
        None,
        description="PEM file with the certificate of SSL listeners, followed by the certificates "
        "of its issuers, without the root (ssl.keystore.certificate.chain; docs/tls.md).",
    )
    ssl_key_file: Path | None = Field(
        None, description="PEM file with the key of the certificate (ssl.keystore.key)."
    )
    ssl_key_password_file: Path | None = Field(
        None,
        description="File with the password of the key, in its first line (ssl.key.password). "
        "Default: the key is not encrypted.",
    )
    ssl_ca_file: Path | None = Field(
        None,
        description="PEM file with the certificates that issue those of clients "
        "(ssl.truststore.certificates).",
    )
    ssl_client_auth: ClientAuth = Field(
        ClientAuth.NONE,
        description="ssl.client.auth: none, requested or required. A certificate that a client "
        "presents must be issued by one in ssl_ca_file.",
    )
    ssl_principal_mapping_rules: str = Field(
        "DEFAULT",
        description="ssl.principal.mapping.rules (KIP-371): from the subject of a client's "
        "certificate to the name of a user.",
    )
    ssl_protocol_min: TlsVersion = Field(
        TlsVersion.TLS_1_2,
        description="ssl.enabled.protocols: the lowest accepted version, TLSv1.2 or TLSv1.3.",
    )
    ssl_cipher_suites: str | None = Field(
        None,
        description="ssl.cipher.suites, for TLS 1.2: an OpenSSL cipher list. Default: Python's.",
    )
    ssl_handshake_ms_max: Positive = Field(
        10_000, description="A connection whose TLS handshake takes longer is closed."
    )
    ssl_reload_interval_ms: NotNegative = Field(
        10_000,
        description="Interval of checks whether certificate, key or CA files have changed; "
        "0: only at SIGHUP.",
    )

    @field_validator("ssl_principal_mapping_rules")
    @classmethod
    def _rules_are_sound(cls, text: str) -> str:
        read_principal_rules(text)
        return text

    @model_validator(mode="after")
    def _files_fit(self) -> "TlsSettings":
        if self.ssl_client_auth is not ClientAuth.NONE and self.ssl_ca_file is None:
            raise ValueError(
                f"ssl_client_auth={self.ssl_client_auth} needs BUCKETLOG_SSL_CA_FILE: name the "
                "certificates that issue those of clients"
            )
        return self

    @property
    def principal_rules(self) -> tuple[PrincipalRule, ...]:
        return read_principal_rules(self.ssl_principal_mapping_rules)
