"""The surroundings of a connection: its limits, its owner, and the service that takes its
requests."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from bucketlog.stateless_broker.authentication.login import LoginRules
from bucketlog.stateless_broker.network.exchange import Frame, ResponseSlot
from bucketlog.stateless_broker.network.loop_share import LoopShare
from bucketlog.stateless_broker.network.quotas import Quotas
from bucketlog.stateless_broker.network.request_figures import RequestFigures
from bucketlog.stateless_broker.settings.listener_addresses import DEFAULT_NAME

if TYPE_CHECKING:
    from bucketlog.stateless_broker.network.connection import Connection


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits of connections. `request_bytes_max` bounds Produce requests, `other_request_bytes_max`
    all others, which become many small values. `requests_in_flight` bounds all requests,
    `other_requests_in_flight` those other than Produce. Of these a client needs few, but all that
    it produces between two flushes is in flight at once."""

    request_bytes_max: int
    other_request_bytes_max: int
    requests_in_flight: int
    other_requests_in_flight: int
    response_buffer_bytes: int


class RequestHandler(Protocol):
    def __call__(self, connection: "Connection", frame: Frame, answer: ResponseSlot) -> None:
        """Take a request. Raises `MalformedRequestError`."""


@dataclass(slots=True)
class Service:
    """The service that handles the requests of a connection. `tenant` is empty in a broker without
    tenants, and as long as the tenant of a connection is not known. `quotas` None: no address has a
    quota. `share` None: nobody else needs turns on the event loop."""

    handler: RequestHandler
    figures: RequestFigures
    quotas: Quotas | None = None
    tenant: str = ""
    share: LoopShare | None = None


@dataclass(frozen=True, slots=True)
class Entrance:
    """The listener that a connection came through. `login_rules` None: it has no logins. `service`
    None: that of all connections of a broker without tenants.

    A listener of several tenants has their entrances: `by_server_name` those that the server name
    of TLS chooses, None for other names, and `by_realm` those that a login chooses. If it has no
    logins, a server name without a tenant is refused."""

    listener: str = DEFAULT_NAME
    login_rules: LoginRules | None = None
    service: Service | None = None
    by_server_name: Callable[[str], "Entrance | None"] | None = None
    by_realm: Mapping[str, "Entrance"] = field(default_factory=dict)


class ConnectionOwner(Protocol):
    """The owner of all connections, as a connection uses it."""

    def opened(self, connection: "Connection") -> str | None:
        """The reason to refuse the connection; None: the owner keeps it until `closed`."""

    def placed(self, connection: "Connection") -> str | None:
        """The tenant of the connection is known. The reason to refuse the connection, or None."""

    def sent(self, connection: "Connection") -> None:
        """Responses of the connection wait for earlier responses, or for the kernel."""

    def receiving(self, connection: "Connection", *, has_begun: bool) -> None:
        """A request is partly received (`has_begun`), or none is any more."""

    def ended(self, connection: "Connection", reason: str) -> None:
        """The broker closes the connection."""

    def closed(self, connection: "Connection") -> None: ...
