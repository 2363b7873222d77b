"""The broker's settings for the addresses that it listens on: a part of `BrokerSettings`."""

from pydantic import Field, field_validator, model_validator
from pydantic_settings import BaseSettings

from bucketlog.stateless_broker.settings.listener_addresses import (
    DEFAULT_NAME,
    ListenerProtocol,
    ListenerSpec,
    advertise,
    read_listeners,
)
from bucketlog.stateless_broker.settings.types import Port


class ListenerSettings(BaseSettings):
    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: Port = Field(9092, description="Port to listen on; 0 for any free one.")
    advertised_host: str | None = Field(None, description="Address clients use (default: host).")
    advertised_port: Port | None = Field(None, description="Port clients use (default: port).")
    listeners: str | None = Field(
        None,
        description="listeners: NAME:PROTOCOL://HOST:PORT, separated by commas. PROTOCOL is "
        "PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL, and may be left out if it is also the name. "
        "Without HOST: all addresses. Replaces host and port (docs/tls.md). Default: one "
        "PLAINTEXT listener.",
    )
    advertised_listeners: str | None = Field(
        None,
        description="advertised.listeners: NAME://HOST:PORT, the address that clients use, for "
        "each of `listeners`. Default: the addresses in `listeners`.",
    )
    http_host: str = Field("127.0.0.1", description="Address of /healthz, /readyz, /metrics.")
    http_port: Port = Field(0, description="Port of /healthz, /readyz, /metrics; 0 for any.")

    @field_validator("listeners")
    @classmethod
    def _listeners_are_sound(cls, text: str | None) -> str | None:
        if text is not None:
            read_listeners(text)
        return text

    @model_validator(mode="after")
    def _listeners_fit(self) -> "ListenerSettings":
        if self.listeners is None:
            if self.advertised_listeners is not None:
                raise ValueError(
                    "advertised_listeners needs listeners: set BUCKETLOG_LISTENERS, too"
                )
            return self
        for name in ("advertised_host", "advertised_port"):
            if getattr(self, name) is not None:
                raise ValueError(
                    f"{name} has no effect with listeners: remove it, and name the address in "
                    "BUCKETLOG_ADVERTISED_LISTENERS"
                )
        try:
            advertise(read_listeners(self.listeners), self.advertised_listeners)
        except ValueError as error:
            raise ValueError(f"advertised_listeners: {error}") from None
        return self

    @property
    def listener_specs(self) -> tuple[ListenerSpec, ...]:
        """The listeners, at least one, in the order of `listeners`."""
        if self.listeners is not None:
            return advertise(read_listeners(self.listeners), self.advertised_listeners)
        return (
            ListenerSpec(
                DEFAULT_NAME,
                ListenerProtocol.PLAINTEXT,
                self.host,
                self.port,
                self.advertised_host,
                self.advertised_port,
            ),
        )
