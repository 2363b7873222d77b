"""Turns of tenants on the event loop."""

from collections.abc import Callable

from bucketlog.stateless_broker.network.loop_share import LoopShare

MS = 1_000_000


class Loop:
    """Rounds of events that the test runs by itself."""

    def __init__(self) -> None:
        self.now_ns = 0
        self._soon: list[Callable[[], None]] = []
        self.share = LoopShare(5, now_ns=lambda: self.now_ns, call_soon=self._soon.append)

    def work(self, ms: int) -> None:
        def take() -> None:
            self.now_ns += ms * MS

        self.share.run(take)

    def next_round(self) -> None:
        due, self._soon[:] = list(self._soon), []
        for callback in due:
            callback()


class Client:
    """Sends requests of 2 ms, one after another."""

    def __init__(self, loop: Loop, name: str, seen: list[str]) -> None:
        self._loop, self._name, self._seen = loop, name, seen

    def take(self) -> None:
        while self._loop.share.has_turn(self.take):
            self._seen.append(self._name)
            self._loop.work(2)


def test_a_turn_is_bounded_and_the_next_follows() -> None:
    loop, seen = Loop(), list[str]()
    client = Client(loop, "a", seen)
    client.take()
    assert len(seen) == 3, "2 + 2 ms are less than 5 ms, so a third request begins"
    loop.next_round()
    assert len(seen) == 6
    assert loop.share.used_ns == 12 * MS


def test_all_connections_get_their_turn() -> None:
    loop, seen = Loop(), list[str]()
    clients = [Client(loop, name, seen) for name in "abc"]
    for client in clients:
        client.take()
    assert seen == ["a"] * 3
    for _ in range(3):
        loop.next_round()
    assert seen == ["a"] * 6 + ["b"] * 3 + ["c"] * 3


def test_a_connection_that_is_gone_is_not_woken() -> None:
    loop, seen = Loop(), list[str]()
    first, second = (Client(loop, name, seen) for name in "ab")
    first.take()
    second.take()
    loop.share.forget(first.take)
    loop.share.forget(second.take)
    loop.next_round()
    assert seen == ["a"] * 3
