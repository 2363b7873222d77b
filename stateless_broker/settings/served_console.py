"""The broker's settings for the console on its HTTP port: a part of `BrokerSettings`.

`BUCKETLOG_CONSOLE_*` are settings of the console itself, so these begin with `http_console`.
"""

from pydantic import Field
from pydantic_settings import BaseSettings

from bucketlog.stateless_broker.settings.types import MIB, Positive


class ServedConsoleSettings(BaseSettings):
    console: bool = Field(
        False,
        description="Whether the HTTP port shows the console, read-only, under /console/ "
        "(docs/console.md#served-by-brokers). Of several workers, only the first does.",
    )
    http_console_allowed_hosts: str = Field(
        "",
        description="Further host names by which browsers may call the console, separated by "
        "commas; *.example.com: all names below; *: every name. Local names and http_host are "
        "always allowed.",
    )
    http_console_behind_tls_proxy: bool = Field(
        False,
        description="Whether only a proxy with TLS can reach the HTTP port. Then the console takes "
        "passwords on an address of the network. Without such a proxy, everyone on the network "
        "can read the passwords.",
    )
    http_console_requests_in_flight: Positive = Field(
        16,
        description="Limit of requests for the console that are answered at the same time: less "
        "than http_connections_max.",
    )
    http_console_response_ms_max: Positive = Field(
        60_000,
        description="Limit of the time from the login of a request for the console to the end of "
        "the response.",
    )
    http_console_response_bytes_max: Positive = Field(
        128 * MIB, description="Limit of the size of a response of the console."
    )
    http_console_start_ms_max: Positive = Field(
        600_000,
        description="A process of the console that is not ready after this time is ended, and "
        "started again.",
    )
    http_console_memory_bytes_max: Positive = Field(
        2048 * MIB, description="Address space of the process of the console."
    )

    @property
    def http_console_host_names(self) -> tuple[str, ...]:
        names = (each.strip() for each in self.http_console_allowed_hosts.split(","))
        return tuple(name for name in names if name)
