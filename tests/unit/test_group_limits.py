"""What a group refuses to hold, before it holds it; subscriptions; settings."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.consumers.group_messages import GroupState, JoinRequest
from bucketlog.consumers.group_settings import GroupSettings
from bucketlog.consumers.snapshot import snapshot
from bucketlog.consumers.subscription import subscribed_topics
from bucketlog.log_format.errors import ConfigurationError, InvalidDataError
from tests.models.groups import SETTINGS, GroupDriver, asks, stable, subscription, three_members
from tests.rigs.traced_memory import TracedMemory

SMALL = GroupSettings(
    id_bytes_max=50, member_metadata_bytes_max=1000, protocols_max=2, group_bytes_max=4000
)


def refused(driver: GroupDriver, request: JoinRequest) -> ErrorCode:
    revision = driver.group.revision
    error = driver.joined(driver.join(request)).error
    assert driver.group.revision == revision
    return error


@pytest.mark.parametrize(
    "request_",
    [
        asks("n" * 51),
        asks("ä" * 26),
        asks("n", instance="i" * 51),
        asks("n", protocol_type="t" * 51),
        asks("n", protocols=[("p" * 51, b"")]),
        asks("n", protocols=[("x", b""), ("y", b""), ("z", b"")]),
        asks("n", protocols=[("x", bytes(500)), ("y", bytes(501))]),
        replace(asks("n"), client_host="h" * 51),
    ],
    ids=["client", "utf-8", "instance", "type", "protocol", "protocols", "metadata", "host"],
)
def test_what_is_too_long_is_refused(request_: JoinRequest) -> None:
    driver = GroupDriver(SMALL)
    assert refused(driver, request_) is ErrorCode.invalid_request
    assert driver.group.describe().members == ()


def test_what_is_just_short_enough_is_taken() -> None:
    driver = GroupDriver(SMALL)
    name = "n" * 50
    token = driver.join(
        asks(name, protocols=[("x", bytes(500)), ("y" * 50, bytes(500))], protocol_type=name)
    )
    assert token in driver.waiting


def test_a_group_is_bounded_in_bytes() -> None:
    driver = GroupDriver(SMALL)
    big = [("x", bytes(1000))]
    for index in range(3):
        assert driver.join(asks(f"m{index}", protocols=big)) in driver.waiting
    assert refused(driver, asks("m3", protocols=big)) is ErrorCode.group_max_size_reached
    assert driver.join(asks("m3", protocols=[("x", b"")])) in driver.waiting
    assert driver.group.machine.size_bytes <= SMALL.group_bytes_max
    assert len(snapshot(driver.group)) <= SMALL.snapshot_bytes_max


def test_pending_members_count_as_well() -> None:
    driver = GroupDriver(replace(SMALL, pending_members_max=100))
    errors = [driver.joined(driver.join(asks("m", two_steps=True))).error for _ in range(40)]
    assert set(errors) == {ErrorCode.member_id_required, ErrorCode.group_max_size_reached}
    assert len(snapshot(driver.group)) <= driver.group.machine.size_bytes <= SMALL.group_bytes_max


def test_pending_members_are_bounded_in_number() -> None:
    driver = GroupDriver(replace(SETTINGS, pending_members_max=2))
    for _ in range(2):
        assert refused(driver, asks("p", two_steps=True)) is ErrorCode.member_id_required
    assert refused(driver, asks("p", two_steps=True)) is ErrorCode.coordinator_not_available


def test_assignments_that_are_too_large_start_a_new_rebalance() -> None:
    driver = three_members(replace(SETTINGS, group_bytes_max=4000))
    follower = driver.sync(driver.me("b"))
    leader = driver.sync(driver.me("a"), [(driver.ids["s"], bytes(4001))])
    for token in (follower, leader):
        assert driver.synced(token).error is ErrorCode.unknown_server_error
    assert driver.group.state is GroupState.PREPARING_REBALANCE


def test_a_full_group_takes_no_new_member_and_its_own_ones_back() -> None:
    driver = stable(replace(SETTINGS, members_max=3))
    assert refused(driver, asks("n")) is ErrorCode.group_max_size_reached
    assert refused(driver, asks("n", two_steps=True)) is ErrorCode.group_max_size_reached
    assert driver.joined(driver.join(asks("s", instance="s1"))).error is ErrorCode.none
    for name in ("a", "b"):
        driver.join(asks(name, driver.ids[name], [("range", b"new")]))
    assert len(driver.waiting) == 2


def test_the_last_to_rejoin_a_group_that_shrank_is_turned_away() -> None:
    """And the others do not wait for it."""
    driver = stable()
    driver.group.machine.settings = replace(SETTINGS, members_max=2)
    waits = [driver.join(asks(name, driver.ids[name])) for name in ("a", "b")]
    last = driver.joined(driver.join(asks("s", driver.ids["s"], instance="s1")))
    assert (last.error, last.member_id) == (ErrorCode.group_max_size_reached, "")
    assert [driver.joined(each).error for each in waits] == [ErrorCode.none] * 2


def fill_with_members(driver: GroupDriver) -> None:
    for index in range(200):
        driver.join(asks(f"c{index}", protocols=[(f"p{index}"[:1], bytes(2))]))


def fill_with_protocols(driver: GroupDriver) -> None:
    for index in range(100):
        protocols = [(f"p{number}", bytes([number, index])) for number in range(32)]
        driver.join(asks(f"c{index}", protocols=protocols))


def fill_with_pending_members(driver: GroupDriver) -> None:
    for index in range(500):
        driver.join(asks(f"c{index}", two_steps=True))


def fill_with_topics(driver: GroupDriver) -> None:
    topics = subscription(*(f"{number:x}" for number in range(50_000)))
    driver.form(asks("c", protocols=[("range", topics)]))
    assert driver.group.is_subscribed("c34f")
    assert not driver.group.is_subscribed("c350")


@pytest.mark.parametrize(
    "fill", [fill_with_members, fill_with_protocols, fill_with_pending_members, fill_with_topics]
)
def test_the_size_of_a_group_covers_its_objects(
    fill: Callable[[GroupDriver], None], traced_memory: TracedMemory
) -> None:
    driver = GroupDriver()
    with traced_memory.measured() as found:
        fill(driver)
    assert found.held <= 1.5 * driver.group.memory_bytes


def test_a_group_of_very_many_topics_subscribes_to_everything() -> None:
    """Reading the topics of all members would take too long."""
    driver = GroupDriver()
    members = [
        asks(
            f"m{index}", protocols=[("range", subscription(*(f"{index}.{n}" for n in range(600))))]
        )
        for index in range(200)
    ]
    driver.form(*members)
    assert driver.group.is_subscribed("any")


def test_topics_are_those_of_all_members() -> None:
    driver = GroupDriver()
    assert not driver.group.is_subscribed("t"), "a simple group subscribes to nothing"
    driver.form(
        asks("a", protocols=[("range", subscription("t", "u"))]),
        asks("b", protocols=[("range", subscription("v") + b"\0\0\0\1later fields")]),
    )
    subscribed = [topic for topic in "stuvw" if driver.group.is_subscribed(topic)]
    assert subscribed == ["t", "u", "v"]


def test_where_topics_cannot_be_read_all_count_as_subscribed() -> None:
    driver = GroupDriver()
    driver.form(asks("a", protocols=[("range", b"?")]))
    assert driver.group.is_subscribed("any")


def test_groups_that_are_no_consumers_subscribe_to_nothing_and_keep_their_offsets() -> None:
    driver = GroupDriver()
    driver.form(asks("a", protocol_type="connect"))
    assert not driver.group.is_subscribed("t")
    assert driver.group.check_offset_delete() is ErrorCode.non_empty_group


@pytest.mark.parametrize(
    "data",
    [
        b"",
        subscription("topic")[:-1],
        b"\xff\xff" + subscription("t")[2:],
        bytes(2) + b"\x7f\xff\xff\xff",
        bytes(2) + b"\xff\xff\xff\xff",
        bytes(2) + b"\0\0\0\1\xff\xff",
        bytes(2) + b"\0\0\0\1\0\1\xff",
    ],
    ids=["empty", "cut", "version", "count", "negative count", "negative length", "no utf-8"],
)
def test_what_is_no_subscription_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidDataError):
        subscribed_topics(data)


def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ConfigurationError):
        GroupSettings(members_max=0)
    with pytest.raises(ConfigurationError):
        GroupSettings(session_timeout_ms_min=-1)
    with pytest.raises(ConfigurationError):
        GroupSettings(session_timeout_ms_min=10, session_timeout_ms_max=9)
