"""Whether a broker answers at an address: librdkafka would try until its timeout."""

from bucketlog.client.broker_connection import TRANSPORT, Address, open_connection
from bucketlog.client.kafka_errors import CHECK_ADDRESS
from bucketlog.client.security import Security
from bucketlog.log_format.errors import ConfigurationError, LogError

DEFAULT_PORT = 9092


TIMEOUT_S_MAX = 2_000_000.0
"""librdkafka counts milliseconds in 31 bits."""


def check_timeout(timeout_s: float) -> None:
    """Raises `ConfigurationError`."""
    if not 0 < timeout_s <= TIMEOUT_S_MAX:
        raise ConfigurationError(
            f"timeout_s is {timeout_s}",
            remedy=f"make it more than 0 and at most {TIMEOUT_S_MAX:.0f} seconds",
        )


def check_reachable(bootstrap: str, timeout_s: float, security: Security | None = None) -> None:
    """Connect to a broker, and log in if `security` has a login. Raises `LogError` at once, with
    the addresses; librdkafka would try until its timeout."""
    check_timeout(timeout_s)
    reasons = []
    for address in bootstrap.split(","):
        host, port = _host_and_port(address.strip())
        try:
            with open_connection((host, port), security, timeout_s) as connection:
                if security is not None and not security.has_login:
                    connection.is_served()
            return
        except OSError as error:
            reasons.append(f"{host}:{port}: {error.strerror or error}")
    raise LogError(
        f"no broker answers at {'; '.join(reasons)}",
        code="TRANSPORT",
        kafka_code=TRANSPORT,
        retriable=True,
        remedy=CHECK_ADDRESS,
    )


def _host_and_port(address: str) -> Address:
    scheme, separator, rest = address.partition("://")
    if separator:
        raise ConfigurationError(
            f"{address!r} is a URL, and brokers speak Kafka's protocol, not {scheme}",
            remedy=f"give host:port alone, as in {rest.strip('/') or 'localhost:9092'}",
        )
    host, colon, port = address.rpartition(":")
    if not colon or (address.startswith("[") and address.endswith("]")):
        host, port = address, str(DEFAULT_PORT)
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise ConfigurationError(
            f"{address!r} is not a broker address",
            remedy="give it as host:port, as in localhost:9092",
        )
    return host.strip("[]"), int(port)
