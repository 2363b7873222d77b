"""Dispatch: every API and version that is offered, those that are not, and frames given back."""

import asyncio
import struct
import threading
from collections.abc import Sequence
from typing import Any, cast

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.log_format.model import Buffer
from bucketlog.log_format.wire import fetch, produce
from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.frames import MalformedRequestError
from bucketlog.log_format.wire.messages.init_producer_id import (
    INIT_PRODUCER_ID,
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from bucketlog.log_format.wire.messages.metadata import (
    METADATA,
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
)
from bucketlog.stateless_broker.network import dispatch
from bucketlog.stateless_broker.network.connection import Connection
from bucketlog.stateless_broker.network.dispatch import (
    SHORT_ROWS,
    Api,
    Dispatcher,
    Request,
    Routes,
)
from bucketlog.stateless_broker.network.exchange import Frame, ResponseSlot
from bucketlog.stateless_broker.network.memory_budget import MemoryBudget
from bucketlog.stateless_broker.network.messages import write_message
from bucketlog.stateless_broker.supervision import Supervisor
from tests.models.frames import Corpus, frames
from tests.rigs.patience import eventually_async
from tests.rigs.wire_client import decode_response, encode_request

ITEMS_MAX = 5


class Caller:
    """In a connection's place: who calls does not go."""

    host = "127.0.0.1"

    def give_up_with_client(self, task: asyncio.Task[None]) -> None:
        pass


CONNECTION = cast(Connection, Caller())


class Answered(ResponseSlot):
    """Keeps what was answered."""

    __slots__ = ("closed", "sent")

    def __init__(self) -> None:
        self.sent: bytes | None = None
        self.lease = None
        self.closed: str | None = None

    def send(self, parts: Sequence[Buffer]) -> None:
        self.give_back()
        self.sent = b"".join(parts)

    def hold_back_later_requests(self) -> None:
        pass

    def close(self, reason: str) -> None:
        self.closed = reason


class Desk:
    """A dispatcher whose handlers note what they are asked."""

    def __init__(self) -> None:
        self.budget = MemoryBudget(1 << 30)
        self.answers = MemoryBudget(1 << 30)
        self.asked: list[tuple[Request, Any]] = []
        self.failure: Exception | None = None
        self.brokers: list[MetadataResponseBroker] = []
        self.acquired_bytes = 0
        self.all_here = asyncio.Barrier(1)
        self.supervisor = Supervisor()
        self.dispatcher = Dispatcher(
            supervisor=self.supervisor, request_items_max=ITEMS_MAX, answers=self.answers
        )
        apis: list[Api[Any, Any]] = [
            Api(METADATA, self._metadata),
            Api(INIT_PRODUCER_ID, self._init_producer_id),
        ]
        self.dispatcher.serve(Routes(apis, self._produce, self._fetch))

    async def _metadata(self, request: Request, message: MetadataRequest) -> MetadataResponse:
        self.asked.append((request, message))
        if self.failure is not None:
            raise self.failure
        await request.memory.acquire(self.acquired_bytes)
        await self.all_here.wait()
        return {"brokers": self.brokers, "topics": [], "cluster_id": "c", "controller_id": 1}

    async def _init_producer_id(
        self, request: Request, message: InitProducerIdRequest
    ) -> InitProducerIdResponse:
        self.asked.append((request, message))
        return {"error_code": ErrorCode.none, "producer_id": 7, "producer_epoch": 0}

    def _produce(
        self, request: Request, frame: Frame, view: memoryview, at: int, answer: ResponseSlot
    ) -> None:
        frame.release()
        self.asked.append((request, produce.read_request(view, at, request.header.api_version)))

    async def _fetch(self, request: Request, message: fetch.FetchRequest) -> list[Buffer]:
        self.asked.append((request, message))
        return fetch.write_response(request.header.api_version, ErrorCode.none, [])

    async def take(self, payload: bytes) -> Answered:
        answer = Answered()
        self.budget.acquire(len(payload), self, lambda: None)
        frame = Frame(bytearray(payload), self.budget)
        try:
            self.dispatcher.handle(CONNECTION, frame, answer)
        finally:
            assert self.budget.held_bytes == 0, "the frame was not given back"
        for _ in range(5):
            await asyncio.sleep(0)
        return answer


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.mark.parametrize("version", range(13))
async def test_the_header_and_the_message_reach_the_handler(desk: Desk, version: int) -> None:
    values: dict[str, Any] = {"topics": []}
    if version >= 8:
        values["include_topic_authorized_operations"] = False
        if version <= 10:
            values["include_cluster_authorized_operations"] = False
    payload = encode_request(ApiKey.METADATA, version, 99, values)
    answer = await desk.take(payload)
    ((request, message),) = desk.asked
    assert request.header == (ApiKey.METADATA, version, 99, "wire-client")
    assert message.topics == ()
    assert answer.sent is not None
    correlation_id, response = decode_response(ApiKey.METADATA, version, answer.sent)
    assert correlation_id == 99
    assert response.brokers == ()


@pytest.mark.parametrize("version", range(fetch.MIN_VERSION, fetch.MAX_VERSION + 1))
async def test_fetch_has_a_codec_of_its_own(desk: Desk, version: int) -> None:
    values = {"max_wait": 1, "min_bytes": 1, "max_bytes": 9, "topics": []}
    if version < 15:
        values["replica_id"] = -1
    answer = await desk.take(encode_request(ApiKey.FETCH, version, 5, values))
    assert answer.sent is not None
    assert decode_response(ApiKey.FETCH, version, answer.sent)[0] == 5
    assert isinstance(desk.asked[0][1], fetch.FetchRequest)


@pytest.mark.parametrize("version", range(produce.MIN_VERSION, produce.MAX_VERSION + 1))
async def test_produce_gets_the_frame_and_where_its_body_begins(desk: Desk, version: int) -> None:
    values = {"acks": 1, "timeout": 77, "topic_data": []}
    await desk.take(encode_request(ApiKey.PRODUCE, version, 5, values))
    assert desk.asked[0][1] == produce.ProduceRequest(None, 1, 77, [])


@pytest.mark.parametrize("api_key", [-1, 4, 999, 2**15 - 1])
async def test_an_unknown_api_ends_the_connection(desk: Desk, api_key: int) -> None:
    with pytest.raises(MalformedRequestError, match="unknown api key"):
        await desk.take(struct.pack(">hhih", api_key, 0, 1, -1))
    assert desk.asked == []


@pytest.mark.parametrize(
    ("api_key", "version"),
    [
        (ApiKey.METADATA, 13),
        (ApiKey.METADATA, -1),
        (ApiKey.PRODUCE, 2),
        (ApiKey.PRODUCE, 13),
        (ApiKey.FETCH, 3),
        (ApiKey.FETCH, 17),
        (ApiKey.INIT_PRODUCER_ID, 6),
    ],
)
async def test_an_unknown_version_ends_the_connection(
    desk: Desk, api_key: int, version: int
) -> None:
    with pytest.raises(MalformedRequestError, match="not supported"):
        await desk.take(struct.pack(">hhih", api_key, version, 1, -1))
    assert desk.asked == []


@pytest.mark.parametrize("version", [5, 99, -1, 2**15 - 1])
async def test_api_versions_of_an_unknown_version_is_answered_in_version_0(
    desk: Desk, version: int
) -> None:
    answer = await desk.take(
        struct.pack(">hhih", ApiKey.API_VERSIONS, version, 42, -1) + b"whatever"
    )
    assert answer.sent is not None
    correlation_id, response = decode_response(ApiKey.API_VERSIONS, 0, answer.sent)
    assert correlation_id == 42
    assert response.error_code is ErrorCode.unsupported_version
    (own,) = response.api_keys
    assert (own.api_key, own.min_version, own.max_version) == (ApiKey.API_VERSIONS, 0, 4)


@pytest.mark.parametrize("version", range(5))
async def test_api_versions(desk: Desk, version: int) -> None:
    values = {"client_software_name": "n", "client_software_version": "1"} if version >= 3 else {}
    answer = await desk.take(encode_request(ApiKey.API_VERSIONS, version, 42, values))
    assert answer.sent is not None
    _, response = decode_response(ApiKey.API_VERSIONS, version, answer.sent)
    offered = {row.api_key: (row.min_version, row.max_version) for row in response.api_keys}
    assert offered == {
        ApiKey.PRODUCE: (0, produce.MAX_VERSION),
        ApiKey.FETCH: (fetch.MIN_VERSION, fetch.MAX_VERSION),
        ApiKey.METADATA: (0, 12),
        ApiKey.API_VERSIONS: (0, 4),
        ApiKey.INIT_PRODUCER_ID: (0, 5),
    }


async def test_a_handler_that_fails_ends_the_connection(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    desk.failure = KeyError("unexpected")
    answer = await desk.take(encode_request(ApiKey.METADATA, 4, 1, {"topics": []}))
    assert answer.sent is None
    assert answer.closed is not None
    assert "KeyError" in answer.closed
    assert "Metadata failed" in caplog.text


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(struct.pack(">hhi", ApiKey.METADATA, 4, 1), id="no client id"),
        pytest.param(struct.pack(">hhih", ApiKey.METADATA, 4, 1, 9) + b"short", id="client id cut"),
        pytest.param(struct.pack(">hhih", ApiKey.METADATA, 4, 1, -2), id="negative client id"),
        pytest.param(struct.pack(">hhih", ApiKey.METADATA, 4, 1, 2) + b"\xff\xfe", id="no UTF-8"),
        pytest.param(struct.pack(">hhih", ApiKey.METADATA, 12, 1, -1) + b"\x05", id="tags cut"),
        pytest.param(struct.pack(">hhih", ApiKey.PRODUCE, 9, 1, -1) + b"\xff" * 9, id="endless"),
        pytest.param(
            struct.pack(">hhih", ApiKey.PRODUCE, 9, 1, -1) + bytes([ITEMS_MAX + 1]) + b"\0" * 99,
            id="too many tagged fields",
        ),
    ],
)
async def test_a_malformed_header_ends_the_connection(desk: Desk, payload: bytes) -> None:
    with pytest.raises(MalformedRequestError):
        await desk.take(payload)


async def test_mutated_requests_are_answered_or_refused_and_given_back(desk: Desk) -> None:
    """Whatever is sent, nothing but `MalformedRequestError` reaches the connection."""
    offered = {
        ApiKey.METADATA: (0, 12),
        ApiKey.INIT_PRODUCER_ID: (0, 5),
        ApiKey.API_VERSIONS: (0, 4),
    }
    offered |= {ApiKey.PRODUCE: (3, 12), ApiKey.FETCH: (4, 16)}
    refused = 0
    for frame in frames(Corpus(offered, "topic"), 5000, seed=7):
        payload = frame.data[4:]
        if len(payload) < 8:  # the connection sees to that
            continue
        try:
            await desk.take(payload)
        except MalformedRequestError:
            refused += 1
    assert refused > 500
    assert len(desk.asked) > 500


@pytest.mark.parametrize("rows", [SHORT_ROWS, SHORT_ROWS + 1])
async def test_a_long_answer_is_encoded_beside_the_event_loop(
    desk: Desk, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    places: list[threading.Thread] = []

    def write(*arguments: Any) -> bytes:
        places.append(threading.current_thread())
        return write_message(*arguments)

    monkeypatch.setattr(dispatch, "write_message", write)
    desk.brokers = [{"node_id": 1, "host": "h", "port": 1, "rack": None}] * rows
    answer = await desk.take(encode_request(ApiKey.METADATA, 4, 1, {"topics": []}))
    await eventually_async(lambda: answer.sent is not None)
    assert (places == [threading.current_thread()]) == (rows == SHORT_ROWS)


async def test_answers_that_hold_memory_do_not_wait_for_each_other(desk: Desk) -> None:
    """Each acquired less than its answer came to, and together they hold nearly all there is."""
    desk.answers = desk.dispatcher._answers = MemoryBudget(100_000)
    desk.acquired_bytes, desk.all_here = 40_000, asyncio.Barrier(2)
    desk.brokers = [{"node_id": 1, "host": "h" * 250, "port": 1, "rack": None}] * 250
    payload = encode_request(ApiKey.METADATA, 4, 1, {"topics": []})
    first, second = await asyncio.gather(desk.take(payload), desk.take(payload))
    await eventually_async(lambda: first.sent is not None and second.sent is not None)
