"""Dispatch: every API and version that is offered, those that are not, and frames given back."""

import asyncio
import struct
import threading
from collections.abc import Sequence
from typing import Any, cast
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.log_format.model import Buffer
from bucketlog.log_format.wire import fetch, produce
from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.frames import FrameReader, MalformedRequestError
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
from bucketlog.stateless_broker.authorization.needs import NOTHING
from bucketlog.stateless_broker.network import dispatch
from bucketlog.stateless_broker.network.apis import Api, Request, Routes
from bucketlog.stateless_broker.network.connection import Connection
from bucketlog.stateless_broker.network.dispatch import INLINE_REQUEST_BYTES, Dispatcher
from bucketlog.stateless_broker.network.exchange import Frame, ResponseSlot, UnsettledChanges
from bucketlog.stateless_broker.network.memory_budget import MemoryBudget
from bucketlog.stateless_broker.network.message_reader import read_message
from bucketlog.stateless_broker.network.messages import write_message
from bucketlog.stateless_broker.network.request_order import UNORDERED
from bucketlog.stateless_broker.network.response_rows import COUNTED_ROWS, SHORT_ROWS, error_codes
from bucketlog.stateless_broker.supervision import Supervisor
from tests.fuzz.requests import Generator
from tests.fuzz.values import World
from tests.rigs.patience import PATIENCE_S, eventually_async
from tests.rigs.wire_client import decode_response, encode_request, fetch_values

ITEMS_MAX = 5


class Caller:
    """In a connection's place: who calls does not go."""

    host = payer = "127.0.0.1"
    login, muted_ms = None, 0
    principal = "User:ANONYMOUS"
    changes = UnsettledChanges()
    shook_hands = staticmethod(lambda name, version: None)

    def give_up_with_client(self, task: asyncio.Task[None]) -> None:
        pass


CONNECTION = cast(Connection, Caller())


class Answered(ResponseSlot):
    """Keeps what was answered."""

    __slots__ = ("closed", "holds_back", "sent")
    throttle_ms = 0

    def __init__(self) -> None:
        self.sent: bytes | None = None
        self.lease = None
        self.closed: str | None = None
        self.holds_back = False

    def begin_change(self) -> None:
        pass

    def send(self, parts: Sequence[Buffer], *, is_settled: bool = True) -> None:
        self.give_back()
        self.sent = b"".join(parts)

    def hold_back_later_requests(self) -> None:
        self.holds_back = True

    def let_later_requests_in(self) -> None:
        self.holds_back = False

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
            Api(METADATA, self._metadata, NOTHING, UNORDERED),
            Api(INIT_PRODUCER_ID, self._init_producer_id, NOTHING, UNORDERED),
        ]
        self.dispatcher.serve(Routes(None, apis, self._produce, self._fetch))

    async def _metadata(self, request: Request, message: MetadataRequest) -> MetadataResponse:
        self.asked.append((request, message))
        if self.failure is not None:
            raise self.failure
        await request.memory.acquire(self.acquired_bytes)
        await self.all_here.wait()
        none = ErrorCode.none
        found: MetadataResponse = {"brokers": self.brokers, "topics": [], "error_code": none}
        return found | {"cluster_id": "c", "controller_id": 1}

    async def _init_producer_id(
        self, request: Request, message: InitProducerIdRequest
    ) -> InitProducerIdResponse:
        self.asked.append((request, message))
        return {"error_code": ErrorCode.none, "producer_id": 7, "producer_epoch": 0}

    def _produce(
        self,
        request: Request,
        frame: Frame,
        reader: FrameReader,
        answer: ResponseSlot,
    ) -> None:
        frame.release()
        self.asked.append((request, produce.read_request(reader, request.header.api_version)))

    async def _fetch(self, request: Request, message: fetch.FetchRequest) -> list[Buffer]:
        self.asked.append((request, message))
        return fetch.write_response(request.header.api_version, ErrorCode.none, [])

    def begin(self, payload: bytes) -> Answered:
        answer = Answered()
        self.budget.acquire(len(payload), self, lambda: None)
        self.dispatcher.handle(CONNECTION, Frame(bytearray(payload), self.budget), answer)
        return answer

    async def take(self, payload: bytes) -> Answered:
        """A request that is not long."""
        try:
            answer = self.begin(payload)
        finally:
            assert self.budget.held_bytes == 0, "the frame was not given back"
        for _ in range(5):
            await asyncio.sleep(0)
        return answer


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.mark.parametrize("version", range(14))
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


@pytest.mark.parametrize("is_cut", [False, True])
async def test_a_large_request_is_decoded_beside_the_event_loop(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, is_cut: bool
) -> None:
    """Later requests of its connection wait; requests of other connections do not."""
    gate, threads = threading.Event(), []

    def read(*given: Any, **limits: Any) -> Any:
        threads.append(threading.current_thread())
        if len(threads) == 1:
            assert gate.wait(PATIENCE_S)
        return read_message(*given, **limits)

    monkeypatch.setattr(dispatch, "read_message", read)
    values = {"topics": [{"name": "x" * (dispatch.INLINE_REQUEST_BYTES // 2)}] * 2}
    large = encode_request(ApiKey.METADATA, 1, 1, values)
    small = encode_request(ApiKey.METADATA, 1, 2, {"topics": []})
    answer: Answered = Answered()
    data = bytearray(large[:-1] if is_cut else large)
    desk.budget.acquire(len(data), desk, lambda: None)
    desk.dispatcher.handle(CONNECTION, Frame(data, desk.budget), answer)
    assert answer.holds_back
    await eventually_async(lambda: bool(threads))
    other = Answered()
    desk.budget.acquire(len(small), desk, lambda: None)
    desk.dispatcher.handle(CONNECTION, Frame(bytearray(small), desk.budget), other)
    await eventually_async(lambda: other.sent is not None)
    assert answer.holds_back
    gate.set()
    await eventually_async(lambda: is_cut or not answer.holds_back)
    if is_cut:
        await eventually_async(lambda: answer.closed is not None)
    else:
        await eventually_async(lambda: answer.sent is not None)
        assert len(desk.asked[1][1].topics) == 2
    assert desk.budget.held_bytes == 0
    assert threads[0] is not threading.main_thread() is threads[1]


@pytest.mark.parametrize("api_key", [-1, 4, 999, 2**15 - 1])
async def test_an_unknown_api_ends_the_connection(desk: Desk, api_key: int) -> None:
    with pytest.raises(MalformedRequestError, match="unknown api key"):
        await desk.take(struct.pack(">hhih", api_key, 0, 1, -1))
    assert desk.asked == []


@pytest.mark.parametrize(
    ("api_key", "version"),
    [
        (ApiKey.METADATA, 14),
        (ApiKey.METADATA, -1),
        (ApiKey.PRODUCE, 2),
        (ApiKey.PRODUCE, 14),
        (ApiKey.FETCH, 3),
        (ApiKey.FETCH, 19),
        (ApiKey.INIT_PRODUCER_ID, 7),
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
        ApiKey.METADATA: (0, 13),
        ApiKey.API_VERSIONS: (0, 4),
        ApiKey.INIT_PRODUCER_ID: (0, 6),
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


async def test_a_fetch_that_waits_a_negative_time_is_not_slow(desk: Desk) -> None:
    """A request is logged as slow if it took much longer than it asked to wait."""
    values = {**fetch_values("t", {0: 0}), "max_wait": -(2**31)}
    answer = await desk.take(encode_request(ApiKey.FETCH, 11, 1, values))
    assert answer.may_wait_s == 0


async def test_mutated_requests_are_answered_or_refused_and_given_back(desk: Desk) -> None:
    """Whatever is sent, nothing but `MalformedRequestError` reaches the connection."""
    offered = (ApiKey.METADATA, ApiKey.INIT_PRODUCER_ID, ApiKey.API_VERSIONS)
    generator = Generator(
        World({"topic": UUID(int=1)}), 7, (*offered, ApiKey.PRODUCE, ApiKey.FETCH)
    )
    refused = 0
    for number in range(5000):
        payload = generator.frame(number).data[4:]
        if not 8 <= len(payload) <= INLINE_REQUEST_BYTES:  # the connection refuses shorter ones
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


LONG = encode_request(ApiKey.METADATA, 4, 1, {"topics": [{"name": "t" * 30_000}] * 2})


async def test_a_long_malformed_request_ends_its_connection(desk: Desk) -> None:
    answer = desk.begin(LONG[:-1000])
    await eventually_async(lambda: answer.closed is not None)
    assert "do not fit" in str(answer.closed)
    assert not desk.asked
    assert not desk.budget.held_bytes


async def test_answers_that_hold_memory_do_not_wait_for_each_other(desk: Desk) -> None:
    """Each acquired less than its answer came to, and together they hold nearly all there is."""
    desk.answers = desk.dispatcher._answers = MemoryBudget(100_000)
    desk.acquired_bytes, desk.all_here = 40_000, asyncio.Barrier(2)
    desk.brokers = [{"node_id": 1, "host": "h" * 250, "port": 1, "rack": None}] * 250
    payload = encode_request(ApiKey.METADATA, 4, 1, {"topics": []})
    first, second = await asyncio.gather(desk.take(payload), desk.take(payload))
    await eventually_async(lambda: first.sent is not None and second.sent is not None)


def test_errors_of_partitions_count_up_to_a_limit() -> None:
    failed = {"error_code": ErrorCode.policy_violation}
    partitions = [failed, {"error_code": ErrorCode.none}]
    codes = [*error_codes({"topics": [{"name": "t", "partitions": partitions}] * 2})]
    assert codes == [ErrorCode.policy_violation] * 2
    many = [{"error_code": ErrorCode.invalid_request, "partitions": [failed] * 1_000}] * 1_000
    assert len([*error_codes({**failed, "topics": many})]) == 1 + 2 * COUNTED_ROWS
