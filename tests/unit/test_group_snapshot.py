"""A group's snapshot: what another coordinator makes of it, and what it refuses to believe."""

from collections.abc import Callable

import ormsgpack
import pytest
from kio.schema.errors import ErrorCode

from bucketlog.consumers.group import Group
from bucketlog.consumers.group_messages import GroupState, LeavingMember
from bucketlog.consumers.group_settings import GroupSettings
from bucketlog.consumers.snapshot import restore, snapshot
from bucketlog.log_format.errors import InvalidDataError
from tests.models.groups import (
    REBALANCE_MS,
    SESSION_MS,
    SETTINGS,
    GroupDriver,
    asks,
    stable,
    three_members,
)


def forming() -> GroupDriver:
    driver = GroupDriver()
    driver.join(asks("a"))
    driver.join(asks("p", two_steps=True))
    return driver


def taken_over(driver: GroupDriver) -> GroupDriver:
    """By a coordinator whose clock is another one."""
    driver.group = restore(snapshot(driver.group), SETTINGS, lambda: "another", 77)
    driver.now_ms = 77
    driver.asked.clear()
    driver.answers.clear()
    return driver


@pytest.mark.parametrize("make", [GroupDriver, forming, three_members, stable])
def test_a_restored_group_is_the_same_and_has_the_same_snapshot(
    make: Callable[[], GroupDriver],
) -> None:
    driver = make()
    description, revision, blob = (
        driver.group.describe(),
        driver.group.revision,
        snapshot(driver.group),
    )
    group = taken_over(driver).group
    assert group.describe() == description
    assert group.revision == revision
    assert group.is_subscribed("t") is make().group.is_subscribed("t")
    assert snapshot(group) == blob


def test_a_stable_group_goes_on_without_a_rebalance() -> None:
    driver = taken_over(stable())
    for _ in range(20):
        driver.pass_ms(SESSION_MS - 1)
        assert {driver.heartbeat(name) for name in driver.ids} == {ErrorCode.none}
    assert driver.group.check_commit(driver.me("b"), driver.now_ms) is ErrorCode.none
    assert driver.synced(driver.sync(driver.me("b"))).assignment == b"b"
    assert (driver.group.state, driver.group.generation) == (GroupState.STABLE, 1)


def test_every_member_has_a_full_session_timeout_to_say_it_lives() -> None:
    driver = stable()
    driver.pass_ms(SESSION_MS - 1)
    driver = taken_over(driver)
    driver.pass_ms(SESSION_MS - 1)
    assert driver.heartbeat("a") is ErrorCode.none
    driver.pass_ms(1)
    assert driver.heartbeat("b") is ErrorCode.unknown_member_id
    assert driver.heartbeat("a") is ErrorCode.rebalance_in_progress


def test_a_join_phase_starts_anew_with_its_full_time() -> None:
    driver = stable()
    driver.join(asks("n", session_ms=REBALANCE_MS * 2))
    driver.pass_ms(SESSION_MS - 1)
    driver = taken_over(driver)
    new = next(each for each in driver.group.describe().members if each.client_id == "n")
    assert driver.heartbeat("a") is ErrorCode.rebalance_in_progress
    back = driver.join(asks("n", new.member_id))
    driver.pass_ms(SESSION_MS - 1)
    assert back in driver.waiting
    driver.pass_ms(1)
    assert driver.joined(back).generation == 2


def test_a_first_join_phase_waits_its_delay_again() -> None:
    driver = taken_over(forming())
    (member,) = driver.group.describe().members
    token = driver.join(asks("a", member.member_id))
    pending = driver.join(asks("p", "p-0001"))
    driver.pass_ms(SETTINGS.initial_rebalance_delay_ms - 1)
    assert driver.waiting == {token, pending}
    driver.pass_ms(1 + REBALANCE_MS)
    assert driver.joined(token).generation == driver.joined(pending).generation == 1


def test_a_sync_phase_waits_for_all_again() -> None:
    driver = three_members()
    driver.sync(driver.me("b"))
    driver = taken_over(driver)
    follower = driver.sync(driver.me("b"))
    assert follower in driver.waiting
    leader = driver.joined(driver.join(asks("a", driver.ids["a"])))
    assert [each.member_id for each in leader.members] == list(driver.ids.values())
    driver.sync(driver.me("a"), [(driver.ids["b"], b"B")])
    assert driver.synced(follower).assignment == b"B"


def test_fenced_members_stay_fenced() -> None:
    driver = stable()
    former = driver.me("s")._replace(instance_id="s1")
    driver.join(asks("s", instance="s1"))
    driver = taken_over(driver)
    assert driver.group.heartbeat(former, 77) is ErrorCode.fenced_instance_id


def test_an_emptied_group_does_not_begin_its_generations_anew() -> None:
    driver = stable()
    driver.leave(*(LeavingMember(each) for each in driver.ids.values()))
    driver = taken_over(driver)
    assert (driver.group.generation, driver.group.protocol_type) == (2, "consumer")


def test_a_dead_group_has_no_snapshot() -> None:
    group = Group("g", SETTINGS, str)
    group.delete()
    with pytest.raises(ValueError, match="dead"):
        snapshot(group)


def test_every_cut_or_flipped_snapshot_is_refused_or_is_a_possible_group() -> None:
    blob = snapshot(stable().group)
    for length in range(len(blob)):
        with pytest.raises(InvalidDataError):
            restore(blob[:length], SETTINGS, str, 0)
    for position in range(len(blob)):
        damaged = bytearray(blob)
        damaged[position] ^= 0x81
        try:
            group = restore(bytes(damaged), SETTINGS, str, 0)
        except InvalidDataError:
            continue
        group.describe()
        group.expire(10**15)


POSITION = {"version": 0, "state": 3, "protocol_name": 6, "leader": 7, "members": 10}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("version", 4),
        ("state", "Dead"),
        ("state", "Empty"),
        ("state", "Unheard"),
        ("protocol_name", None),
        ("protocol_name", "sticky"),
        ("leader", "nobody"),
        ("leader", None),
        ("members", []),
    ],
)
def test_an_impossible_group_is_refused(field: str, value: object) -> None:
    fields = ormsgpack.unpackb(snapshot(stable().group))
    fields[POSITION[field]] = value
    with pytest.raises(InvalidDataError):
        restore(ormsgpack.packb(fields), SETTINGS, str, 0)


def test_a_member_twice_is_refused() -> None:
    fields = ormsgpack.unpackb(snapshot(stable().group))
    fields[POSITION["members"]] += fields[POSITION["members"]][:1]
    with pytest.raises(InvalidDataError, match="already"):
        restore(ormsgpack.packb(fields), SETTINGS, str, 0)


def test_a_snapshot_beyond_its_bound_is_refused_before_it_is_read() -> None:
    settings = GroupSettings(group_bytes_max=1000)
    with pytest.raises(InvalidDataError, match="group_bytes_max"):
        restore(bytes(settings.snapshot_bytes_max + 1), settings, str, 0)
