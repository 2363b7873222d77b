"""A client with a fetch session and one without see the same, whatever happens to the log.

Records are produced, log starts move, topics are deleted and made anew, partitions join and leave
the session, offsets advance and jump, the session is evicted. After each poll, what the session has
told of each partition equals what a full request is told at that moment; a partition that the
session leaves out has no records and no error.
"""

import asyncio
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from bucketlog.log_format.batch import read_header
from bucketlog.log_format.model import TopicId, TopicIdPartition
from bucketlog.metadata.facts import TopicCreated, TopicDeleted
from tests.models.indexes import begin
from tests.models.partition_batches import Planned, made
from tests.rigs.session_client import SessionClient
from tests.rigs.tiered_log import TieredLog

TOPICS = ("a", "b")
PARTITIONS = 3
PLACE = st.tuples(st.sampled_from(TOPICS), st.integers(0, PARTITIONS))
"""The last number is that of a partition that does not exist."""
STEP = st.one_of(
    st.tuples(st.just("produce"), PLACE, st.integers(1, 3)),
    st.tuples(st.just("begin"), PLACE, st.integers(0, 9)),
    st.tuples(st.just("want"), PLACE, st.integers(0, 9)),
    st.tuples(st.just("leave"), PLACE, st.just(0)),
    st.tuples(st.just("consume"), PLACE, st.just(0)),
    st.tuples(st.just("recreate"), PLACE, st.just(0)),
    st.tuples(st.just("delete"), PLACE, st.just(0)),
    st.tuples(st.just("evict"), PLACE, st.just(0)),
    st.tuples(st.just("poll"), PLACE, st.just(0)),
    st.tuples(st.just("poll"), PLACE, st.just(0)),
)


class ChangingLog(TieredLog):
    """Topics by name, which a test deletes and makes anew."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: dict[str, TopicId] = {}
        self._made = 0
        for name in TOPICS:
            self.create(name)

    def create(self, name: str) -> None:
        self._made += 1
        topic_id = UUID(int=self._made)
        self.ids[name] = TopicId(topic_id.bytes)
        self.tell(TopicCreated(topic_id=topic_id, name=name, partitions=PARTITIONS))

    def delete_topic(self, name: str) -> None:
        topic_id = self.ids.pop(name, None)
        if topic_id is not None:
            self.tell(TopicDeleted(topic_id=UUID(bytes=topic_id), name=name))

    def place(self, name: str, number: int) -> TopicIdPartition | None:
        if name not in self.ids or number >= PARTITIONS:
            return None
        return TopicIdPartition(self.ids[name], number)

    def produce(self, name: str, number: int, records: int) -> None:
        partition = self.place(name, number)
        log = None if partition is None else self.view.log(partition)
        if partition is not None and log is not None:
            start = max(log.high_watermark, log.batches_from)
            self.append(made([Planned(0, records, 1)], start), partition)

    def offset_at(self, name: str, number: int, choice: int) -> int:
        """Mostly the end, as a consumer has it that waits for records."""
        partition = self.place(name, number)
        log = None if partition is None else self.view.log(partition)
        if log is None or choice > 7:
            return choice
        return log.high_watermark if choice else log.batches_from

    def begin_partition(self, name: str, number: int, offset: int) -> None:
        partition = self.place(name, number)
        log = None if partition is None else self.view.log(partition)
        if partition is not None and log is not None:
            self.tell(begin({partition: min(offset, log.high_watermark)}))


async def walk(steps: list[tuple[str, tuple[str, int], int]], version: int) -> None:
    log = ChangingLog()
    client = SessionClient(log, version=version, ids=dict(log.ids))
    for kind, (name, number), value in steps:
        place = name, number
        if kind == "produce":
            log.produce(name, number, value)
        elif kind == "begin":
            log.begin_partition(name, number, value)
        elif kind == "want":
            client.offsets[place] = log.offset_at(name, number, value)
        elif kind == "leave":
            client.offsets.pop(place, None)
        elif kind == "consume" and place in client.offsets and place in client.known:
            data = client.known[place].records
            if data:
                client.offsets[place] = read_header(data).next_offset
        elif kind in ("delete", "recreate"):
            log.delete_topic(name)
            if kind == "recreate":
                log.create(name)
        elif kind == "evict":
            log.sessions.close(client.session_id, client.connection.payer)
        elif kind == "poll":
            await check(client)
    await check(client)
    await check(client)


async def check(client: SessionClient) -> None:
    told = await client.poll()
    if told is None:
        assert client.errors.pop() is ErrorCode.fetch_session_id_not_found
        told = await client.poll()
    assert told is not None
    for place, wanted in (await client.poll_all()).items():
        if place in told:
            assert told[place] == wanted
        else:
            assert client.known[place]._replace(records=b"") == wanted
            assert wanted.error is ErrorCode.none
    assert told.keys() <= client.offsets.keys()


@settings(max_examples=150)
@given(st.lists(STEP, max_size=40), st.sampled_from([12, 13]))
def test_a_session_shows_what_full_requests_show(
    steps: list[tuple[str, tuple[str, int], int]], version: int
) -> None:
    asyncio.run(walk(steps, version))
