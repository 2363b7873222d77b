"""The interface of handlers, and the declaration of an API in the routes."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple

from kio.schema.errors import ErrorCode

from bucketlog.log_format.model import Buffer
from bucketlog.log_format.wire import fetch
from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.api_messages import ApiMessages, RequestT, ResponseT
from bucketlog.log_format.wire.frames import FrameReader
from bucketlog.log_format.wire.plain_produce import PlainProduce
from bucketlog.metadata.fact_model import PRINCIPAL_CHARS_MAX
from bucketlog.stateless_broker.authorization.authorizer import Access, Authorizer
from bucketlog.stateless_broker.authorization.needs import Needs
from bucketlog.stateless_broker.network.answer_memory import (
    AnswerLease,
    uncounted,
)
from bucketlog.stateless_broker.network.audit import AuditLog, Change
from bucketlog.stateless_broker.network.connection import ANONYMOUS, Connection
from bucketlog.stateless_broker.network.exchange import Frame, ResponseSlot
from bucketlog.stateless_broker.network.quotas import ClientLimits, Quotas
from bucketlog.stateless_broker.network.request_order import Ordering, State
from bucketlog.stateless_broker.network.work_time import WorkTime


class RequestHeader(NamedTuple):
    api_key: ApiKey
    api_version: int
    correlation_id: int
    client_id: str


@dataclass(slots=True)
class Request:
    """The context of a request: everything that a handler gets besides the message. Nothing changes
    a request. The class is not frozen, because a frozen one takes four times as long to make."""

    header: RequestHeader
    connection: Connection
    access: Access
    memory: AnswerLease = field(default_factory=uncounted)
    """The memory of the response; acquired before a large response is built."""
    limits: ClientLimits | None = None
    """The quotas of the client; None: it has none."""
    work: WorkTime | None = None
    """The clock of the request's work. None: the time of the request counts in no quota."""
    audit: AuditLog | None = None
    """The audit log, for changes that are made after the response."""

    @property
    def principal(self) -> str:
        """Name of the client in facts."""
        return self.connection.principal[:PRINCIPAL_CHARS_MAX]

    @property
    def author(self) -> str | None:
        """The same as `principal`, but None for a client without a login or certificate."""
        return None if self.connection.principal == ANONYMOUS else self.principal

    def throttle_ms(self) -> int:
        """Count the work so far. Returns for how long the broker will take no further request of
        the connection: this is part of the response (KIP-219)."""
        if self.limits is not None and self.work is not None:
            self.connection.mute(self.limits.worked(self.work.take_ns()))
        return self.connection.muted_ms


class WrittenResponse(NamedTuple):
    """A response that its handler has encoded, without the header; `errors` are the errors for
    metrics, `outcomes` the results by name for the audit log."""

    body: bytes
    errors: Sequence[ErrorCode] = ()
    outcomes: Mapping[str, ErrorCode] = {}


Answer = Mapping[str, object] | WrittenResponse | None
"""A handler's result; None: the handler has failed."""


@dataclass(frozen=True, slots=True)
class Api(Generic[RequestT, ResponseT]):
    """An API and its handler, which returns a response's values or an encoded response.

    `order` says what requests read and change: requests wait for earlier changes of what they read.
    Requests with `large_answers` have no side effects, and hold back later requests of the
    connection, as every request does in Kafka. Those of a `login` do so, too. A request that
    `waits` for other clients holds nothing back: a leaving member sends LeaveGroup behind its
    unanswered JoinGroup. Requests with `large_answers` and those that `wait` are cancelled when the
    connection ends."""

    messages: ApiMessages[RequestT, ResponseT]
    handler: Callable[[Request, RequestT], Awaitable[ResponseT | WrittenResponse]]
    needs: Needs[RequestT, ResponseT]
    order: Ordering
    large_answers: bool = False
    waits: bool = False
    login: bool = False
    audit: Callable[[RequestT, Answer], Iterable[Change]] | None = None
    """Returns the changes that the request has made. None: its changes do not belong in the audit
    log."""

    @property
    def key(self) -> ApiKey:
        return self.messages.key


ProduceHandler = Callable[[Request, Frame, FrameReader, ResponseSlot], None]
"""The reader is at the body. The handler releases the frame, even if it raises."""
PlainProduceHandler = Callable[[Request, Frame, PlainProduce, ResponseSlot], bool]
"""Takes a request whose batch is valid. Returns False, without any effect, if the batch needs
further checks, will be refused, or would overtake an earlier batch of the connection. A
`ProduceHandler` then takes the request."""
FetchHandler = Callable[[Request, fetch.FetchRequest], Awaitable[list[Buffer]]]
PRODUCE_ORDER = Ordering(
    reads=State.TOPICS | State.CONFIGS | State.TRANSACTIONS, changes=State.RECORDS
)
FETCH_ORDER = Ordering(reads=State.TOPICS | State.RECORDS, changes=State.NOTHING)


@dataclass(frozen=True, slots=True)
class Routes:
    """The handlers of one epoch. Produce and Fetch are not among `apis`: their handlers check
    rights by resource. `authorizer` None: every client may do everything. `quotas` None: clients
    have none."""

    authorizer: Authorizer | None
    apis: Sequence[Api[Any, Any]]
    produce: ProduceHandler
    fetch: FetchHandler
    features: Mapping[str, int] = field(default_factory=dict)
    """The levels of the features that clients ask for (KIP-584)."""
    quotas: Quotas | None = None
    produce_plain: PlainProduceHandler | None = None
    """None: `produce` takes all Produce requests."""
    advertised: Collection[ApiKey] = ()
    """APIs that another dispatcher serves once the tenant of the connection is known."""
