"""The coordinator of live groups is killed."""

import pytest

from tests.scenarios.group_failover import group_failover
from tests.scenarios.group_members import CONSUMER_CONFIG

pytestmark = pytest.mark.long


def test_groups_go_on_when_their_coordinator_is_killed() -> None:
    figures = group_failover(2, 3, kills=1)
    assert figures.rebalances_after_kills == 0


def test_groups_of_the_consumer_protocol_go_on() -> None:
    figures = group_failover(2, 3, kills=1, protocol=CONSUMER_CONFIG)
    assert figures.rebalances_after_kills == 0
