"""Metrics of the items that the cluster's limits bound."""

from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.stateless_broker.fetch.session_cache import EVICTION_MS
from bucketlog.stateless_broker.network.request_figures import RequestFigures
from bucketlog.stateless_broker.process.metrics import (
    BoundedState,
    BrokerFigures,
    FigureSources,
    MemoryBudgets,
)
from tests.rigs.broker_rig import Rig, create_topic, produce, until
from tests.rigs.several_brokers import Brokers
from tests.rigs.transactional_client import TransactionalClient
from tests.rigs.wire_client import fetch_values


def figures(rig: Rig) -> dict[str, float]:
    sources = FigureSources(
        bucket=rig.counts,
        budgets=MemoryBudgets(frames=rig.budget, answers=rig.node.answers),
        health=rig.health,
        work=rig.node.parts.counts,
        requests=RequestFigures(slow_request_ms=0),
        limits={"offsets_max": 7},
        state=BoundedState(
            view=lambda: rig.node.view,
            producers=lambda: rig.node.parts.cluster.sequencer.producer_rows,
            group_bytes=lambda: rig.node.epochs.group_bytes,
            fetch_sessions=lambda: rig.node.parts.log.sessions,
        ),
    )
    rendered = BrokerFigures(sources).render()
    lines = [line for line in rendered.decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


async def test_metrics_show_what_the_cluster_holds(rig: Rig) -> None:
    await create_topic(rig, "u", 3)
    for producer in (7, 8):
        done = await produce(rig, producer_id=producer, producer_epoch=0, base_sequence=0)
        assert done[0] is ErrorCode.none
    row = {"committed_offset": 1, "committed_leader_epoch": -1, "committed_metadata": "m" * 200}
    rows = [row | {"partition_index": number} for number in range(3)]
    await rig.call(
        ApiKey.OFFSET_COMMIT,
        8,
        group_id="g",
        generation_id_or_member_epoch=-1,
        member_id="",
        group_instance_id=None,
        topics=[{"name": "u", "partitions": rows}],
    )
    await until(lambda: figures(rig)["bucketlog_producers"] == 2)
    found = figures(rig)
    assert found['bucketlog_limit{setting="offsets_max"}'] == 7
    assert found["bucketlog_coordinated_groups_bytes"] == 0
    assert {
        name: found[f"bucketlog_{name}"]
        for name in (
            "topics",
            "partitions",
            "groups_with_offsets",
            "committed_offsets",
            "producers",
        )
    } == {
        "topics": 2,
        "partitions": 7,
        "groups_with_offsets": 1,
        "committed_offsets": 6,
        "producers": 2,
    }


async def test_metrics_show_fetch_sessions_and_evictions(brokers: Brokers) -> None:
    rig = await brokers.start(fetch_session_cache_slots_max=2)
    await create_topic(rig, "t", 3)

    async def open_session(partitions: int) -> int:
        values = fetch_values("t", dict.fromkeys(range(partitions), 0))
        answer = await rig.call(ApiKey.FETCH, 11, **values | {"session_epoch": 0})
        return int(answer.session_id)

    def sessions() -> dict[str, float]:
        found = figures(rig)
        names = ("sessions", "session_partitions", "session_evictions_total")
        return {name: found[f"bucketlog_fetch_{name}"] for name in names}

    assert await open_session(1)
    assert await open_session(3)
    assert sessions() == {"sessions": 2, "session_partitions": 4, "session_evictions_total": 0}
    assert figures(rig)["bucketlog_fetch_session_bytes"] == rig.node.parts.log.sessions.bytes > 0
    for session in rig.node.parts.log.sessions._sessions.values():
        session.used_ms -= 2 * EVICTION_MS
    assert await open_session(2)
    assert sessions() == {"sessions": 2, "session_partitions": 5, "session_evictions_total": 1}


async def test_metrics_show_open_and_ended_transactions(brokers: Brokers) -> None:
    rig = await brokers.start(transactions=True)
    await create_topic(rig, "t", 2)
    client = TransactionalClient(rig)
    assert await client.init() is ErrorCode.none

    def shown() -> tuple[float, float, float]:
        found = figures(rig)
        return (
            found["bucketlog_transactional_ids"],
            found["bucketlog_open_transactions"],
            found["bucketlog_unstable_offsets_max"],
        )

    assert shown() == (1, 0, 0)
    for value in (b"a", b"b", b"c"):
        assert await client.produce(value) is ErrorCode.none
    assert await client.produce(b"d", partition=1) is ErrorCode.none
    assert shown() == (1, 1, 3)
    assert await client.end() is ErrorCode.none
    assert await client.end(commit=False) is ErrorCode.none
    assert shown() == (1, 0, 0)
    ended = {name: value for name, value in figures(rig).items() if "_ended_total{b" in name}
    assert ended == {
        'bucketlog_transactions_ended_total{by="client",outcome="aborted"}': 1,
        'bucketlog_transactions_ended_total{by="client",outcome="committed"}': 1,
        'bucketlog_transactions_ended_total{by="server",outcome="aborted"}': 0,
    }
