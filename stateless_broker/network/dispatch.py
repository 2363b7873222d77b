"""From a frame to its handler: the table of APIs, request headers, versions.

Invariant: what Kafka answers on a request it does not know, this broker answers too: an unknown API
or version ends the connection; an ApiVersions request of an unknown version gets version 0's answer
with UNSUPPORTED_VERSION (KIP-511). Source: Kafka's RequestContext.parseRequest, ApiVersionsRequest.
"""

import asyncio
import logging
import struct
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

from kio.schema.errors import ErrorCode

from bucketlog.model import Buffer
from bucketlog.wire import fetch, produce
from bucketlog.wire.frames import FrameReader, MalformedRequestError
from stateless_broker.network.connection import Answer, Connection, Frame
from stateless_broker.network.message_reader import read_message
from stateless_broker.network.messages import Values, is_flexible, write_message
from stateless_broker.supervisor import Supervisor

logger = logging.getLogger(__name__)

API_VERSIONS = 18
COUNTED_ROWS = 100
"""So many rows of an answer are looked at for errors."""
_HEADER = struct.Struct(">hhi")


class RequestHeader(NamedTuple):
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str


@dataclass(frozen=True, slots=True)
class Request:
    """What a handler gets besides the message."""

    header: RequestHeader
    connection: Connection


Handler = Callable[[Request, Any], Awaitable[Values | bytes]]
"""Message in (kio's class of its version), values of the response out, or the response itself."""


@dataclass(frozen=True, slots=True)
class Api:
    """`min_version` is what is advertised, `served_from` what is answered (KAFKA-18659).
    `large_answers` are encoded beside the event loop, and hold back later requests of the
    connection, as every request does in Kafka. An answer that `waits` for other clients does not:
    a member that leaves says so behind its own JoinGroup, and may be gone before that is answered.
    It is given up when the connection ends."""

    key: int
    min_version: int
    max_version: int
    handler: Handler | None = None
    served_from: int = 0
    large_answers: bool = False
    waits: bool = False

    def serves(self, version: int) -> bool:
        return max(self.min_version, self.served_from) <= version <= self.max_version


ProduceHandler = Callable[[Request, Frame, memoryview, int, Answer], None]
FetchHandler = Callable[[Request, fetch.FetchRequest], Awaitable[list[Buffer]]]


class Dispatcher:
    def __init__(
        self,
        *,
        apis: list[Api],
        produce_handler: ProduceHandler,
        fetch_handler: FetchHandler,
        supervisor: Supervisor,
        request_items_max: int,
    ) -> None:
        own = [
            Api(produce.API_KEY, 0, produce.MAX_VERSION, served_from=produce.MIN_VERSION),
            Api(fetch.API_KEY, fetch.MIN_VERSION, fetch.MAX_VERSION),
            Api(API_VERSIONS, 0, 4, self._api_versions),
        ]
        self.apis: Mapping[int, Api] = {api.key: api for api in (*own, *apis)}
        self._produce_handler = produce_handler
        self._fetch_handler = fetch_handler
        self._supervisor = supervisor
        self._request_items_max = request_items_max

    def handle(self, connection: Connection, frame: Frame, answer: Answer) -> None:
        """Take one request. Raises `MalformedRequestError`: the connection then ends."""
        view = memoryview(frame.data)
        api_key, version, correlation_id = _HEADER.unpack_from(view)
        api = self.apis.get(api_key)
        if api is None:
            frame.release()
            raise MalformedRequestError(f"unknown api key {api_key}")
        if not api.serves(version):
            frame.release()
            if api_key != API_VERSIONS:
                raise MalformedRequestError(f"version {version} of api {api_key} is not supported")
            answer.send(self._unsupported_version(correlation_id))
            return
        reader = FrameReader(view, _HEADER.size)
        try:
            client_id = reader.nullable_string() or ""
            reader.flexible = is_flexible(api_key, version) if api_key else version >= 9
            reader.tags()
        except MalformedRequestError:
            frame.release()
            raise
        header = RequestHeader(api_key, version, correlation_id, client_id)
        answer.client_id, answer.correlation_id = client_id, correlation_id
        request = Request(header, connection)
        if api_key == produce.API_KEY:
            self._produce_handler(request, frame, view, reader.at, answer)
            return
        limit = self._request_items_max
        try:
            if api_key == fetch.API_KEY:
                answer.hold_back_later_requests()
                wanted = fetch.read_request(view, reader.at, version, items_max=limit)
                answer.may_wait_s = wanted.max_wait_ms / 1000
                work = self._fetch(request, wanted, answer)
            else:
                message = read_message(api_key, version, view, reader.at, items_max=limit)
                if api.large_answers:
                    answer.hold_back_later_requests()
                work = self._serve(api, request, message, answer)
        finally:
            frame.release()
        task = self._supervisor.spawn(
            work,
            f"api {api_key}",
            on_failure=lambda error: answer.close(f"api {api_key} failed: {error!r}"),
        )
        if api.waits:
            answer.may_wait_s = inf
            connection.give_up_with_client(task)

    async def _serve(self, api: Api, request: Request, message: Any, answer: Answer) -> None:
        if api.handler is None:
            raise NotImplementedError(f"api {api.key} has a path of its own")
        values = await api.handler(request, message)
        header = request.header
        if isinstance(values, bytes):
            body = values
        elif api.large_answers:
            body = await asyncio.to_thread(write_message, api.key, header.api_version, values)
        else:
            body = write_message(api.key, header.api_version, values)
        if not isinstance(values, bytes):
            answer.errors = [*_error_codes(values)]
        answer.send([response_header(header, api.key != API_VERSIONS), body])

    async def _fetch(self, request: Request, message: fetch.FetchRequest, answer: Answer) -> None:
        parts = await self._fetch_handler(request, message)
        answer.send([response_header(request.header), *parts])

    def _versions(self) -> list[Values]:
        return [
            {
                "api_key": api.key,
                "min_version": api.min_version,
                "max_version": api.max_version,
            }
            for api in sorted(self.apis.values(), key=lambda api: api.key)
        ]

    async def _api_versions(self, request: Request, message: Any) -> Values:
        return {"error_code": ErrorCode.none, "api_keys": self._versions()}

    def _unsupported_version(self, correlation_id: int) -> list[Buffer]:
        own = [entry for entry in self._versions() if entry["api_key"] == API_VERSIONS]
        values = {"error_code": ErrorCode.unsupported_version, "api_keys": own}
        return [struct.pack(">i", correlation_id), write_message(API_VERSIONS, 0, values)]


def _error_codes(values: Values) -> Iterator[ErrorCode]:
    """Of the answer and of its rows (topics, groups, …), the first of them."""
    if code := values.get("error_code"):
        yield code
    for rows in values.values():
        if isinstance(rows, list):
            for row in rows[:COUNTED_ROWS]:
                if isinstance(row, dict) and (code := row.get("error_code")):
                    yield code


def response_header(header: RequestHeader, may_have_tags: bool = True) -> bytes:
    """Version 1 (with tagged fields) for flexible responses, version 0 for all others."""
    correlation = struct.pack(">i", header.correlation_id)
    if header.api_key == produce.API_KEY:
        flexible = header.api_version >= produce.FLEXIBLE_FROM
    else:
        flexible = is_flexible(header.api_key, header.api_version)
    return correlation + b"\0" if flexible and may_have_tags else correlation
