"""Dispatch of a frame to its handler: the table of APIs, request headers, versions.

Invariant: what Kafka answers on a request it does not know, this broker answers too: an unknown API
or version ends the connection; an ApiVersions request of an unknown version gets version 0's answer
with UNSUPPORTED_VERSION (KIP-511). Source: Kafka's RequestContext.parseRequest, ApiVersionsRequest.
"""

import asyncio
import logging
import struct
import time
from collections.abc import Coroutine, Mapping, Sequence
from functools import partial
from math import inf
from typing import Any

from kio.schema.errors import ErrorCode

from bucketlog.log_format.model import Buffer
from bucketlog.log_format.wire import fetch
from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.api_messages import RequestT, ResponseT
from bucketlog.log_format.wire.frames import FrameReader, MalformedRequestError
from bucketlog.log_format.wire.messages.api_versions import (
    API_VERSIONS,
    ApiVersionsRequest,
)
from bucketlog.log_format.wire.plain_produce import PlainProduce, PlainProduceScanner
from bucketlog.log_format.wire.served_versions import SERVED_VERSIONS, Versions
from bucketlog.stateless_broker.authorization.authorizer import UNRESTRICTED, Access, Authorizer
from bucketlog.stateless_broker.authorization.needs import NOTHING, is_denied
from bucketlog.stateless_broker.network.answer_memory import (
    SMALL_ANSWER_BYTES,
    AnswerLease,
    uncounted,
)
from bucketlog.stateless_broker.network.apis import (
    FETCH_ORDER,
    PRODUCE_ORDER,
    Api,
    FetchHandler,
    PlainProduceHandler,
    ProduceHandler,
    Request,
    RequestHeader,
    Routes,
    WrittenResponse,
)
from bucketlog.stateless_broker.network.audit import AuditLog
from bucketlog.stateless_broker.network.connection import Connection
from bucketlog.stateless_broker.network.exchange import Frame, ResponseSlot
from bucketlog.stateless_broker.network.headers import is_flexible, response_header
from bucketlog.stateless_broker.network.loop_share import LoopShare
from bucketlog.stateless_broker.network.memory_budget import MemoryBudget
from bucketlog.stateless_broker.network.message_reader import read_message
from bucketlog.stateless_broker.network.messages import (
    throttled_body,
    throttled_response,
    write_message,
)
from bucketlog.stateless_broker.network.own_versions import NAMES_FROM, OwnVersions
from bucketlog.stateless_broker.network.quotas import Quotas
from bucketlog.stateless_broker.network.request_order import (
    UNORDERED,
    Place,
    WaitingRequest,
    places,
)
from bucketlog.stateless_broker.network.response_rows import error_codes, is_long
from bucketlog.stateless_broker.network.work_time import WorkTime, timed
from bucketlog.stateless_broker.supervision import Supervisor

logger = logging.getLogger(__name__)

INLINE_REQUEST_BYTES = 16 * 1024
"""Larger requests other than Produce are decoded in a thread. Larger Produce requests are not
plain."""
LOGIN_KEYS = frozenset({ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE})
"""The APIs of logins. As in Kafka, logins do not count in quotas, because the client is not
known."""
_HEADER = struct.Struct(">hhi")


class Dispatcher:
    """The only step between a connection and a handler. It outlives epochs, as connections do:
    `serve` first, and again in each epoch."""

    def __init__(
        self, *, supervisor: Supervisor, request_items_max: int, answers: MemoryBudget
    ) -> None:
        self.apis: Mapping[ApiKey, Api[Any, Any]] = {}
        self.versions: Mapping[int, tuple[ApiKey, Versions]] = {}
        self.audit: AuditLog | None = None
        self._places: Mapping[int, Place] = {}
        self.share: LoopShare | None = None
        """Counts the time of requests; None: nobody else needs turns on the event loop."""
        self._own_versions: OwnVersions
        self._produce_handler: ProduceHandler
        self._plain_handler: PlainProduceHandler | None
        self._fetch_handler: FetchHandler
        self._authorizer: Authorizer | None
        self._quotas: Quotas | None
        self._supervisor = supervisor
        self._answers = answers
        self._no_memory = uncounted()
        """Responses to Produce are not counted."""
        self._request_items_max = request_items_max
        self._scanner = PlainProduceScanner(request_bytes_max=INLINE_REQUEST_BYTES)
        self._encoding = asyncio.Semaphore(1)
        """Lets only one thread encode a long response at a time, because threads share a core."""
        self._decoding = asyncio.Semaphore(1)
        """Lets only one thread decode a long request at a time, for the same reason."""

    def serve(self, routes: Routes) -> None:
        """Give requests to these handlers from now on."""
        own = Api(API_VERSIONS, self._api_versions, NOTHING, UNORDERED)
        self.apis = {api.key: api for api in (own, *routes.apis)}
        served = {ApiKey.PRODUCE, ApiKey.FETCH, *self.apis, *routes.advertised}
        self.versions = {key: (key, SERVED_VERSIONS[key]) for key in sorted(served)}
        orderings = {ApiKey.PRODUCE: PRODUCE_ORDER, ApiKey.FETCH: FETCH_ORDER}
        orderings |= {key: api.order for key, api in self.apis.items()}
        self._places = places(orderings.items())
        self._own_versions = OwnVersions(self.versions.values(), routes.features)
        self._produce_handler = routes.produce
        self._plain_handler = routes.produce_plain
        self._fetch_handler = routes.fetch
        self._authorizer = routes.authorizer
        self._quotas = routes.quotas

    def handle(self, connection: Connection, frame: Frame, answer: ResponseSlot) -> None:
        """Take one request. Raises `MalformedRequestError`: the connection then ends."""
        number, version, correlation_id = _HEADER.unpack_from(frame.data)
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
            answer.send(self._own_versions.unsupported(correlation_id))
            return
        body: FrameReader | PlainProduce
        plain = None
        if key is ApiKey.PRODUCE and self._plain_handler is not None:
            plain = self._scanner.scan(frame.data)
        if plain is None:
            client_id, body = self._read_header(key, version, frame)
        else:
            client_id, body = plain.client_id, plain
        header = RequestHeader(key, version, correlation_id, client_id)
        answer.client_id, answer.correlation_id = client_id, correlation_id
        place = self._places[number]
        if not place.waits_for.isdisjoint(connection.changes.by_api):
            answer.hold_back_later_requests()
            begin = partial(self._begin_later, connection, frame, answer)
            WaitingRequest(frame, place.waits_for, connection.changes, begin)
            return
        if place.is_change:
            answer.begin_change()
        self._take(connection, frame, answer, header, body)

    def _read_header(self, key: ApiKey, version: int, frame: Frame) -> tuple[str, FrameReader]:
        """Return the client id, and a reader at the body. Raises `MalformedRequestError`."""
        view = memoryview(frame.data)
        reader = FrameReader(view, _HEADER.size, items_max=self._request_items_max)
        try:
            client_id = reader.nullable_string() or ""
            reader.flexible = is_flexible(key, version)
            reader.tags()
        except MalformedRequestError:
            frame.release()
            raise
        return client_id, reader

    def _begin_later(self, connection: Connection, frame: Frame, answer: ResponseSlot) -> None:
        """Take a request that has waited for earlier changes."""
        answer.let_later_requests_in()
        try:
            self.handle(connection, frame, answer)
        except MalformedRequestError as error:
            answer.close(str(error))

    def _take(
        self,
        connection: Connection,
        frame: Frame,
        answer: ResponseSlot,
        header: RequestHeader,
        body: FrameReader | PlainProduce,
    ) -> None:
        """Take a request. `body` is a decoded plain request, or a reader at the body. Raises
        `MalformedRequestError`."""
        key = header.api_key
        access = self._access(connection, header)
        limits = work = None
        if self._quotas is not None and self._quotas.view.client_quotas.by_entity:
            if key not in LOGIN_KEYS:
                limits = self._quotas.limits_of(connection.principal, header.client_id)
            if limits is not None and limits.counts_work:
                work = WorkTime(time.perf_counter_ns)
        if key is ApiKey.PRODUCE:
            request = Request(header, connection, access, self._no_memory, limits, work)
            if limits is not None:
                connection.mute(limits.produced(frame.size_bytes))
            self._take_produce(request, frame, body, answer)
            if work is not None:
                request.throttle_ms()
            return
        assert isinstance(body, FrameReader)
        lease = AnswerLease(self._answers, connection.payer)
        request = Request(header, connection, access, lease, limits, work, self.audit)
        if frame.size_bytes > INLINE_REQUEST_BYTES:
            answer.hold_back_later_requests()
            self._supervisor.spawn(
                self._start_large(request, frame, body.at, answer),
                key.message_name,
                on_failure=lambda error: answer.close(f"{key.message_name} failed: {error!r}"),
            ).add_done_callback(lambda _: frame.release())  # if cancelled before it began
            return
        try:
            message = self._decoded(header, frame, body.at)
        finally:
            frame.release()
        self._start(request, message, answer)

    def _take_produce(
        self,
        request: Request,
        frame: Frame,
        body: FrameReader | PlainProduce,
        answer: ResponseSlot,
    ) -> None:
        if isinstance(body, PlainProduce):
            assert self._plain_handler is not None
            if self._plain_handler(request, frame, body, answer):
                return
            key, version = request.header.api_key, request.header.api_version
            _, body = self._read_header(key, version, frame)
        self._produce_handler(request, frame, body, answer)

    def _access(self, connection: Connection, header: RequestHeader) -> Access:
        if self._authorizer is None:
            return UNRESTRICTED
        report = None
        if self.audit is not None:
            report = partial(self.audit.denied, connection, header)
        return Access.of(connection.principal, connection.host, self._authorizer, report)

    def _decoded(self, header: RequestHeader, frame: Frame, at: int) -> Any:
        """Decode the body that begins at `at`. Raises `MalformedRequestError`."""
        view, limit = memoryview(frame.data), self._request_items_max
        if header.api_key is ApiKey.FETCH:
            return fetch.read_request(view, at, header.api_version, items_max=limit)
        messages = self.apis[header.api_key].messages
        return read_message(messages, header.api_version, view, at, items_max=limit)

    async def _start_large(
        self, request: Request, frame: Frame, at: int, answer: ResponseSlot
    ) -> None:
        """Decode in a thread, then `_start`. Later requests of the connection wait meanwhile."""
        try:
            async with self._decoding:
                message = await asyncio.to_thread(self._decoded, request.header, frame, at)
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
        if request.work is not None:
            request.work.pause()
            work = self._counted(work, request)
        if self.share is not None:
            work = self.share.counted(work)
        task = self._supervisor.spawn(
            work,
            key.message_name,
            on_failure=lambda error: answer.close(f"{key.message_name} failed: {error!r}"),
        )
        if waits:
            answer.may_wait_s = inf
        if is_given_up:
            request.connection.give_up_with_client(task)

    @staticmethod
    async def _counted(work: Coroutine[Any, Any, None], request: Request) -> None:
        """Work on a request whose time counts in a quota."""
        assert request.work is not None
        assert request.limits is not None
        try:
            await timed(work, request.work)
        finally:
            request.limits.worked_after(request.work.take_ns())

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
            written = await self._written(api, request, response)
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
        request: Request,
        response: ResponseT | WrittenResponse,
    ) -> WrittenResponse:
        header, throttle_ms = request.header, request.throttle_ms()
        if isinstance(response, WrittenResponse):
            if not throttle_ms:
                return response
            body = throttled_body(api.messages, header.api_version, response.body, throttle_ms)
            return response._replace(body=body)
        if throttle_ms:
            response = throttled_response(api.messages, response, throttle_ms)
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

    async def _api_versions(self, request: Request, message: ApiVersionsRequest) -> WrittenResponse:
        body, error = self._own_versions.answer(request.header.api_version, message)
        if error is ErrorCode.none and request.header.api_version >= NAMES_FROM:
            names = message.client_software_name, message.client_software_version
            request.connection.shook_hands(*names)
        return WrittenResponse(body, (error,))
