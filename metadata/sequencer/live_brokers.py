"""The live brokers, and how clients reach them: the contents of a heartbeat and its answer."""

from collections.abc import Sequence
from typing import NamedTuple

PLAINTEXT_LISTENER = "PLAINTEXT"
"""The listener of a broker that names none."""


class ListenerAddress(NamedTuple):
    """The address by which clients of one listener reach a broker."""

    name: str
    host: str
    port: int


class BrokerAddress(NamedTuple):
    """The addresses by which clients reach a broker, and its zone ('' if zones mean nothing).

    `host` and `port` are for brokers of releases without `listeners`. A broker of such a release
    has no `listeners`, and is reached there through the listener PLAINTEXT."""

    host: str
    port: int
    zone: str
    listeners: tuple[ListenerAddress, ...] = ()

    def of(self, listener: str) -> ListenerAddress | None:
        """Return the address of a listener; None if the broker does not have it."""
        if not self.listeners and listener == PLAINTEXT_LISTENER:
            return ListenerAddress(listener, self.host, self.port)
        return next((each for each in self.listeners if each.name == listener), None)


def broker_address(listeners: Sequence[ListenerAddress], zone: str) -> BrokerAddress:
    """Brokers without `listeners` get one address: that of PLAINTEXT, else the first."""
    first = next((one for one in listeners if one.name == PLAINTEXT_LISTENER), listeners[0])
    return BrokerAddress(first.host, first.port, zone, tuple(listeners))


class LiveBroker(NamedTuple):
    """A live broker. It `serves` once it listens, until it withdraws, begins to leave, or is silent
    for the role timeout. A broker that `has_withdrawn` has given its roles to the others, and still
    answers clients."""

    node_id: int
    incarnation: str
    serves: bool
    address: BrokerAddress
    has_withdrawn: bool = False


def live_broker(
    node_id: int,
    incarnation: str,
    serves: bool,
    host: str,
    port: int,
    zone: str,
    listeners: Sequence[tuple[str, str, int]],
    has_withdrawn: bool,
) -> LiveBroker:
    """A row of the answer of `lua/heartbeat.lua`."""
    named = tuple(ListenerAddress(*each) for each in listeners)
    address = BrokerAddress(host, port, zone, named)
    return LiveBroker(node_id, incarnation, serves, address, has_withdrawn)


class LiveBrokers(NamedTuple):
    """The live brokers, by node id; `node_id` is the asking broker's. `now_ms` is the sequencer's
    time of day.

    `has_lifeline`: the server sees the lifeline of the asking broker. `look_again_ms`: another
    broker's lifeline is missing, and a heartbeat after this time may find that broker dead.
    `was_known`: the asking broker was a member before. A member that is unknown has been
    silent for too long, or the server has lost its state."""

    node_id: int
    members: tuple[LiveBroker, ...]
    now_ms: int
    has_lifeline: bool = False
    look_again_ms: int | None = None
    was_known: bool = True


class NodeIdConflict(NamedTuple):
    """The answer that another live incarnation has the node id. Its last heartbeat was `age_ms`
    ago."""

    node_id: int
    incarnation: str
    age_ms: int
