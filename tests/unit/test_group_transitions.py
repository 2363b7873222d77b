"""What a group answers to every input in every state: a table of Apache Kafka's behaviour."""

from collections.abc import Callable
from typing import TypeAlias

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.consumers.group_messages import (
    ANYBODY,
    CallerIdentity,
    GroupProtocol,
    GroupState,
    LeavingMember,
    Token,
)
from tests.models.groups import GroupDriver, asks, stable, subscription, three_members

NEW_METADATA = (GroupProtocol("range", subscription("t", "u")),)


def empty() -> GroupDriver:
    """They all left a stable group."""
    driver = stable()
    driver.leave(*(LeavingMember(each) for each in driver.ids.values()))
    return driver


def preparing() -> GroupDriver:
    """A fourth member waits for the three of a stable group."""
    driver = stable()
    driver.join(asks("n"))
    return driver


def dead() -> GroupDriver:
    driver = empty()
    assert driver.group.delete() is ErrorCode.none
    return driver


SETUPS: dict[GroupState, Callable[[], GroupDriver]] = {
    GroupState.EMPTY: empty,
    GroupState.PREPARING_REBALANCE: preparing,
    GroupState.COMPLETING_REBALANCE: three_members,
    GroupState.STABLE: stable,
    GroupState.DEAD: dead,
}

Input: TypeAlias = Callable[[GroupDriver], Token | ErrorCode]


def leave(driver: GroupDriver, member_id: str, instance: str | None = None) -> ErrorCode:
    (error,) = driver.leave(LeavingMember(member_id, instance))
    return error


def leave_pending(driver: GroupDriver) -> ErrorCode:
    pending = driver.joined(driver.join(asks("p", two_steps=True))).member_id
    return leave(driver, pending or "nobody")


def old(driver: GroupDriver, name: str) -> CallerIdentity:
    return driver.me(name)._replace(generation=driver.group.generation - 1)


def beat(driver: GroupDriver, identity: CallerIdentity) -> ErrorCode:
    return driver.group.heartbeat(identity, driver.now_ms)


def commit(
    driver: GroupDriver, identity: CallerIdentity, *, transactional: bool = False
) -> ErrorCode:
    return driver.group.check_commit(identity, driver.now_ms, transactional=transactional)


INPUTS: dict[str, Input] = {
    "join-two-steps": lambda d: d.join(asks("x", two_steps=True)),
    "join-one-step": lambda d: d.join(asks("x")),
    "join-static": lambda d: d.join(asks("x", instance="x1")),
    "join-leader": lambda d: d.join(asks("a", d.ids["a"])),
    "join-follower": lambda d: d.join(asks("b", d.ids["b"])),
    "join-changed": lambda d: d.join(asks("b", d.ids["b"], NEW_METADATA)),
    "join-static-back": lambda d: d.join(asks("s", instance="s1")),
    "join-static-known": lambda d: d.join(asks("s", d.ids["s"], instance="s1")),
    "join-fenced": lambda d: d.join(asks("s", "s1-former", instance="s1")),
    "join-unknown": lambda d: d.join(asks("x", "nobody")),
    "join-unknown-static": lambda d: d.join(asks("x", "nobody", instance="x1")),
    "join-other-type": lambda d: d.join(asks("x", protocol_type="connect")),
    "join-no-common": lambda d: d.join(asks("x", protocols=[("other", b"")])),
    "join-no-protocols": lambda d: d.join(asks("x", protocols=[])),
    "join-short-session": lambda d: d.join(asks("x", session_ms=5_999)),
    "join-long-session": lambda d: d.join(asks("x", session_ms=1_800_001)),
    "sync-leader": lambda d: d.sync(d.me("a")),
    "sync-follower": lambda d: d.sync(d.me("b")),
    "sync-old": lambda d: d.sync(old(d, "b")),
    "sync-unknown": lambda d: d.sync(d.me("nobody")),
    "sync-fenced": lambda d: d.sync(d.me("b")._replace(instance_id="s1")),
    "sync-other-protocol": lambda d: d.sync(d.me("b"), protocol_name="sticky"),
    "beat": lambda d: beat(d, d.me("b")),
    "beat-old": lambda d: beat(d, old(d, "b")),
    "beat-unknown": lambda d: beat(d, d.me("nobody")),
    "beat-fenced": lambda d: beat(d, d.me("b")._replace(instance_id="s1")),
    "leave": lambda d: leave(d, d.ids["b"]),
    "leave-instance": lambda d: leave(d, "", "s1"),
    "leave-unknown": lambda d: leave(d, "nobody"),
    "leave-fenced": lambda d: leave(d, d.ids["b"], "s1"),
    "leave-nameless": lambda d: leave(d, ""),
    "leave-pending": leave_pending,
    "commit": lambda d: commit(d, d.me("b")),
    "commit-old": lambda d: commit(d, old(d, "b")),
    "commit-unknown": lambda d: commit(d, d.me("nobody")),
    "commit-fenced": lambda d: commit(d, d.me("b")._replace(instance_id="s1")),
    "commit-no-generation": lambda d: commit(d, d.me("b")._replace(generation=-1)),
    "commit-anybody": lambda d: commit(d, ANYBODY),
    "commit-transaction": lambda d: commit(d, d.me("b"), transactional=True),
    "commit-transaction-anybody": lambda d: commit(d, ANYBODY, transactional=True),
    "delete": lambda d: d.group.delete(),
    "offset-delete": lambda d: d.group.check_offset_delete(),
}

# "waits": no answer yet. ">X": the group goes to state X. Codes are Kafka's error names.
CODES = {
    "ok": ErrorCode.none,
    "unknown": ErrorCode.unknown_member_id,
    "illegal": ErrorCode.illegal_generation,
    "rebalance": ErrorCode.rebalance_in_progress,
    "fenced": ErrorCode.fenced_instance_id,
    "protocol": ErrorCode.inconsistent_group_protocol,
    "session": ErrorCode.invalid_session_timeout,
    "id-required": ErrorCode.member_id_required,
    "not-empty": ErrorCode.non_empty_group,
    "no-group": ErrorCode.group_id_not_found,
    "unavailable": ErrorCode.coordinator_not_available,
}
STATES = {
    "E": GroupState.EMPTY,
    "P": GroupState.PREPARING_REBALANCE,
    "C": GroupState.COMPLETING_REBALANCE,
    "S": GroupState.STABLE,
    "D": GroupState.DEAD,
}
TABLE = """
input                       E            P            C            S            D
join-two-steps              id-required  id-required  id-required  id-required  unavailable
join-one-step               waits>P      waits        waits>P      waits>P      unavailable
join-static                 waits>P      waits        waits>P      waits>P      unavailable
join-leader                 unknown      waits        ok           waits>P      unavailable
join-follower               unknown      waits        ok           ok           unavailable
join-changed                unknown      waits        waits>P      waits>P      unavailable
join-static-back            waits>P      waits        waits>P      ok           unavailable
join-static-known           unknown      waits        ok           ok           unavailable
join-fenced                 unknown      fenced       fenced       fenced       unavailable
join-unknown                unknown      unknown      unknown      unknown      unavailable
join-unknown-static         unknown      unknown      unknown      unknown      unavailable
join-other-type             waits>P      protocol     protocol     protocol     unavailable
join-no-common              waits>P      protocol     protocol     protocol     unavailable
join-no-protocols           protocol     protocol     protocol     protocol     unavailable
join-short-session          session      session      session      session      session
join-long-session           session      session      session      session      session
sync-leader                 unknown      rebalance    ok>S         ok           unavailable
sync-follower               unknown      rebalance    waits        ok           unavailable
sync-old                    unknown      illegal      illegal      illegal      unavailable
sync-unknown                unknown      unknown      unknown      unknown      unavailable
sync-fenced                 unknown      fenced       fenced       fenced       unavailable
sync-other-protocol         unknown      protocol     protocol     protocol     unavailable
beat                        unknown      rebalance    ok           ok           unavailable
beat-old                    unknown      illegal      illegal      illegal      unavailable
beat-unknown                unknown      unknown      unknown      unknown      unavailable
beat-fenced                 unknown      fenced       fenced       fenced       unavailable
leave                       unknown      ok           ok>P         ok>P         unavailable
leave-instance              unknown      ok           ok>P         ok>P         unavailable
leave-unknown               unknown      unknown      unknown      unknown      unavailable
leave-fenced                unknown      fenced       fenced       fenced       unavailable
leave-nameless              unknown      unknown      unknown      unknown      unavailable
leave-pending               ok           ok           ok           ok           unavailable
commit                      unknown      ok           rebalance    ok           unavailable
commit-old                  unknown      illegal      illegal      illegal      unavailable
commit-unknown              unknown      unknown      unknown      unknown      unavailable
commit-fenced               unknown      fenced       fenced       fenced       unavailable
commit-no-generation        ok           illegal      illegal      illegal      unavailable
commit-anybody              ok           unknown      unknown      unknown      unavailable
commit-transaction          unknown      ok           ok           ok           unavailable
commit-transaction-anybody  ok           ok           ok           ok           unavailable
delete                      ok>D         not-empty    not-empty    not-empty    no-group
offset-delete               ok           ok           ok           ok           no-group
"""


def cells() -> list[tuple[str, GroupState, str]]:
    head, *rows = [line.split() for line in TABLE.strip().splitlines()]
    return [
        (row[0], STATES[letter], cell)
        for row in rows
        for letter, cell in zip(head[1:], row[1:], strict=True)
    ]


def test_the_table_is_complete() -> None:
    assert {(name, state) for name, state, _ in cells()} == {
        (name, state) for name in INPUTS for state in GroupState
    }


@pytest.mark.parametrize(("name", "state", "cell"), cells())
def test_a_group_answers_and_moves_as_the_table_says(
    name: str, state: GroupState, cell: str
) -> None:
    driver = SETUPS[state]()
    assert driver.group.state is state
    before = driver.group.revision
    expected, _, letter = cell.partition(">")
    outcome = INPUTS[name](driver)
    if isinstance(outcome, ErrorCode):
        assert outcome is CODES[expected]
    elif expected == "waits":
        assert outcome in driver.waiting
    else:
        assert driver.answers[outcome].error is CODES[expected]
    assert driver.group.state is (STATES[letter] if letter else state)
    if letter:
        assert driver.group.revision > before, "another coordinator would not learn of it"
