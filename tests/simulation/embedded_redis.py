"""Valkeys that brokers run, in the simulation: each is a server that ends with its broker, and that
brokers find by the claim that names it.

Invariant: a broker reaches these servers on ways of their own, so that the configured Redis may be
out of reach while they are not.
"""

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import cast

from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError

from bucketlog.metadata.sequencer.endpoint import Endpoint
from bucketlog.metadata.sequencer.scripts import SequencerVerb
from tests.simulation.network import Network, Way
from tests.simulation.redis_client import RedisClient
from tests.simulation.redis_servers import Connection, Server

HOST = "simulated"
TIMEOUT_S = 1.0
FIRST_DATABASE, DATABASES = 3, 12
"""Databases after those of the configured Redis. New servers reuse the databases of ended ones."""


class SimulatedValkey:
    """Implements `StartedRedis`."""

    def __init__(self, server: Server, endpoint: Endpoint, owner: str) -> None:
        self.server = server
        self.endpoint = endpoint
        self.owner = owner
        self.is_running = True

    def end(self) -> None:
        if self.is_running:
            self.is_running = False
            self.server.restart([])

    async def stop(self) -> str:
        self.end()
        return ""


class Valkeys:
    """All that were started in a run, by port."""

    def __init__(self, redis: Path, network: Network, random: Random) -> None:
        self._redis = redis
        self._random = random
        self.network = network
        self.started: list[SimulatedValkey] = []

    def start(self, owner: str) -> SimulatedValkey:
        assert not any(one.is_running and one.owner == owner for one in self.started)
        number = len(self.started)
        database = FIRST_DATABASE + number % DATABASES
        server = Server(
            Connection(self._redis, database),
            f"valkey{number}",
            lambda: f"{self._random.getrandbits(160):040x}",
        )
        endpoint = Endpoint(HOST, number + 1, f"{self._random.getrandbits(256):064x}")
        self.started.append(SimulatedValkey(server, endpoint, owner))
        self.network.trace.count("embedded: a Valkey was started")
        return self.started[-1]

    def at(self, endpoint: Endpoint) -> SimulatedValkey:
        return self.started[endpoint.port - 1]

    def running(self) -> list[SimulatedValkey]:
        return [one for one in self.started if one.is_running]

    def end_of(self, owner: str) -> None:
        """The broker's process has ended."""
        for one in self.started:
            if one.owner == owner:
                one.end()


class SimulatedEmbedded:
    """Implements `EmbeddedRedis` for one broker process."""

    def __init__(self, name: str, valkeys: Valkeys, verbs: dict[str, SequencerVerb]) -> None:
        self._name = name
        self._valkeys = valkeys
        self._way = Way(0.0002, 0.001)
        self._verbs = verbs
        self._clients: list[RedisClient] = []

    async def start(self) -> SimulatedValkey:
        return self._valkeys.start(self._name)

    def connect(self, endpoint: Endpoint) -> Redis:
        found = self._valkeys.at(endpoint)
        client = MortalClient(
            self._name,
            self._valkeys.network,
            self._way,
            lambda: found.server,
            timeout_s=TIMEOUT_S,
            verbs=self._verbs,
        )
        client.is_alive = lambda: found.is_running
        self._clients.append(client)
        return cast(Redis, client)

    async def is_refused(self, endpoint: Endpoint) -> bool:
        return not self._valkeys.at(endpoint).is_running

    def end_with_process(self) -> None:
        self._valkeys.end_of(self._name)

    def lose_lifelines(self) -> None:
        """The process has ended."""
        for client in self._clients:
            client.lose_lifeline()


class MortalClient(RedisClient):
    """A client of a server whose process may end."""

    is_alive: Callable[[], bool]

    async def request(self, label: str, do: Callable[[Server], object]) -> object:
        def unless_dead(server: Server) -> object:
            if not self.is_alive():
                raise RedisConnectionError("connection refused")
            return do(server)

        return await super().request(label, unless_dead)
