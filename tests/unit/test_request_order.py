"""Which requests of a connection wait for earlier ones, and what each API says about this.

Invariant: an API without a row in `CHANGES`, `READS` or `NEITHER` fails these tests. Whoever serves
a new API says there what kind it is.
"""

import asyncio
import struct
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.log_format.model import Buffer
from bucketlog.log_format.wire import fetch, produce
from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.frames import FrameReader
from bucketlog.log_format.wire.messages.create_topics import (
    CREATE_TOPICS,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from bucketlog.log_format.wire.messages.list_offsets import (
    LIST_OFFSETS,
    ListOffsetsRequest,
    ListOffsetsResponse,
)
from bucketlog.log_format.wire.served_versions import SERVED_VERSIONS
from bucketlog.stateless_broker.authorization.needs import NOTHING
from bucketlog.stateless_broker.network.apis import (
    FETCH_ORDER,
    PRODUCE_ORDER,
    Api,
    Request,
    Routes,
)
from bucketlog.stateless_broker.network.dispatch import Dispatcher
from bucketlog.stateless_broker.network.exchange import Frame, ResponseSlot
from bucketlog.stateless_broker.network.memory_budget import MemoryBudget
from bucketlog.stateless_broker.network.request_order import (
    UNORDERED,
    Ordering,
    State,
    places,
    reads,
)
from bucketlog.stateless_broker.supervision import Supervisor
from tests.rigs.fake_wire import LONGEST, Owner, Wire, connect, framed, turn
from tests.rigs.offered_apis import offered
from tests.rigs.wire_client import encode_request, fetch_values
from tests.scenarios.pipelined_pairs import PAIRS, Message, create_topics, list_offsets
from tests.scenarios.pipelined_pairs import produce as produce_message

CHANGES = {
    ApiKey.PRODUCE,
    ApiKey.OFFSET_COMMIT,
    ApiKey.LEAVE_GROUP,
    ApiKey.CREATE_TOPICS,
    ApiKey.DELETE_TOPICS,
    ApiKey.DELETE_RECORDS,
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.ADD_OFFSETS_TO_TXN,
    ApiKey.END_TXN,
    ApiKey.WRITE_TXN_MARKERS,
    ApiKey.TXN_OFFSET_COMMIT,
    ApiKey.CREATE_ACLS,
    ApiKey.DELETE_ACLS,
    ApiKey.ALTER_CONFIGS,
    ApiKey.CREATE_PARTITIONS,
    ApiKey.DELETE_GROUPS,
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
    ApiKey.OFFSET_DELETE,
    ApiKey.ALTER_CLIENT_QUOTAS,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
    ApiKey.CREATE_DELEGATION_TOKEN,
    ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ApiKey.SHARE_GROUP_HEARTBEAT,
    ApiKey.SHARE_ACKNOWLEDGE,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS,
}
READS = {
    ApiKey.FETCH,
    ApiKey.LIST_OFFSETS,
    ApiKey.METADATA,
    ApiKey.OFFSET_FETCH,
    ApiKey.DESCRIBE_GROUPS,
    ApiKey.LIST_GROUPS,
    ApiKey.OFFSET_FOR_LEADER_EPOCH,
    ApiKey.DESCRIBE_ACLS,
    ApiKey.DESCRIBE_CONFIGS,
    ApiKey.DESCRIBE_LOG_DIRS,
    ApiKey.DESCRIBE_CLIENT_QUOTAS,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
    ApiKey.DESCRIBE_PRODUCERS,
    ApiKey.DESCRIBE_TRANSACTIONS,
    ApiKey.LIST_TRANSACTIONS,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    ApiKey.LIST_CONFIG_RESOURCES,
    ApiKey.ELECT_LEADERS,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS,
    ApiKey.LIST_PARTITION_REASSIGNMENTS,
    ApiKey.DESCRIBE_DELEGATION_TOKEN,
    ApiKey.CONSUMER_GROUP_DESCRIBE,
    ApiKey.SHARE_GROUP_DESCRIBE,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
}
NEITHER = {
    ApiKey.API_VERSIONS: "says what the broker is",
    ApiKey.DESCRIBE_CLUSTER: "says which brokers are alive",
    ApiKey.DESCRIBE_QUORUM: "there is no quorum",
    ApiKey.UPDATE_FEATURES: "the levels of features are fixed",
    ApiKey.FIND_COORDINATOR: "says which brokers are alive",
    ApiKey.SASL_HANDSHAKE: "a login has rules of its own",
    ApiKey.SASL_AUTHENTICATE: "a login has rules of its own",
    ApiKey.JOIN_GROUP: "waits for other members",
    ApiKey.SYNC_GROUP: "waits for other members",
    ApiKey.SHARE_FETCH: "waits for records",
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: "says which metrics the broker wants",
    ApiKey.PUSH_TELEMETRY: "metrics of a client: nothing of the log",
    ApiKey.HEARTBEAT: "must not be late; nobody reads what it changes",
}
APIS = offered().apis
ORDERINGS = {key: api.order for key, api in APIS.items()}
ORDERINGS |= {ApiKey.PRODUCE: PRODUCE_ORDER, ApiKey.FETCH: FETCH_ORDER}


def test_each_api_says_whether_it_changes_or_reads() -> None:
    assert ORDERINGS.keys() == SERVED_VERSIONS.keys()
    assert {key for key, order in ORDERINGS.items() if order.changes} == CHANGES
    assert {key for key, order in ORDERINGS.items() if order == reads(order.reads)} == {
        *READS,
        *NEITHER,
    }
    assert {key for key, order in ORDERINGS.items() if order == UNORDERED} == NEITHER.keys()


def test_what_is_changed_is_read_and_the_reverse() -> None:
    changed = {state for state in State if any(o.changes & state for o in ORDERINGS.values())}
    read = {state for state in State if any(o.reads & state for o in ORDERINGS.values())}
    assert changed == read == set(State)


def test_requests_that_hold_others_back_or_wait_for_clients_change_nothing() -> None:
    for key, api in APIS.items():
        if api.large_answers or api.waits or api.login:
            assert not api.order.changes, key.message_name
        if api.waits or api.login:
            assert api.order == UNORDERED, key.message_name


def test_audited_changes_are_changes() -> None:
    audited = {key for key, api in APIS.items() if api.audit is not None}
    unchanging = {
        ApiKey.ELECT_LEADERS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.UPDATE_FEATURES,
    }
    assert audited - CHANGES == unchanging


def test_the_second_request_of_each_pair_waits_for_the_first() -> None:
    found = places(ORDERINGS.items())
    for name, pair in PAIRS.items():
        assert pair.first("t").key in found[pair.second("t").key].waits_for, name


def test_requests_of_one_api_do_not_wait_for_each_other() -> None:
    assert not [key for key, place in places(ORDERINGS.items()).items() if key in place.waits_for]


def test_an_api_waits_for_changes_of_what_it_reads() -> None:
    found = places(
        {
            1: Ordering(State.TOPICS, State.RECORDS),
            2: Ordering(State.NOTHING, State.TOPICS),
            3: reads(State.RECORDS),
            4: UNORDERED,
        }.items()
    )
    waits_for = {key: set(place.waits_for) for key, place in found.items()}
    assert waits_for == {1: {2}, 2: set(), 3: {1}, 4: set()}
    assert [place.is_change for place in found.values()] == [True, True, False, False]


class Desk:
    """A broker's dispatcher behind a connection. Produce and CreateTopics end when the test says
    so. `begun` lists requests in the order of their begin."""

    def __init__(self) -> None:
        self.begun: list[ApiKey] = []
        self.open_produces: list[ResponseSlot] = []
        self.created = asyncio.Event()
        self.budget = MemoryBudget(LONGEST)
        self.owner = Owner()
        self._supervisor = Supervisor()
        dispatcher = Dispatcher(
            supervisor=self._supervisor, request_items_max=100, answers=MemoryBudget(LONGEST)
        )
        order = ORDERINGS[ApiKey.LIST_OFFSETS]
        apis: list[Api[Any, Any]] = [
            Api(CREATE_TOPICS, self._create, NOTHING, ORDERINGS[ApiKey.CREATE_TOPICS]),
            Api(LIST_OFFSETS, self._list, NOTHING, order, large_answers=True),
        ]
        dispatcher.serve(Routes(None, apis, self._produce, self._fetch))
        self.wire: Wire = connect(dispatcher.handle, budget=self.budget, owner=self.owner)

    async def send(self, *messages: Message) -> None:
        for number, each in enumerate(messages):
            self.wire.carry(framed(encode_request(each.key, each.version, number, each.values)))
        await turn()

    async def settle(self, number: int = 0) -> None:
        self.open_produces.pop(number).send([b"done"])
        await turn()

    def _produce(
        self, request: Request, frame: Frame, reader: FrameReader, answer: ResponseSlot
    ) -> None:
        self.begun.append(ApiKey.PRODUCE)
        acks = produce.read_request(reader, request.header.api_version).acks
        frame.release()
        self.open_produces.append(answer)
        if acks == 0:
            answer.send([], is_settled=False)

    async def _create(self, request: Request, message: CreateTopicsRequest) -> CreateTopicsResponse:
        self.begun.append(ApiKey.CREATE_TOPICS)
        await self.created.wait()
        return {"topics": []}

    async def _list(self, request: Request, message: ListOffsetsRequest) -> ListOffsetsResponse:
        self.begun.append(ApiKey.LIST_OFFSETS)
        return {"topics": []}

    async def _fetch(self, request: Request, message: fetch.FetchRequest) -> list[Buffer]:
        self.begun.append(ApiKey.FETCH)
        return fetch.write_response(request.header.api_version, ErrorCode.none, [])


PRODUCE, SILENT = produce_message("t"), produce_message("t", acks=0)
LIST, CREATE = list_offsets("t"), create_topics("t")
FETCH = Message(ApiKey.FETCH, 11, fetch_values("t", {0: 0}))


@pytest.mark.parametrize("reader", [LIST, FETCH])
@pytest.mark.parametrize("writer", [PRODUCE, SILENT])
async def test_a_reader_waits_for_all_earlier_changes_of_what_it_reads(
    reader: Message, writer: Message
) -> None:
    desk = Desk()
    await desk.send(writer, writer, reader)
    assert desk.begun == [ApiKey.PRODUCE] * 2
    await desk.settle(1)
    assert desk.begun == [ApiKey.PRODUCE] * 2
    await desk.settle()
    assert desk.begun[2:] == [reader.key]
    assert desk.budget.held_bytes == 0


async def test_changes_of_one_api_do_not_wait() -> None:
    desk = Desk()
    await desk.send(*[PRODUCE] * 5)
    assert desk.begun == [ApiKey.PRODUCE] * 5


async def test_later_requests_wait_behind_one_that_waits() -> None:
    desk = Desk()
    await desk.send(PRODUCE, LIST, PRODUCE, PRODUCE)
    assert desk.begun == [ApiKey.PRODUCE]
    await desk.settle()
    assert desk.begun == [ApiKey.PRODUCE, ApiKey.LIST_OFFSETS, ApiKey.PRODUCE, ApiKey.PRODUCE]
    assert len(desk.wire.answers()) == 2


async def test_a_change_that_has_waited_holds_no_later_request_back() -> None:
    desk = Desk()
    await desk.send(CREATE, PRODUCE, PRODUCE)
    assert desk.begun == [ApiKey.CREATE_TOPICS]
    desk.created.set()
    await turn()
    assert desk.begun == [ApiKey.CREATE_TOPICS, ApiKey.PRODUCE, ApiKey.PRODUCE]
    await desk.settle(1)
    assert len(desk.wire.answers()) == 1, "the responses keep the order of the requests"
    await desk.settle()
    assert len(desk.wire.answers()) == 3


async def test_a_reader_without_earlier_changes_does_not_wait() -> None:
    desk = Desk()
    await desk.send(LIST, PRODUCE)
    assert desk.begun == [ApiKey.LIST_OFFSETS, ApiKey.PRODUCE]
    await desk.send(CREATE)
    assert desk.begun[2:] == [ApiKey.CREATE_TOPICS], "it does not read records"


async def test_a_closed_connection_gives_the_waiting_request_back() -> None:
    desk = Desk()
    await desk.send(PRODUCE, LIST)
    assert desk.budget.held_bytes > 0
    desk.wire.connection.connection_lost(None)
    assert desk.budget.held_bytes == 0
    await desk.settle()
    assert desk.begun == [ApiKey.PRODUCE]


async def test_an_invalid_request_that_has_waited_ends_the_connection() -> None:
    desk = Desk()
    await desk.send(PRODUCE)
    frame = encode_request(LIST.key, LIST.version, 1, LIST.values)
    desk.wire.carry(framed(frame[:-6] + struct.pack(">i", 2**30)))
    await turn()
    assert desk.owner.reasons == []
    await desk.settle()
    assert desk.wire.closed
    assert desk.begun == [ApiKey.PRODUCE]
    assert desk.budget.held_bytes == 0
