"""The broker's settings for connections of clients and of the HTTP port: a part of
`BrokerSettings`."""

from pydantic import Field
from pydantic_settings import BaseSettings

from bucketlog.stateless_broker.settings.types import Positive


class ConnectionSettings(BaseSettings):
    connections_max: Positive = Field(
        10_000,
        description="max.connections. At the limit, a new connection replaces an idle connection "
        "of the address with the most connections. A broker accepts fewer if its limit of open "
        "files is too small.",
    )
    connections_per_address_max: Positive = Field(5_000, description="max.connections.per.ip")
    connections_per_address_per_s_max: Positive = Field(
        1_000,
        description="New connections per second from one address; twice this number in a burst.",
    )
    connections_idle_ms_max: Positive = Field(
        600_000,
        description="connections.max.idle.ms",
    )
    connections_keepalive_ms: Positive = Field(
        60_000, description="Time without a byte before TCP keepalive probes the client."
    )
    listen_backlog_size: Positive = Field(1_024, description="socket.listen.backlog.size")
    closing_lines_per_minute: Positive = Field(
        60,
        description="Log lines per minute about connections that the broker closed, for example "
        "after bad requests. Further connections are counted.",
    )
    open_files_reserved: Positive = Field(
        256,
        description="File descriptors that are kept free of client and HTTP connections, for "
        "Redis, the bucket and files. If the limit of open files is too small for "
        "connections_max, the broker accepts fewer connections.",
    )
    http_connections_max: Positive = Field(
        100,
        description="Limit of connections to the HTTP port. At the limit, a new connection "
        "replaces the one that has waited longest for a request.",
    )
    http_request_ms_max: Positive = Field(
        10_000,
        description="Limit of the time from the first byte of an HTTP request, or from the start "
        "of the connection, to the end of the response.",
    )
    http_idle_ms_max: Positive = Field(
        60_000,
        description="How long a connection to the HTTP port may wait for its next request.",
    )
    http_header_bytes_max: Positive = Field(
        16_384, description="Limit of the header of an HTTP request, with its first line."
    )
