"""A broker's Redis client: redis-py's methods as `metadata.sequencer` uses them, over the simulated
network."""

import asyncio
import hashlib
from collections.abc import Callable
from typing import Any

from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from bucketlog.metadata.sequencer.scripts import SequencerVerb, script_text
from tests.simulation.network import Errors, Network, Way
from tests.simulation.redis_servers import Server


def verbs_by_sha() -> dict[str, SequencerVerb]:
    return {
        hashlib.sha1(script_text(verb).encode(), usedforsecurity=False).hexdigest(): verb
        for verb in SequencerVerb
    }


class LifelineConnection:
    """Replaces a connection of redis-py, as far as a lifeline uses it."""

    def __init__(self, client: "RedisClient") -> None:
        self.incarnation = ""
        self._client = client
        self._server: Server | None = None
        self._is_open = True
        self._news = asyncio.Event()

    async def send_command(self, _: str, own: str, _announcements: str) -> None:
        self.incarnation = own.rpartition(":")[2]
        await self._client.request("subscribe", self._subscribe)

    def _subscribe(self, server: Server) -> None:
        if self._is_open:
            self._server = server
            server.hold_lifeline(self)

    def told(self) -> None:
        self._news.set()

    def ended(self) -> None:
        self._is_open = False
        self._news.set()

    async def read_response(self, **options: Any) -> Any:
        try:
            async with asyncio.timeout(options["timeout"]):
                await self._news.wait()
        except TimeoutError:
            return None
        self._news.clear()
        if not self._is_open:
            raise RedisConnectionError("the lifeline was closed")
        return [b"message"]

    def close(self) -> None:
        self.ended()
        if self._server is not None:
            self._server.drop_lifeline(self)

    async def disconnect(self, *, nowait: bool) -> None:
        self.close()


class LifelinePool:
    def __init__(self, client: "RedisClient") -> None:
        self._client = client

    async def get_connection(self) -> LifelineConnection:
        self._client.lifeline = LifelineConnection(self._client)
        return self._client.lifeline

    async def release(self, connection: LifelineConnection) -> None:
        pass


class RedisClient:
    """`server` says which one the broker's address leads to now."""

    def __init__(
        self,
        name: str,
        network: Network,
        way: Way,
        server: Callable[[], Server],
        *,
        timeout_s: float,
        verbs: dict[str, SequencerVerb],
    ) -> None:
        self._name = name
        self._network = network
        self._way = way
        self._server = server
        self._verbs = verbs
        self._errors = Errors(
            timeout_s,
            no_answer=lambda: RedisTimeoutError("no answer in time"),
            refused=lambda: RedisConnectionError("connection refused"),
        )
        self.connection_pool = LifelinePool(self)
        self.lifeline: LifelineConnection | None = None
        """The newest."""

    async def request(self, label: str, do: Callable[[Server], Any]) -> Any:
        server = self._server()
        trace = self._network.trace
        self._network.overhear(self._name, label, do)

        def arrive() -> Any:
            try:
                answer = do(server)
            except Exception as error:
                trace.add(self._name, f"{server.name} {label}: {error!r}")
                raise
            trace.add(self._name, f"{server.name} {label}: {_brief(answer)}")
            return answer

        return await self._network.request(self._way, label, arrive, self._errors, "redis")

    async def evalsha(self, sha: str, _count: int, *rest: Any) -> Any:
        verb = self._verbs[sha]
        return await self.request(
            _label(verb, _count, rest), lambda server: server.evalsha(verb, sha, (_count, *rest))
        )

    async def eval(self, text: str, _count: int, *rest: Any) -> Any:
        sha = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
        verb = self._verbs[sha]
        return await self.request(
            _label(verb, _count, rest),
            lambda server: server.eval(verb, text, sha, (_count, *rest)),
        )

    async def info(self, section: str) -> Any:
        return await self.request(f"info {section}", lambda server: server.info(section))

    async def sadd(self, key: str, value: str) -> Any:
        return await self.request("sadd", lambda server: server.command("SADD", key, value))

    async def hset(self, key: str, *, items: list[Any]) -> Any:
        return await self.request("hset", lambda server: server.command("HSET", key, *items))

    async def zadd(self, key: str, scores: dict[str, int]) -> Any:
        parts = [part for member, score in scores.items() for part in (score, member)]
        return await self.request("zadd", lambda server: server.command("ZADD", key, *parts))

    async def unlink(self, *keys: str) -> Any:
        return await self.request("unlink", lambda server: server.command("UNLINK", *keys))

    async def xread(self, streams: dict[str, str], *, count: int, block: int) -> Any:
        """One that blocks is asked once: the server answers when there is something."""
        ((key, after),) = streams.items()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + block / 1000
        server = self._server()

        def look() -> list[Any]:
            return list(server.read_stream(key, after, count))

        found = await self.request("xread", lambda _: look())
        written = asyncio.Event()
        while not found and (left_s := deadline - loop.time()) > 0:
            written.clear()
            server.on_visible.append(written.set)
            try:
                await asyncio.wait_for(written.wait(), left_s)
            except TimeoutError:
                break
            found = look()
        if not found:
            return []
        await asyncio.sleep(self._way.time(self._network.random))
        return [[key.encode(), found]]

    def lose_lifeline(self) -> None:
        if self.lifeline is not None:
            self.lifeline.close()

    async def aclose(self) -> None:
        pass


def _label(verb: SequencerVerb, keys: int, rest: tuple[Any, ...]) -> str:
    told = [str(part)[:12] for part in rest[keys : keys + 4] if not isinstance(part, bytes)]
    return f"{verb} {' '.join(told)}"


def _brief(answer: Any) -> str:
    if isinstance(answer, bytes):
        return repr(answer[:60])
    return repr(answer)[:80] if not isinstance(answer, list) else f"{len(answer)} entries"
