"""Activation, the server's identity and what is lost, brokers' heartbeats, producer ids."""

from collections.abc import Awaitable
from typing import Any

import pytest

from bucketlog.log_format.errors import (
    ConfigurationError,
    SequencerLostError,
    SequencerUnavailableError,
)
from bucketlog.log_format.model import Ticket, TopicIdPartition
from bucketlog.metadata.fold import LogState, PartitionState, TopicState
from bucketlog.metadata.producers import LogClock, ProducedBatch, ProducerTable
from bucketlog.metadata.sequencer.live_brokers import BrokerAddress, LiveBrokers
from bucketlog.metadata.sequencer.redis_keys import KEYS, STAGED
from bucketlog.metadata.sequencer.requests import (
    Activation,
    BatchAnswer,
    BatchStatus,
    PublishStatus,
)
from tests.servers.sequencing import Sequencing, plain, produced

META_FIELDS = (
    *("epoch", "run_id", "replid", "ticket", "visible", "producer", "group_term"),
    *("stream_start", "stream_end"),
)
STATE_KEYS = [key.name for key in KEYS if key.name not in ("visible", "nonces", "brokers")]


async def every_verb_is_lost(sequencing: Sequencing, match: str) -> None:
    verbs: list[Awaitable[Any]] = [
        sequencing.ask(sequencing.a, {("t", 0): [plain()]}),
        sequencing.publish(sequencing.a, 0),
        sequencing.sequencer.register_writer(1, sequencing.b),
        sequencing.sequencer.producer_ids(1, 10),
        sequencing.sequencer.check_state(1),
        sequencing.fence(sequencing.a, 1),
        sequencing.sequencer.overdue(1, silent_ms=1, pending_ms=1),
        sequencing.sequencer.position(1),
        sequencing.sequencer.visible_number(1),
        sequencing.sequencer.take_group(1, "g", "one"),
        sequencing.sequencer.store_group(1, "g", 1, 1, "Stable", "consumer", b""),
        sequencing.sequencer.forget_group(1, "g", 1),
        sequencing.sequencer.list_groups(1),
    ]
    for verb in verbs:
        with pytest.raises(SequencerLostError, match=match):
            await verb
    assert await sequencing.sequencer.active_epoch() is None


async def beat(sequencing: Sequencing) -> object:
    return await sequencing.sequencer.heartbeat(
        "one",
        node_id=1,
        address=BrokerAddress("127.0.0.1", 9092, ""),
        writer=sequencing.a,
        session_timeout_ms=1000,
        role_timeout_ms=1000,
        serves=True,
    )


async def set_meta(sequencing: Sequencing, name: str, text: str) -> None:
    await sequencing.redis.hset(sequencing.key("meta"), name, text)


# What is lost ----------------------------------------------------------------------------------


async def test_an_empty_server_is_lost(sequencing: Sequencing) -> None:
    await sequencing.redis.flushall()
    await every_verb_is_lost(sequencing, "lost: the sequencer has no state")


@pytest.mark.parametrize("name", META_FIELDS)
async def test_a_missing_field_is_lost(sequencing: Sequencing, name: str) -> None:
    await sequencing.redis.hdel(sequencing.key("meta"), name)
    await every_verb_is_lost(sequencing, "lost: the sequencer has no state")


@pytest.mark.parametrize("name", STATE_KEYS)
async def test_a_missing_key_is_lost(sequencing: Sequencing, name: str) -> None:
    """Never read as empty: producers would be unknown, open segments forgotten."""
    assert await sequencing.redis.delete(sequencing.key(name)) == 1
    await every_verb_is_lost(sequencing, "lost: ")


@pytest.mark.parametrize("name", ["run_id", "replid"])
async def test_another_identity_is_lost(sequencing: Sequencing, name: str) -> None:
    await set_meta(sequencing, name, "0" * 40)
    await every_verb_is_lost(sequencing, "lost: the sequencer is another server")


@pytest.mark.parametrize("epoch", [1, 3])
async def test_another_epoch_is_lost(sequencing: Sequencing, epoch: int) -> None:
    await sequencing.activate(2)
    sequencing.epoch = epoch
    with pytest.raises(SequencerLostError, match="lost: the sequencer is at epoch 2"):
        await sequencing.ask(sequencing.a, {("t", 0): [plain()]})


async def test_a_ticket_that_goes_back_is_lost(sequencing: Sequencing) -> None:
    await sequencing.ask(sequencing.a, {("t", 0): [plain()]})
    await set_meta(sequencing, "ticket", "0")
    with pytest.raises(SequencerLostError, match="ticket 0 after 1: the sequencer went back"):
        await sequencing.ask(sequencing.b, {("t", 1): [plain()]})


async def test_a_replica_is_lost(sequencing: Sequencing) -> None:
    """And after its promotion it is another server, with the same run_id."""
    await sequencing.redis.replicaof("127.0.0.1", "1")
    try:
        await every_verb_is_lost(sequencing, "lost: the sequencer is now a slave")
    finally:
        await sequencing.redis.replicaof("NO", "ONE")
    await every_verb_is_lost(sequencing, "or the same one with other data")


async def test_damaged_records_are_lost_and_not_tried_again(sequencing: Sequencing) -> None:
    """A script that stops half-way may have written: it must not be repeated."""
    await sequencing.ask(sequencing.a, {("t", 0): [plain()]})
    await sequencing.redis.hset(sequencing.key("reservations"), "1", b"\xc1")
    with pytest.raises(SequencerLostError, match="a script failed, its keys are damaged"):
        await sequencing.publish(sequencing.a)


async def test_a_full_server_is_unavailable_and_has_written_nothing(
    sequencing: Sequencing,
) -> None:
    before = await sequencing.records("writers")
    await sequencing.redis.config_set("maxmemory", 1)
    try:
        with pytest.raises(SequencerUnavailableError, match="maxmemory"):
            await sequencing.ask(sequencing.a, {("t", 0): [plain()]})
    finally:
        await sequencing.redis.config_set("maxmemory", 0)
    assert await sequencing.records("writers") == before
    assert (await sequencing.batch(sequencing.a, plain())).base_offset == 0


async def test_on_a_full_server_brokers_stay_and_what_is_reserved_is_published(
    sequencing: Sequencing,
) -> None:
    await sequencing.ask(sequencing.a, {("t", 0): [plain()]})
    await sequencing.ask(sequencing.b, {("t", 1): [plain()]})
    term = (await sequencing.sequencer.take_group(1, "g", "one")).term
    await beat(sequencing)
    await sequencing.redis.config_set("maxmemory", 1)
    try:
        assert await sequencing.publish(sequencing.a) is PublishStatus.VISIBLE
        assert isinstance(await beat(sequencing), LiveBrokers)
        await sequencing.fence(sequencing.b, 0)
        assert await sequencing.sequencer.forget_group(1, "g", term)
        with pytest.raises(SequencerUnavailableError, match="maxmemory"):
            await sequencing.ask(sequencing.a, {("t", 0): [plain()]})
    finally:
        await sequencing.redis.config_set("maxmemory", 0)
    assert (await sequencing.batch(sequencing.a, plain())).base_offset == 1


async def test_a_server_that_may_evict_is_refused(fresh: Sequencing) -> None:
    assert (await fresh.sequencer.check_server()).role == "master"
    await fresh.redis.config_set("maxmemory-policy", "allkeys-lru")
    try:
        with pytest.raises(ConfigurationError, match="maxmemory-policy allkeys-lru"):
            await fresh.sequencer.check_server()
    finally:
        await fresh.redis.config_set("maxmemory-policy", "noeviction")


# Activation ------------------------------------------------------------------------------------


async def activation(fresh: Sequencing, epoch: int, state: LogState | None = None) -> Activation:
    nonce = f"nonce of {epoch}"
    await fresh.sequencer.add_nonce(nonce)
    return Activation(epoch, nonce, await fresh.sequencer.identity(), state or LogState())


async def test_an_activation_works_once(fresh: Sequencing) -> None:
    first = await activation(fresh, 1)
    await fresh.sequencer.activate(first)
    with pytest.raises(SequencerLostError, match="refused: the server is at epoch 1 already"):
        await fresh.sequencer.activate(first)
    late = Activation(2, first.nonce, first.identity, first.state)
    with pytest.raises(SequencerLostError, match="refused: the nonce was used or is unknown"):
        await fresh.sequencer.activate(late)


@pytest.mark.parametrize("epoch", [1, 4, 5])
async def test_an_epoch_that_is_not_higher_is_refused(fresh: Sequencing, epoch: int) -> None:
    await fresh.activate(5)
    with pytest.raises(SequencerLostError, match="refused: the server is at epoch 5 already"):
        await fresh.activate(epoch)


@pytest.mark.parametrize("field", ["run_id", "master_replid"])
async def test_only_on_the_server_it_was_claimed_for(fresh: Sequencing, field: str) -> None:
    mine = await activation(fresh, 1)
    identity = mine.identity._replace(**{field: "0" * 40})
    with pytest.raises(SequencerLostError, match="not the one that the epoch was claimed for"):
        await fresh.sequencer.activate(Activation(1, mine.nonce, identity, mine.state))


async def test_not_on_a_replica(fresh: Sequencing) -> None:
    mine = await activation(fresh, 1)
    await fresh.sequencer.activate(mine)
    await fresh.redis.replicaof("127.0.0.1", "1")
    try:
        connection = await fresh.redis.client_id()
        with pytest.raises(SequencerUnavailableError, match="Redis is not the primary"):
            await fresh.sequencer.add_nonce("n")
        assert await fresh.redis.client_id() != connection, "the server is left: a name may move"
        with pytest.raises(SequencerUnavailableError, match="Redis is a slave"):
            await fresh.sequencer.check_server()
        with pytest.raises(SequencerLostError, match="refused: the server is a slave"):
            await fresh.sequencer.activate(Activation(2, "n", mine.identity, LogState()))
    finally:
        await fresh.redis.replicaof("NO", "ONE")


async def test_a_wiped_server_does_not_know_the_nonce(fresh: Sequencing) -> None:
    mine = await activation(fresh, 1)
    await fresh.redis.flushall()
    with pytest.raises(SequencerLostError, match="refused: the nonce was used or is unknown"):
        await fresh.sequencer.activate(mine)


@pytest.mark.parametrize("name", STAGED)
async def test_a_stage_that_is_not_whole_is_refused(fresh: Sequencing, name: str) -> None:
    """Nothing has changed then, and the nonce is good still."""
    await fresh.activate(1)
    before = await fresh.records("topics")
    mine = await activation(fresh, 2)
    key = fresh.key(f"staged:{mine.nonce}:{name}")
    if name == "txn_deadlines":
        await fresh.redis.zadd(key, {"of somebody else": 1})
    else:
        await fresh.redis.hset(key, "of somebody else", b"")
    with pytest.raises(SequencerLostError, match=f"the staged {name} are not whole"):
        await fresh.sequencer.activate(mine)
    assert await fresh.records("topics") == before
    await fresh.sequencer.activate(mine)


async def test_a_refused_activation_leaves_no_stage_behind(fresh: Sequencing) -> None:
    state, _ = folded_state(fresh)
    await fresh.activate(3)
    with pytest.raises(SequencerLostError, match="refused"):
        await fresh.activate(2, state)
    assert [key async for key in fresh.redis.scan_iter(fresh.key("staged") + "*")] == []


def folded_state(fresh: Sequencing) -> tuple[LogState, TopicIdPartition]:
    """One topic; producer 7 has written 0-3 and 4-5 of epoch 2, at offsets 10 and 14."""
    create = fresh.wanted("create", "t", 2)
    state = LogState()
    state.topics[create.topic_id] = TopicState(create.topic_id, "t", 2, {})
    state.names["t"] = create.topic_id
    for number in range(2):
        state.partitions[TopicIdPartition(create.topic_id, number)] = PartitionState()
    partition = TopicIdPartition(create.topic_id, 0)
    state.partitions[partition] = PartitionState(
        next_offset=16,
        producers=ProducerTable(
            {7: [ProducedBatch(2, 0, 3, 10, 100), ProducedBatch(2, 4, 5, 14, 300)]}
        ),
    )
    return state, partition


async def test_what_was_folded_is_known(fresh: Sequencing) -> None:
    await fresh.activate(1)
    old = await fresh.writer()
    state, _ = folded_state(fresh)
    await fresh.activate(2, state)
    writer = await fresh.writer()
    with pytest.raises(SequencerLostError, match="unknown: writer"):
        await fresh.ask(old, {("t", 0): [plain()]}, seq=0)
    answer = await fresh.ask(
        writer,
        {
            ("t", 0): [
                produced(7, 0, 4, epoch=2),
                produced(7, 4, 2, epoch=2),
                produced(7, 9, epoch=2),
                produced(7, 0, epoch=1),
                produced(8, 1),
                produced(7, 6, epoch=2),
            ],
            ("t", 1): [plain()],
            ("t", 2): [plain()],
        },
    )
    assert [list(part) for part in answer.batches] == [
        [
            BatchAnswer(BatchStatus.DUPLICATE, 10),
            BatchAnswer(BatchStatus.DUPLICATE, 14),
            BatchAnswer(BatchStatus.OUT_OF_ORDER, 6),
            BatchAnswer(BatchStatus.FENCED, -1),
            BatchAnswer(BatchStatus.UNKNOWN_PRODUCER, 0),
            BatchAnswer(BatchStatus.OK, 16),
        ],
        [BatchAnswer(BatchStatus.OK, 0)],
        [BatchAnswer(BatchStatus.UNKNOWN_TOPIC, -1)],
    ]
    assert answer.ticket == Ticket(2, 0)
    assert list(answer.hw_stamps) == [16, 0, -1]
    assert await fresh.publish(writer) is PublishStatus.VISIBLE
    assert [(entry.epoch, entry.number) for entry in await fresh.shown()] == [(2, 1)]


@pytest.mark.parametrize(
    ("server_ms", "log_ms", "times"),
    [
        (1_000, 1_000, [100, 300]),
        (1_000, 400, [700, 900]),  # an outage of 600 ms does not count
        (400, 1_000, [100, 300]),
        (200, 1_000, [100, 200]),  # a batch from the server's future has age 0
    ],
)
async def test_producers_keep_their_age(
    fresh: Sequencing, server_ms: int, log_ms: int, times: list[int]
) -> None:
    """The age counts by the earlier of the log's clock and the server's; the duty uses it."""
    await fresh.activate(1)
    state, _ = folded_state(fresh)
    state.clock = LogClock(1, log_ms)
    fresh.now_ms = server_ms
    await fresh.activate(2, state)
    (rows,) = (await fresh.records("producers")).values()
    assert [row[5] for row in rows] == times
    fresh.now_ms = times[-1] + 50
    for idle_ms, expired in ((50, 0), (49, 1)):
        found = await fresh.sequencer.forget_producers(2, "0", count=10, idle_ms=idle_ms)
        assert found == ("0", expired, 1 - expired)
    assert await fresh.records("producers") == {}


async def test_an_activation_forgets_what_was_open(sequencing: Sequencing) -> None:
    await sequencing.ask(sequencing.a, {("t", 0): [produced(7, 0)]})
    await sequencing.ask(sequencing.b, {("t", 0): [plain()]})
    await sequencing.publish(sequencing.b)
    await sequencing.activate(2)
    for key in KEYS:
        if key.redis_type == "hash" and key.name not in ("meta", "brokers"):
            assert await sequencing.records(key.name) == {}
    assert await sequencing.open_tickets() == []
    assert await sequencing.shown() == []


# Producer ids, writers, brokers ----------------------------------------------------------------


async def test_producer_ids_are_unique_over_epochs(sequencing: Sequencing) -> None:
    ids = [await sequencing.sequencer.producer_ids(1, 1000) for _ in range(2)]
    await sequencing.activate(2)
    ids.append(await sequencing.sequencer.producer_ids(2, 1000))
    assert ids == [1 << 40, (1 << 40) + 1000, 2 << 40]


async def test_registering_again_changes_nothing(sequencing: Sequencing) -> None:
    await sequencing.ask(sequencing.a, {("t", 0): [plain()]})
    before = await sequencing.records("writers")
    sequencing.now_ms += 5
    await sequencing.sequencer.register_writer(1, sequencing.a)
    assert await sequencing.records("writers") == before


async def test_an_unreachable_server_is_unavailable(fresh: Sequencing) -> None:
    nowhere = Sequencing("unix:///nonexistent/valkey.sock")
    nowhere.epoch = 1
    with pytest.raises(SequencerUnavailableError, match="unreachable"):
        await nowhere.sequencer.producer_ids(1, 1)
    await nowhere.close()
