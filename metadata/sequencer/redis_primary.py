"""Locators of the server that is the primary of the sequencer's keys.

All keys of a shard are in one hash slot (`redis_keys.py`), so there is one primary at a time,
however Redis is deployed: the server that a URL names, the one that the sentinels name, or the
owner of the slot in a Redis Cluster. Safety does not depend on the answers: the scripts find out if
a server is not the epoch's.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar, cast

from redis.asyncio import Redis
from redis.crc import key_slot
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

T = TypeVar("T")

ASKED_AT_ONCE = 16


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class Locator(Protocol):
    async def locate(self, key: str) -> Address:
        """Return the address of the primary that has `key`. Raises `RedisError`."""
        ...

    async def aclose(self) -> None: ...


MakeClient = Callable[[Address], Redis]


async def _answers(
    asked: Sequence[Awaitable[T]], whom: str, *, agreeing: Callable[[list[T]], int]
) -> list[T]:
    """Return answers as soon as more than half of all that were asked agree, otherwise all answers.
    `agreeing` counts the answers that agree. Raises the last error if nobody answers."""
    answers: list[T] = []
    last: Exception | None = None
    tasks = [asyncio.ensure_future(one) for one in asked]
    try:
        for task in asyncio.as_completed(tasks):
            try:
                answers.append(await task)
            except (RedisError, OSError, TimeoutError) as error:
                last = error
            if agreeing(answers) > len(tasks) // 2:
                break
    finally:
        for one in tasks:
            one.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    if answers:
        return answers
    if isinstance(last, RedisError):
        raise last
    raise RedisConnectionError(f"{whom}: {last}")


class SentinelLocator:
    """The primary of `service`, as the sentinels say: of several opinions the one of the newest
    failover counts."""

    def __init__(self, sentinels: Sequence[Address], service: str, make_client: MakeClient) -> None:
        self._sentinels = [make_client(address) for address in sentinels]
        self._service = service

    async def locate(self, key: str) -> Address:
        found = await _answers(
            [self._ask(sentinel) for sentinel in self._sentinels],
            "no sentinel answers",
            agreeing=len,
        )
        return max(found)[1]

    async def _ask(self, sentinel: Redis) -> tuple[int, Address]:
        state = cast(dict[str, Any], await cast(Any, sentinel).sentinel_master(self._service))
        return int(state["config-epoch"]), Address(str(state["ip"]), int(state["port"]))

    async def aclose(self) -> None:
        await asyncio.gather(*(sentinel.aclose() for sentinel in self._sentinels))


class ClusterLocator:
    """The owner of the key's slot, as most of the nodes that answer say. `seeds` are asked, and the
    nodes that were learned from them."""

    def __init__(self, seeds: Sequence[Address], make_client: MakeClient) -> None:
        self._seeds = seeds
        self._make_client = make_client
        self._clients: dict[Address, Redis] = {}
        self._learned: list[Address] = []

    async def locate(self, key: str) -> Address:
        slot = key_slot(key.encode())
        nodes = list(dict.fromkeys([*self._learned, *self._seeds]))[:ASKED_AT_ONCE]
        found = await _answers(
            [self._ask(node, slot) for node in nodes],
            "no node of the Redis Cluster answers",
            agreeing=lambda answers: _most_named(answers)[1],
        )
        self._learned = list(dict.fromkeys(node for _, others in found for node in others))
        owner, _ = _most_named(found)
        if owner is None:
            raise RedisConnectionError(f"nobody owns slot {slot} of the Redis Cluster")
        return owner

    async def _ask(self, node: Address, slot: int) -> tuple[Address | None, list[Address]]:
        """The owner, and all nodes of the answer."""
        client = self._clients.get(node)
        if client is None:
            client = self._clients[node] = self._make_client(node)
        ranges = await cast(Any, client).execute_command("CLUSTER", "SLOTS")
        owner, nodes = None, []
        for first, last, *members in ranges:
            found = [_address(member, node) for member in members]
            nodes += found
            if first <= slot <= last and found:
                owner = found[0]
        return owner, nodes

    async def aclose(self) -> None:
        await asyncio.gather(*(client.aclose() for client in self._clients.values()))


def _most_named(
    answers: Sequence[tuple[Address | None, list[Address]]],
) -> tuple[Address | None, int]:
    """The owner that most name, and how many do."""
    owners = Counter(owner for owner, _ in answers if owner is not None)
    return owners.most_common(1)[0] if owners else (None, 0)


def _address(member: Sequence[Any], asked: Address) -> Address:
    """Return a node's address. A node that does not know its own name has the address that was
    asked."""
    host = (member[0] or b"").decode()
    return Address(host if host not in ("", "?") else asked.host, int(member[1]))
