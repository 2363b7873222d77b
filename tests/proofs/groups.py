"""The claims about consumer groups; targets of `tests.proofs`."""

from collections.abc import Callable

from tests.proofs.shortfall import Figures, ShortfallError
from tests.scenarios.expansion import expansion
from tests.scenarios.group_failover import group_failover
from tests.scenarios.group_members import MEMBERS
from tests.scenarios.java_member import java_member
from tests.scenarios.many_groups import many_groups
from tests.scenarios.mixed_group import mixed_group
from tests.scenarios.rebalances import rebalances
from tests.servers.cluster import running_cluster

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


GROUP_TARGETS: dict[str, Callable[[bool], Figures]] = {
    "mixed-group": prove_mixed_group,
    "coordinator": prove_coordinator,
    "rebalances": prove_rebalances,
    "many-groups": prove_many_groups,
    "expansion": prove_expansion,
}
