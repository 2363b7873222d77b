"""The timer of a coordinator's groups."""

from bucketlog.consumers.coordinated_group import CoordinatedGroup
from bucketlog.consumers.group_timer import GroupTimer
from tests.models.groups import GroupDriver, asks


def test_groups_that_are_gone_leave_no_deadlines() -> None:
    timer = GroupTimer(lambda: 0)
    for number in range(1_000):
        driver = GroupDriver()
        driver.group.group_id = f"g{number}"
        driver.join(asks("a", two_steps=True))
        timer.plan(CoordinatedGroup(driver.group, 1))
        timer.forget(driver.group.group_id)
    assert timer.size < 100


def test_deadlines_that_come_nearer_replace_the_former() -> None:
    timer = GroupTimer(lambda: 0)
    driver = GroupDriver()
    held = CoordinatedGroup(driver.group, 1)
    for number in range(1_000):
        driver.join(asks("a", two_steps=True, session_ms=20_000 - number))
        timer.plan(held)
    assert timer.size < 100
    now_ms = driver.now_ms + 20_000
    assert list(timer.due(now_ms)) == ["g"]
    assert list(timer.due(now_ms)) == []
