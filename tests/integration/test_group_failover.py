"""The coordinator of live groups is killed."""

from tests.scenarios.group_failover import group_failover


def test_groups_go_on_when_their_coordinator_is_killed() -> None:
    figures = group_failover(2, 3, kills=1)
    assert figures.rebalances_after_kills == 0
