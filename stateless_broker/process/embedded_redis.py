"""The Valkey of this broker as a child process, and connections to the Valkeys of other brokers."""

import asyncio

from redis.asyncio import Redis

from bucketlog.metadata.sequencer.endpoint import Endpoint
from bucketlog.metadata.sequencer.redis_url import connect_endpoint
from bucketlog.metadata.sequencer.valkey_process import (
    ValkeyProcess,
    ValkeySettings,
    start_valkey,
)
from bucketlog.stateless_broker.settings.broker import BrokerSettings

UNSPECIFIED = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""A broker that listens on all addresses and advertises none has no brokers on other machines."""


class ValkeyProcesses:
    """Implements `EmbeddedRedis`."""

    def __init__(self, settings: BrokerSettings) -> None:
        self._settings = settings

    async def start(self) -> ValkeyProcess:
        """Start this broker's Valkey. Raises `SequencerUnavailableError` and
        `ConfigurationError`."""
        return await start_valkey(valkey_settings(self._settings))

    def connect(self, endpoint: Endpoint) -> Redis:
        return connect_endpoint(
            endpoint,
            timeout_ms=self._settings.redis_timeout_ms,
            connect_timeout_ms=self._settings.sequencer_probe_timeout_ms,
        )

    async def is_refused(self, endpoint: Endpoint) -> bool:
        """Return whether the machine refuses the connection, so that nothing listens there."""
        try:
            _, writer = await asyncio.open_connection(endpoint.host, endpoint.port)
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
        writer.close()
        return False


def valkey_settings(settings: BrokerSettings) -> ValkeySettings:
    """Return the settings of this broker's Valkey: its own address, and the address for others.
    Pure."""
    first = settings.listener_specs[0]
    bind = settings.embedded_redis_host or first.host
    host = settings.embedded_redis_advertised_host or first.advertised_host or bind
    return ValkeySettings(
        bind=bind,
        host=UNSPECIFIED.get(host, host),
        port=settings.embedded_redis_port,
        memory_bytes_max=settings.embedded_redis_bytes_max,
    )
