"""Where the primary is, as those who were asked say; Redis URLs."""

from collections.abc import Mapping
from typing import Any, cast

import pytest
from redis.asyncio import Redis
from redis.asyncio.connection import Connection, SSLConnection, UnixDomainSocketConnection
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ResponseError

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.metadata.sequencer.redis_primary import (
    Address,
    ClusterLocator,
    SentinelLocator,
)
from bucketlog.metadata.sequencer.redis_server import PrimaryPool
from bucketlog.metadata.sequencer.redis_url import connect_redis

A, B, C = Address("a", 1), Address("b", 2), Address("c", 3)
OLD, NEW = Address("old", 6379), Address("new", 6379)


class Told:
    """In a client's place: what one server says."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    async def sentinel_master(self, service: str) -> Mapping[str, Any]:
        return cast(Mapping[str, Any], self._given())

    async def execute_command(self, *command: str) -> Any:
        assert command == ("CLUSTER", "SLOTS")
        return self._given()

    def _given(self) -> Any:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


def told(answers: Mapping[Address, Any]) -> Any:
    return lambda address: cast(Redis, Told(answers[address]))


def state(address: Address, config_epoch: int) -> dict[str, Any]:
    return {"ip": address.host, "port": address.port, "config-epoch": config_epoch}


def slots(owner: Address | None, *others: Address) -> list[Any]:
    """One range of all slots; None: the node does not know its own name."""
    own = [b"", 7] if owner is None else [owner.host.encode(), owner.port]
    return [[0, 16383, own, *([node.host.encode(), node.port] for node in others)]]


async def test_the_newest_failover_counts() -> None:
    answers = {A: state(OLD, 1), B: state(NEW, 2), C: state(OLD, 1)}
    locator = SentinelLocator([A, B], "log", told(answers))
    assert await locator.locate("key") == NEW


async def test_sentinels_that_do_not_answer_are_passed_over() -> None:
    answers = {A: RedisConnectionError("away"), B: OSError("away"), C: state(NEW, 1)}
    locator = SentinelLocator([A, B, C], "log", told(answers))
    assert await locator.locate("key") == NEW


async def test_where_no_sentinel_knows_the_reason_is_told() -> None:
    locator = SentinelLocator([A], "log", told({A: ResponseError("No such master")}))
    with pytest.raises(ResponseError, match="No such master"):
        await locator.locate("key")
    locator = SentinelLocator([A], "log", told({A: OSError("away")}))
    with pytest.raises(RedisConnectionError, match="no sentinel answers: away"):
        await locator.locate("key")


async def test_the_owner_that_most_nodes_name() -> None:
    answers = {A: slots(NEW), B: slots(NEW), C: slots(OLD)}
    assert await ClusterLocator([C, A, B], told(answers)).locate("{x}") == NEW


async def test_a_node_that_does_not_know_its_own_name_is_where_it_was_asked() -> None:
    locator = ClusterLocator([A], told({A: slots(None)}))
    assert await locator.locate("{x}") == Address("a", 7)


async def test_nodes_that_were_learned_are_asked_when_the_seed_is_gone() -> None:
    answers: dict[Address, Any] = {A: slots(A, B), B: slots(B)}
    locator = ClusterLocator([A], told(answers))
    assert await locator.locate("{x}") == A
    answers[A] = RedisConnectionError("away")
    cast(Any, locator)._clients.clear()
    assert await locator.locate("{x}") == B


async def test_a_slot_that_nobody_owns() -> None:
    locator = ClusterLocator([A], told({A: []}))
    with pytest.raises(RedisConnectionError, match="nobody owns slot"):
        await locator.locate("{x}")


# URLs --------------------------------------------------------------------------------------------


def pool_of(url: str) -> tuple[PrimaryPool, Connection]:
    pool = connect_redis(url, timeout_ms=1000).connection_pool
    assert isinstance(pool, PrimaryPool)
    return pool, cast(Connection, cast(Any, pool).make_connection())


def clients_of(pool: PrimaryPool) -> list[Connection]:
    """What the sentinels are asked by, or the seeds."""
    locator = cast(Any, pool)._locator
    if isinstance(locator, ClusterLocator):
        own = cast(Any, locator)
        clients = [own._make_client(seed) for seed in own._seeds]
    else:
        clients = locator._sentinels
    return [client.connection_pool.make_connection() for client in clients]


def test_one_server() -> None:
    for url, kind in (
        ("redis://me:secret@h:7000/3", Connection),
        ("rediss://me:secret@h:7000/3", SSLConnection),
    ):
        _, connection = pool_of(url)
        assert type(connection).__bases__[-1] is kind
        assert (connection.host, connection.port, connection.db) == ("h", 7000, 3)
        assert (connection.username, connection.password) == ("me", "secret")
    _, connection = pool_of("unix:///a/b.sock")
    assert isinstance(cast(Any, connection), UnixDomainSocketConnection)


@pytest.mark.parametrize(("scheme", "kind"), [("redis", Connection), ("rediss", SSLConnection)])
def test_sentinels(scheme: str, kind: type[Connection]) -> None:
    options = "?sentinel_username=watch&sentinel_password=other"
    if kind is SSLConnection:
        options += "&ssl_check_hostname=false"
    pool, connection = pool_of(f"{scheme}+sentinel://me:secret@h1,h2:27000/log/3{options}")
    assert type(connection).__bases__[-1] is kind
    assert (connection.username, connection.password, connection.db) == ("me", "secret", 3)
    sentinels = clients_of(pool)
    assert [(one.host, one.port) for one in sentinels] == [("h1", 26379), ("h2", 27000)]
    for one in sentinels:
        assert type(one).__bases__[-1] is kind
        assert (one.username, one.password, one.db) == ("watch", "other", 0)
        if isinstance(one, SSLConnection):
            assert one.check_hostname is False


@pytest.mark.parametrize(("scheme", "kind"), [("redis", Connection), ("rediss", SSLConnection)])
def test_a_redis_cluster(scheme: str, kind: type[Connection]) -> None:
    pool, connection = pool_of(f"{scheme}+cluster://me:secret@h1,[::1]:7000")
    assert type(connection).__bases__[-1] is kind
    seeds = clients_of(pool)
    assert [(one.host, one.port) for one in seeds] == [("h1", 6379), ("::1", 7000)]
    for one in (connection, *seeds):
        assert type(one).__bases__[-1] is kind
        assert (one.username, one.password, one.db) == ("me", "secret", 0)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://h", "must specify one of the following schemes"),
        ("redis+sentinel://u:secret@h:26379", "the name of the service is missing"),
        ("redis+sentinel://h/log?sentinel_db=3", "sentinels have sentinel_username"),
        ("redis+cluster://h:7000/3", "no databases"),
        ("redis+cluster://u:secret@h:7000,:7001", "a host is missing"),
        ("redis+cluster://h:seven", "Port could not be cast"),
        ("unix+cluster:///a", "unknown scheme unix"),
        ("redis://u:secret@h?no_such_option=secret", "no_such_option"),
        ("redis://h?ssl_ca_certs=/x", "ssl_ca_certs"),
    ],
)
def test_urls_that_mean_nothing(url: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words) as caught:
        connect_redis(url, timeout_ms=1000)
    assert "secret" not in str(caught.value)
    assert "redis+sentinel://host:port/service" in caught.value.remedy
