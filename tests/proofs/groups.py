"""The claims about consumer groups; targets of `tests.proofs`."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from bucketlog.embedded.cluster import EmbeddedCluster
from localstack.apache_kafka import running_kafka
from tests.proofs.shortfall import Figures, ShortfallError
from tests.scenarios.expansion import expansion
from tests.scenarios.group_failover import group_failover
from tests.scenarios.group_members import MEMBERS
from tests.scenarios.group_migration import group_migration
from tests.scenarios.java_member import java_member
from tests.scenarios.many_groups import many_groups
from tests.scenarios.mixed_group import mixed_group
from tests.scenarios.rebalances import rebalances
from tests.scenarios.share_group import share_group
from tests.servers.cluster import running_cluster

MIGRATION_HEARTBEAT_MS = 300
KAFKA_MIGRATION = {
    "group.consumer.min.heartbeat.interval.ms": str(MIGRATION_HEARTBEAT_MS),
    "group.consumer.heartbeat.interval.ms": str(MIGRATION_HEARTBEAT_MS),
    "group.initial.rebalance.delay.ms": "0",
}
STABLE_AFTER_S = 5.0
ANSWER_P99_MS = 50.0


def prove_mixed_group(short: bool) -> Figures:
    """All kinds of clients in one group: every record once, no partition owned twice."""
    kinds = MEMBERS if short else MEMBERS | {"java": java_member}
    with running_cluster(3, settings={"group_initial_rebalance_delay_ms": "0"}) as cluster:
        records = 300 if short else 50_000
        return mixed_group(cluster.bootstrap, "mixed", kinds, records=records).as_json()


def prove_coordinator(short: bool) -> Figures:
    """Its coordinator killed (-9): no group rebalances more than once, no offset goes back."""
    return group_failover(3, *((3, 1) if short else (20, 5))).as_json()


def prove_rebalances(short: bool) -> Figures:
    """100 members over 300 partitions join, then one leaves every second: stable within 5 s."""
    figures = rebalances(10, 30, 3) if short else rebalances(100, 300, 60)
    if figures.stable_after_last_s >= STABLE_AFTER_S and not short:
        raise ShortfallError(
            f"{figures.stable_after_last_s} s until stable, less than {STABLE_AFTER_S} wanted",
            figures.as_json(),
        )
    return figures.as_json()


def prove_group_migration(short: bool) -> Figures:
    """50 members change to the consumer protocol and back under load, as on Apache Kafka.

    The short form has 4 members, and does not run Kafka."""
    members = 4 if short else 50
    settings = {
        "group_consumer_heartbeat_interval_ms": str(MIGRATION_HEARTBEAT_MS),
        "group_initial_rebalance_delay_ms": "0",
    }
    with TemporaryDirectory(prefix="bucketlog-prove-") as folder:
        with EmbeddedCluster(Path(folder) / "bucketlog", settings=settings) as cluster:
            ours = group_migration(cluster.bootstrap, members)
        figures: Figures = ours.as_json()
        twice_on_kafka = 0
        if not short:
            with running_kafka(Path(folder) / "kafka", properties=KAFKA_MIGRATION) as kafka:
                theirs = group_migration(kafka.bootstrap, members)
            figures["kafka"], twice_on_kafka = theirs.as_json(), theirs.twice
    if ours.twice > twice_on_kafka:
        raise ShortfallError(f"{ours.twice} records were processed twice", figures)
    if ours.refused:
        raise ShortfallError(f"members were refused: {ours.refused}", figures)
    return figures


def prove_many_groups(short: bool) -> Figures:
    """5,000 groups with committed offsets: OffsetFetch and ListGroups within 50 ms (p99)."""
    figures = many_groups(200 if short else 5000)
    slowest = max(figures.offset_fetch_p99_ms, figures.list_groups_p99_ms)
    if slowest >= ANSWER_P99_MS and not short:
        raise ShortfallError(
            f"p99 {slowest} ms, less than {ANSWER_P99_MS} wanted", figures.as_json()
        )
    return figures.as_json()


def prove_expansion(short: bool) -> Figures:
    """From one broker to three and back under load, without an error reaching a client."""
    return expansion(between_s=1 if short else 20).as_json()


def prove_share_groups(short: bool) -> Figures:
    """Share consumers of Apache Kafka on three brokers that are killed (-9): every record is
    delivered, none is acknowledged twice, nothing is left in the queue."""
    if short:
        figures = share_group(brokers=2, consumers=3, partitions=4, records=20_000, kills=1)
    else:
        figures = share_group(brokers=3, consumers=20, partitions=24, records=1_000_000, kills=12)
    return figures.as_json()


GROUP_TARGETS: dict[str, Callable[[bool], Figures]] = {
    "mixed-group": prove_mixed_group,
    "coordinator": prove_coordinator,
    "rebalances": prove_rebalances,
    "group-migration": prove_group_migration,
    "many-groups": prove_many_groups,
    "expansion": prove_expansion,
    "share-groups": prove_share_groups,
}
