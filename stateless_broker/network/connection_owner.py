"""What a connection needs of those around it: its limits, its owner, and who takes its requests."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from bucketlog.stateless_broker.authentication.login import LoginRules
from bucketlog.stateless_broker.listener_addresses import DEFAULT_NAME
from bucketlog.stateless_broker.network.exchange import Frame, ResponseSlot

if TYPE_CHECKING:
    from bucketlog.stateless_broker.network.connection import Connection


@dataclass(frozen=True, slots=True)
class Entrance:
    """The listener that a connection came through. `login_rules` None: it has no logins."""

    listener: str = DEFAULT_NAME
    login_rules: LoginRules | None = None


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """`request_bytes_max` bounds Produce requests, `other_request_bytes_max` all others, which
    become many small values. `requests_in_flight` bounds all requests, `other_requests_in_flight`
    those that are no Produce: of these a client needs few, while all it produces between two
    flushes is in flight at once."""

    request_bytes_max: int
    other_request_bytes_max: int
    requests_in_flight: int
    other_requests_in_flight: int
    response_buffer_bytes: int


class RequestHandler(Protocol):
    def __call__(self, connection: "Connection", frame: Frame, answer: ResponseSlot) -> None:
        """Take a request. Raises `MalformedRequestError`."""


class ConnectionOwner(Protocol):
    """The owner of all connections, as a connection uses it."""

    def opened(self, connection: "Connection") -> str | None:
        """The reason to refuse the connection; None: the owner keeps it until `closed`."""

    def sent(self, connection: "Connection") -> None:
        """Responses of the connection wait for earlier responses, or for the kernel."""

    def receiving(self, connection: "Connection", *, has_begun: bool) -> None:
        """A request is partly received (`has_begun`), or none is any more."""

    def ended(self, connection: "Connection", reason: str) -> None:
        """The broker closes the connection."""

    def closed(self, connection: "Connection") -> None: ...
