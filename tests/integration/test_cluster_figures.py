"""Metrics of the items that the cluster's limits bound."""

from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.stateless_broker.fetch.reading import ReadCounts
from bucketlog.stateless_broker.network.request_figures import RequestFigures
from bucketlog.stateless_broker.process.metrics import (
    BoundedState,
    BrokerFigures,
    FigureSources,
    MemoryBudgets,
    WorkCounts,
)
from tests.rigs.broker_rig import Rig, create_topic, produce, until


def figures(rig: Rig) -> dict[str, float]:
    sources = FigureSources(
        bucket=rig.counts,
        budgets=MemoryBudgets(frames=rig.budget, answers=rig.node.answers),
        health=rig.health,
        work=WorkCounts(rig.node.parts.upkeep, ReadCounts()),
        requests=RequestFigures(slow_request_ms=0),
        limits={"offsets_max": 7},
        state=BoundedState(
            view=lambda: rig.node.view,
            producers=lambda: rig.node.parts.cluster.sequencer.producer_rows,
            group_bytes=lambda: rig.node.epochs.group_bytes,
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
