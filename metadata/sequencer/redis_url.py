"""Redis URLs, and the clients that they mean (docs/redis.md).

    redis://[user:password@]host[:port][/db]                      one server; rediss:// with TLS
    unix:///path                                                  one server on this machine
    redis+sentinel://[user:password@]host[:port][,…]/service[/db] the primary that sentinels name
    redis+cluster://[user:password@]host[:port][,…]               the owner of the shard's slot

`rediss+sentinel://` and `rediss+cluster://` are with TLS (`redis_tls.py`). Options are in the
query, as redis-py has them (`ssl_ca_certs`, `ssl_certfile`, `ssl_keyfile`, …); `sentinel_username`
and `sentinel_password` are for the sentinels. Invariant: no password is ever shown in an error.
"""

from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from redis.asyncio import Redis
from redis.asyncio.connection import AbstractConnection, Connection, SSLConnection, parse_url
from redis.exceptions import RedisError

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.metadata.sequencer.endpoint import Endpoint
from bucketlog.metadata.sequencer.redis_primary import (
    Address,
    ClusterLocator,
    Locator,
    SentinelLocator,
)
from bucketlog.metadata.sequencer.redis_server import PrimaryPool
from bucketlog.metadata.sequencer.redis_tls import RedisTls
from bucketlog.metadata.sequencer.valkey_process import USER

REDIS_PORT, SENTINEL_PORT = 6379, 26379
REMEDY = (
    "use redis://host:port, rediss:// with TLS, unix:///path, redis+sentinel://host:port/service "
    "or redis+cluster://host:port"
)
_SENTINEL, _CLUSTER = "+sentinel", "+cluster"
_KIND = "connection_class"


def connect_redis(url: str, *, timeout_ms: int, max_connections: int = 16) -> Redis:
    """A client of the primary. Calls beyond `max_connections` wait for their turn, as long as they
    would for an answer. Raises `ConfigurationError`."""
    timeout_s = timeout_ms / 1000
    ours: dict[str, Any] = {
        "socket_timeout": timeout_s,
        "socket_connect_timeout": timeout_s,
        "decode_responses": False,
        "protocol": 2,  # a new connection asks nothing, unless there is a login
        "driver_info": None,
    }
    try:
        server, locator = _parse_locator(url, ours)
        pool = PrimaryPool(
            locator=locator, max_connections=max_connections, timeout=timeout_s, **server
        )
        pool.make_connection()  # refuses options that there are not
    except (ValueError, TypeError, RedisError) as error:
        raise ConfigurationError(
            f"Redis URL {_without_password(url)!r} is not understood: {error}", remedy=REMEDY
        ) from error
    return Redis.from_pool(pool)


def connect_endpoint(
    endpoint: Endpoint, *, timeout_ms: int, connect_timeout_ms: int, max_connections: int = 16
) -> Redis:
    """A client of a Valkey that a broker started. It does not use the configured URL."""
    return Redis.from_pool(
        PrimaryPool(
            max_connections=max_connections,
            timeout=timeout_ms / 1000,
            host=endpoint.host,
            port=endpoint.port,
            username=USER,
            password=endpoint.password,
            socket_timeout=timeout_ms / 1000,
            socket_connect_timeout=connect_timeout_ms / 1000,
            decode_responses=False,
            protocol=2,
            driver_info=None,
        )
    )


def _parse_locator(url: str, ours: dict[str, Any]) -> tuple[dict[str, Any], Locator | None]:
    """Return the arguments of connections to the server, and the locator that finds the server.
    None: the URL names the server."""
    parts = urlsplit(url)
    scheme, login = parts.scheme, parts.netloc.rpartition("@")[0]
    options = parse_qsl(parts.query)
    if not scheme.endswith((_SENTINEL, _CLUSTER)):
        return _with_tls({**parse_url(url), **ours}), None
    plain, _, kind = scheme.partition("+")
    if plain not in ("redis", "rediss"):
        raise ValueError(f"unknown scheme {scheme}")
    asked_login = {name: text for name, text in options if name.startswith("sentinel_")}
    query = urlencode([(name, text) for name, text in options if name not in asked_login])
    service, _, db = unquote(parts.path.strip("/")).partition("/")
    at = f"{login}@" if login else ""
    server = _with_tls({**parse_url(f"{plain}://{at}unknown/{db}?{query}"), **ours})
    if f"+{kind}" == _CLUSTER:
        if service or asked_login:
            raise ValueError("a Redis Cluster has no databases and no sentinels")
        seeds = _addresses(parts.netloc, REDIS_PORT)
        return server, ClusterLocator(seeds, lambda address: _client(server, address))
    if not service:
        raise ValueError("the name of the service is missing")
    own = {name.removeprefix("sentinel_"): text for name, text in asked_login.items()}
    if own.keys() - {"username", "password"}:
        raise ValueError("sentinels have sentinel_username and sentinel_password")
    not_theirs = ("username", "password", "db")
    of_sentinels = {name: value for name, value in server.items() if name not in not_theirs} | own
    sentinels = _addresses(parts.netloc, SENTINEL_PORT)
    return server, SentinelLocator(
        sentinels, service, lambda address: _client(of_sentinels, address)
    )


def _with_tls(values: dict[str, Any]) -> dict[str, Any]:
    """Values of a pool, from the values of its connections."""
    kind = values.get(_KIND, Connection)
    if kind is not SSLConnection:
        return {**values, "may_need_tls": kind is Connection}
    options = SSLConnection(**{name: text for name, text in values.items() if name != _KIND})
    return {**values, "tls": RedisTls(options.ssl_context)}


def _addresses(netloc: str, port: int) -> list[Address]:
    found = []
    for place in netloc.rpartition("@")[2].split(","):
        one = urlsplit(f"//{place}")
        if not one.hostname:
            raise ValueError("a host is missing")
        found.append(Address(one.hostname, one.port or port))
    return found


def _client(values: dict[str, Any], address: Address) -> Redis:
    """Return a client of one server that is asked for the primary."""
    own = {**values, "host": address.host, "port": address.port}
    connection: type[AbstractConnection] = own.pop("connection_class", Connection)
    return Redis.from_pool(
        PrimaryPool(
            connection_class=connection,
            max_connections=2,
            timeout=own["socket_timeout"],
            **own,
        )
    )


def _without_password(url: str) -> str:
    parts = urlsplit(url)
    _, at, places = parts.netloc.rpartition("@")
    query = "&".join(name for name, _ in parse_qsl(parts.query))
    return parts._replace(netloc=f"***{at}{places}" if at else places, query=query).geturl()
