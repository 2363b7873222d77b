"""The broker's settings for logins (SASL): a part of `BrokerSettings`."""

from pathlib import Path

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings

from bucketlog.stateless_broker.setting_types import NotNegative, Positive

PLAIN = "PLAIN"
MECHANISMS = ("SCRAM-SHA-512", "SCRAM-SHA-256", PLAIN)


class LoginSettings(BaseSettings):
    sasl_mechanisms: str = Field(
        "SCRAM-SHA-512,SCRAM-SHA-256",
        description="sasl.enabled.mechanisms: SCRAM-SHA-512, SCRAM-SHA-256 and PLAIN, separated by "
        "commas. PLAIN is offered by SASL_SSL listeners only (docs/logins.md).",
    )
    credentials_key_file: Path | None = Field(
        None,
        description="File with the keys that encrypt SCRAM credentials in the log: one key per "
        "line, in hexadecimal. The first key encrypts, all of them decrypt. SASL listeners need "
        "it.",
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
        2, description="Limit of passwords of PLAIN that are checked at the same time."
    )
    plain_remembered_ms: NotNegative = Field(
        60_000,
        description="How long a right password of PLAIN is remembered, so that the next login of "
        "the user is cheap.",
    )
    scram_credentials_max: Positive = Field(
        10_000, description="Limit of SCRAM credentials in the cluster."
    )
    user_bytes_max: Positive = Field(1_024, description="Limit of the name of a user.")

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

    def mechanisms(self, *, is_tls: bool) -> tuple[str, ...]:
        """The mechanisms of a listener with or without TLS."""
        return tuple(name for name in _split(self.sasl_mechanisms) if is_tls or name != PLAIN)


def _split(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each.strip() for each in text.split(",") if each.strip()))
