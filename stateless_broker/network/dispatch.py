"""From a frame to its handler: the table of APIs, request headers, versions.

Invariant: what Kafka answers on a request it does not know, this broker answers too: an unknown API
or version ends the connection; an ApiVersions request of an unknown version gets version 0's answer
with UNSUPPORTED_VERSION (KIP-511). Source: Kafka's RequestContext.parseRequest, ApiVersionsRequest.
"""

import asyncio
import logging
import struct
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import Any, Generic, NamedTuple

from kio.schema.errors import ErrorCode

from bucketlog.log_format.model import Buffer
from bucketlog.log_format.wire import fetch, produce
from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.api_messages import ApiMessages, RequestT, ResponseT
from bucketlog.log_format.wire.frames import FrameReader, MalformedRequestError
from bucketlog.log_format.wire.messages.api_versions import (
    API_VERSIONS,
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from bucketlog.log_format.wire.served_versions import SERVED_VERSIONS, Versions
from bucketlog.metadata.fact_model import PRINCIPAL_CHARS_MAX
from bucketlog.stateless_broker.authorization.authorizer import Access, Authorizer
from bucketlog.stateless_broker.authorization.needs import NOTHING, Needs, is_denied
from bucketlog.stateless_broker.network.answer_memory import (
    SMALL_ANSWER_BYTES,
    AnswerLease,
    uncounted,
)
from bucketlog.stateless_broker.network.audit import AuditLog, Change
from bucketlog.stateless_broker.network.connection import ANONYMOUS, Connection
from bucketlog.stateless_broker.network.exchange import Frame, ResponseSlot
from bucketlog.stateless_broker.network.features import add_feature
from bucketlog.stateless_broker.network.memory_budget import MemoryBudget
from bucketlog.stateless_broker.network.message_reader import read_message
from bucketlog.stateless_broker.network.messages import is_flexible, write_message
from bucketlog.stateless_broker.network.response_rows import error_codes, is_long
from bucketlog.stateless_broker.supervision import Supervisor

logger = logging.getLogger(__name__)

INLINE_REQUEST_BYTES = 16 * 1024
"""Larger requests other than Produce are decoded in a thread."""
ADVERTISED_FROM = {ApiKey.PRODUCE: 0, ApiKey.SASL_HANDSHAKE: 0}
"""Where it is not the first version served: old librdkafka wants to see these (KAFKA-18659). It
logs in by version 1 of SaslHandshake, and only if version 0 is there, too."""
_HEADER = struct.Struct(">hhi")


class RequestHeader(NamedTuple):
    api_key: ApiKey
    api_version: int
    correlation_id: int
    client_id: str


@dataclass(frozen=True, slots=True)
class Request:
    """What a handler gets besides the message."""

    header: RequestHeader
    connection: Connection
    access: Access
    memory: AnswerLease = field(default_factory=uncounted)
    """The memory of the response; acquired before a large response is built."""
    audit: AuditLog | None = None
    """For changes that are made after the response."""

    @property
    def principal(self) -> str:
        """Who asks, as facts name it."""
        return self.connection.principal[:PRINCIPAL_CHARS_MAX]

    @property
    def author(self) -> str | None:
        """As `principal`; None for a client without a login or certificate."""
        return None if self.connection.principal == ANONYMOUS else self.principal


class WrittenResponse(NamedTuple):
    """A response that its handler has encoded, without the header; `errors` are the errors for
    metrics, `outcomes` the results by name for the audit log."""

    body: bytes
    errors: Sequence[ErrorCode] = ()
    outcomes: Mapping[str, ErrorCode] = {}


Answer = Mapping[str, object] | WrittenResponse | None
"""What a handler has returned; None: it has failed."""


@dataclass(frozen=True, slots=True)
class Api(Generic[RequestT, ResponseT]):
    """An API and its handler, which returns a response's values or an encoded response.

    Requests with `large_answers` have no side effects, and hold back later requests of the
    connection, as every request does in Kafka. Those of a `login` do so, too. A request that
    `waits` for other clients holds nothing back: a leaving member sends LeaveGroup behind its
    unanswered JoinGroup. Requests with `large_answers` and those that `wait` are cancelled when the
    connection ends."""

    messages: ApiMessages[RequestT, ResponseT]
    handler: Callable[[Request, RequestT], Awaitable[ResponseT | WrittenResponse]]
    needs: Needs[RequestT, ResponseT]
    large_answers: bool = False
    waits: bool = False
    login: bool = False
    audit: Callable[[RequestT, Answer], Iterable[Change]] | None = None
    """What the request has changed; None: it changes nothing that the audit log has."""

    @property
    def key(self) -> ApiKey:
        return self.messages.key


ProduceHandler = Callable[[Request, Frame, FrameReader, ResponseSlot], None]
"""The reader is at the body. The handler releases the frame, even if it raises."""
FetchHandler = Callable[[Request, fetch.FetchRequest], Awaitable[list[Buffer]]]


@dataclass(frozen=True, slots=True)
class Routes:
    """The handlers of one epoch. Produce and Fetch are not among `apis`: their handlers check
    rights by resource. `authorizer` None: every client may do everything."""

    authorizer: Authorizer | None
    apis: Sequence[Api[Any, Any]]
    produce: ProduceHandler
    fetch: FetchHandler
    transaction_version: int | None = None
    """The feature by which clients choose how they use transactions (KIP-890); None: off."""


class Dispatcher:
    """The only step between a connection and a handler. It outlives epochs, as connections do:
    `serve` first, and again in each epoch."""

    def __init__(
        self, *, supervisor: Supervisor, request_items_max: int, answers: MemoryBudget
    ) -> None:
        self.apis: Mapping[ApiKey, Api[Any, Any]] = {}
        self.versions: Mapping[int, tuple[ApiKey, Versions]] = {}
        self.audit: AuditLog | None = None
        self._own_versions: dict[int, WrittenResponse] = {}
        """The encoded responses to ApiVersions, by the version of the request."""
        self._produce_handler: ProduceHandler
        self._fetch_handler: FetchHandler
        self._transaction_version: int | None = None
        self._authorizer: Authorizer | None
        self._supervisor = supervisor
        self._answers = answers
        self._no_memory = uncounted()
        """Responses to Produce are not counted."""
        self._request_items_max = request_items_max
        self._encoding = asyncio.Semaphore(1)
        """Only one thread encodes a long response at a time, because threads share a core."""
        self._decoding = asyncio.Semaphore(1)
        """Only one thread decodes a long request at a time, for the same reason."""

    def serve(self, routes: Routes) -> None:
        """Give requests to these handlers from now on."""
        own = Api(API_VERSIONS, self._api_versions, NOTHING)
        self.apis = {api.key: api for api in (own, *routes.apis)}
        served = {ApiKey.PRODUCE, ApiKey.FETCH, *self.apis}
        self.versions = {key: (key, SERVED_VERSIONS[key]) for key in sorted(served)}
        self._own_versions.clear()
        self._produce_handler = routes.produce
        self._fetch_handler = routes.fetch
        self._transaction_version = routes.transaction_version
        self._authorizer = routes.authorizer

    def handle(self, connection: Connection, frame: Frame, answer: ResponseSlot) -> None:
        """Take one request. Raises `MalformedRequestError`: the connection then ends."""
        view = memoryview(frame.data)
        number, version, correlation_id = _HEADER.unpack_from(view)
        if connection.login is not None:
            problem = connection.login.problem(number)
            if problem is not None:
                frame.release()
                raise MalformedRequestError(problem)
        key, served = self.versions.get(number, (None, None))
        if key is None or served is None:
            frame.release()
            raise MalformedRequestError(f"unknown api key {number}")
        if not served.first <= version <= served.last:
            frame.release()
            if key is not ApiKey.API_VERSIONS:
                raise MalformedRequestError(f"{key.message_name} {version} is not supported")
            answer.send(self._unsupported_version(correlation_id))
            return
        reader = FrameReader(view, _HEADER.size, items_max=self._request_items_max)
        try:
            client_id = reader.nullable_string() or ""
            reader.flexible = _is_flexible(key, version)
            reader.tags()
        except MalformedRequestError:
            frame.release()
            raise
        header = RequestHeader(key, version, correlation_id, client_id)
        answer.client_id, answer.correlation_id = client_id, correlation_id
        access = self._access(connection, header)
        if key is ApiKey.PRODUCE:
            request = Request(header, connection, access, self._no_memory)
            self._produce_handler(request, frame, reader, answer)
            return
        lease = AnswerLease(self._answers, connection.host)
        request = Request(header, connection, access, lease, self.audit)
        if frame.size_bytes > INLINE_REQUEST_BYTES:
            answer.hold_back_later_requests()
            self._supervisor.spawn(
                self._start_large(request, frame, view, reader.at, answer),
                key.message_name,
                on_failure=lambda error: answer.close(f"{key.message_name} failed: {error!r}"),
            ).add_done_callback(lambda _: frame.release())  # if cancelled before it began
            return
        try:
            message = self._decoded(header, view, reader.at)
        finally:
            frame.release()
        self._start(request, message, answer)

    def _access(self, connection: Connection, header: RequestHeader) -> Access:
        report = None
        if self._authorizer is not None and self.audit is not None:
            report = partial(self.audit.denied, connection, header)
        return Access.of(connection.principal, connection.host, self._authorizer, report)

    def _decoded(self, header: RequestHeader, view: memoryview, at: int) -> Any:
        """Decode the body that begins at `at`. Raises `MalformedRequestError`."""
        limit = self._request_items_max
        if header.api_key is ApiKey.FETCH:
            return fetch.read_request(view, at, header.api_version, items_max=limit)
        messages = self.apis[header.api_key].messages
        return read_message(messages, header.api_version, view, at, items_max=limit)

    async def _start_large(
        self, request: Request, frame: Frame, view: memoryview, at: int, answer: ResponseSlot
    ) -> None:
        """Decode in a thread, then `_start`. Later requests of the connection wait meanwhile."""
        try:
            async with self._decoding:
                message = await asyncio.to_thread(self._decoded, request.header, view, at)
        except MalformedRequestError as error:
            answer.close(str(error))
            return
        finally:
            frame.release()
        answer.let_later_requests_in()
        self._start(request, message, answer)

    def _start(self, request: Request, message: Any, answer: ResponseSlot) -> None:
        """Start to work on a decoded request."""
        key = request.header.api_key
        waits, is_given_up = False, True
        if isinstance(message, fetch.FetchRequest):
            answer.hold_back_later_requests()
            answer.may_wait_s = max(message.max_wait_ms, 0) / 1000
            work = self._fetch(request, message, answer)
        else:
            api = self.apis[key]
            if api.large_answers or api.login:
                answer.hold_back_later_requests()
            waits, is_given_up = api.waits, api.waits or api.large_answers
            work = self._serve(api, request, message, answer)
        task = self._supervisor.spawn(
            work,
            key.message_name,
            on_failure=lambda error: answer.close(f"{key.message_name} failed: {error!r}"),
        )
        if waits:
            answer.may_wait_s = inf
        if is_given_up:
            request.connection.give_up_with_client(task)

    async def _serve(
        self,
        api: Api[RequestT, ResponseT],
        request: Request,
        message: RequestT,
        answer: ResponseSlot,
    ) -> None:
        try:
            response: ResponseT | WrittenResponse
            if is_denied(api.needs, request.access):
                response = api.needs.refuse(message)
            elif self.audit is None:
                response = await api.handler(request, message)
            else:
                response = await self.audit.watch(api, request, message)
            written = await self._written(api, request.header, response)
            # Who holds some never waits for more: such answers would wait for each other.
            size_bytes = len(written.body)
            if size_bytes >= SMALL_ANSWER_BYTES and not request.memory.held_bytes:
                await request.memory.acquire(size_bytes)
        except BaseException:
            request.memory.release()
            raise
        answer.errors = written.errors
        head = response_header(request.header, api.key is not ApiKey.API_VERSIONS)
        self._send(request, answer, [head, written.body])
        login = request.connection.login
        if api.login and login is not None and login.failure is not None:
            request.connection.finish_because(login.failure)

    async def _written(
        self,
        api: Api[RequestT, ResponseT],
        header: RequestHeader,
        response: ResponseT | WrittenResponse,
    ) -> WrittenResponse:
        if isinstance(response, WrittenResponse):
            return response
        errors = [*error_codes(response)]
        if not is_long(response):
            return WrittenResponse(
                write_message(api.messages, header.api_version, response), errors
            )
        async with self._encoding:
            body = await asyncio.to_thread(
                write_message, api.messages, header.api_version, response
            )
        return WrittenResponse(body, errors)

    async def _fetch(
        self, request: Request, message: fetch.FetchRequest, answer: ResponseSlot
    ) -> None:
        try:
            parts = await self._fetch_handler(request, message)
        except BaseException:
            request.memory.release()
            raise
        self._send(request, answer, [response_header(request.header), *parts])

    @staticmethod
    def _send(request: Request, answer: ResponseSlot, parts: Sequence[Buffer]) -> None:
        """Send the response. From here on, the connection gives the response's memory back."""
        if request.memory.held_bytes:
            request.memory.settle(sum(len(part) for part in parts))
            answer.lease = request.memory
        answer.send(parts)

    def _versions(self) -> list[ApiVersion]:
        return [
            {
                "api_key": key,
                "min_version": ADVERTISED_FROM.get(key, served.first),
                "max_version": served.last,
            }
            for key, served in self.versions.values()
        ]

    async def _api_versions(self, request: Request, message: ApiVersionsRequest) -> WrittenResponse:
        version = request.header.api_version
        written = self._own_versions.get(version)
        if written is None:
            response: ApiVersionsResponse = {
                "error_code": ErrorCode.none,
                "api_keys": self._versions(),
            }
            if self._transaction_version is not None:
                add_feature(response, version, self._transaction_version)
            body = write_message(API_VERSIONS, version, response)
            written = self._own_versions[version] = WrittenResponse(body, (ErrorCode.none,))
        return written

    def _unsupported_version(self, correlation_id: int) -> list[Buffer]:
        own = [row for row in self._versions() if row["api_key"] == ApiKey.API_VERSIONS]
        response: ApiVersionsResponse = {
            "error_code": ErrorCode.unsupported_version,
            "api_keys": own,
        }
        return [struct.pack(">i", correlation_id), write_message(API_VERSIONS, 0, response)]


def response_header(header: RequestHeader, may_have_tags: bool = True) -> bytes:
    """Version 1 (with tagged fields) for flexible responses, version 0 for all others."""
    correlation = struct.pack(">i", header.correlation_id)
    flexible = _is_flexible(header.api_key, header.api_version)
    return correlation + b"\0" if flexible and may_have_tags else correlation


def _is_flexible(key: ApiKey, version: int) -> bool:
    return version >= produce.FLEXIBLE_FROM if key is ApiKey.PRODUCE else is_flexible(key, version)
