"""The judge of all fault tests, on a history that is good and on planted bad ones."""

from collections.abc import Callable

import pytest
from kio.schema.errors import ErrorCode

from tests.models.good_histories import good_history
from tests.models.history import (
    Acknowledged,
    Commit,
    CommittedSeen,
    History,
    Log,
    Place,
    Read,
    Refused,
    Seen,
    Sent,
)
from tests.models.promises import Rule, broken_promises, check, summary
from tests.rigs.patience import Deadline

A0, A1, A2, A3 = (Sent("a", number) for number in range(4))
B0, B1 = (Sent("b", number) for number in range(2))
LOG: Log = {0: [(0, A0), (1, B0), (4, A2)], 1: [(0, A1), (7, B1)]}
Plant = Callable[[History], None]


def good() -> History:
    """Partition 0 is read at 2.5, when A2 was on its way; a group has read it at 3."""
    return History(
        acknowledged=[
            Acknowledged(A0, Place(0, 0), 1),
            Acknowledged(B0, Place(0, 1), 2),
            Acknowledged(A2, Place(0, 4), 3),
            Acknowledged(A1, Place(1, 0), 1),
            Acknowledged(B1, Place(1, 7), 2),
        ],
        refused=[
            Refused(A3, ErrorCode.not_enough_replicas, 4),
            Refused(B1, ErrorCode.request_timed_out, 1),
            Refused(A1, ErrorCode.not_enough_replicas, 0.5),
        ],
        reads=[
            Read("r", 0, 0, [(0, A0), (1, B0)], 2.5, to_end=True),
            Read("r", 0, 1, [(1, B0), (4, A2)], 2.5),
            Read("r", 1, 0, [(0, A1)], 9),
        ],
        high_watermarks=[Seen("w", 0, 1), Seen("w", 0, 5), Seen("w", 1, 8), Seen("v", 0, 2)],
        positions=[Seen("c", 0, 2), Seen("c", 0, 5), Seen("c again", 0, 0)],
        commits=[Commit("g", 0, 2, 3), Commit("g", 0, 5, 5)],
        committed_seen=[CommittedSeen("g", 0, 2, 4, 6), CommittedSeen("g", 0, 5, 6, 7)],
    )


def found(history: History, log: Log = LOG) -> set[Rule]:
    return {broken.rule for broken in broken_promises(history, log)}


def test_a_good_history() -> None:
    check(good(), LOG)


def test_what_was_not_acknowledged_may_be_there() -> None:
    check(History(acknowledged=good().acknowledged[1:3]), LOG)
    check(History(), LOG)


@pytest.mark.parametrize(
    ("log", "rules"),
    [
        ({**LOG, 0: [LOG[0][0], LOG[0][2]]}, {Rule.LOST, Rule.WITHDRAWN}),
        ({**LOG, 1: []}, {Rule.LOST, Rule.WITHDRAWN, Rule.HIGH_WATERMARK_BEYOND}),
        ({**LOG, 0: [*LOG[0], (5, A2)]}, {Rule.DUPLICATED}),
        ({**LOG, 1: [*LOG[1], (8, A0)]}, {Rule.DUPLICATED}),
        ({**LOG, 0: [(0, A0), (1, B0), (5, A2)]}, {Rule.MOVED, Rule.WITHDRAWN}),
        ({**LOG, 0: [(0, A0), (1, A2)]}, {Rule.LOST, Rule.MOVED, Rule.GIVEN_TWICE}),
        ({**LOG, 0: [(0, A0), (4, A2), (1, B0)]}, {Rule.OUT_OF_ORDER}),
        ({**LOG, 0: [(0, A0), (1, B0), (1, A3), (4, A2)]}, {Rule.GIVEN_TWICE}),
        ({**LOG, 0: [*LOG[0], (5, A3)]}, {Rule.ABORTED_THEN_SEEN}),
        ({**LOG, 0: [(0, A0), (1, B0), (3, A3), (4, A2)]}, {Rule.OUT_OF_ORDER, Rule.PASSED_OVER}),
    ],
)
def test_planted_logs(log: Log, rules: set[Rule]) -> None:
    assert rules <= found(good(), log)


@pytest.mark.parametrize(
    ("plant", "rule"),
    [
        (lambda h: h.acknowledged.append(Acknowledged(A3, Place(1, 9), 9)), Rule.LOST),
        (lambda h: h.acknowledged.append(Acknowledged(A0, Place(0, 3), 9)), Rule.MOVED),
        (lambda h: h.acknowledged.append(Acknowledged(A3, Place(0, -1), 9)), Rule.LOST),
        (lambda h: h.acknowledged.append(Acknowledged(A0, Place(0, -1), 9)), None),
        (lambda h: h.reads.append(Read("r", 0, 0, LOG[0][:2], 3.1, to_end=True)), Rule.UNSEEN),
        (lambda h: h.reads.append(Read("r", 0, 0, [], 3.1, to_end=True)), Rule.UNSEEN),
        (lambda h: h.reads.append(Read("r", 0, 0, [(0, A0), (4, A2)], 2.5)), Rule.UNSEEN),
        (lambda h: h.reads.append(Read("r", 0, 0, [(0, A0), (4, A2)], 1.5)), Rule.PASSED_OVER),
        (lambda h: h.reads.append(Read("r", 0, 0, [*LOG[0], (5, A3)], 5)), Rule.WITHDRAWN),
        (lambda h: h.reads.append(Read("r", 0, 4, [(4, A3)], 5)), Rule.GIVEN_TWICE),
        (lambda h: h.reads.append(Read("r", 1, 0, LOG[1][::-1], 5)), Rule.OUT_OF_ORDER),
        (
            lambda h: h.refused.append(Refused(Sent("a", 2), ErrorCode.policy_violation, 2)),
            None,  # it was sent again, and acknowledged
        ),
        (lambda h: h.high_watermarks.append(Seen("w", 0, 4)), Rule.HIGH_WATERMARK_BACK),
        (lambda h: h.high_watermarks.append(Seen("w", 0, 6)), Rule.HIGH_WATERMARK_BEYOND),
        (lambda h: h.high_watermarks.append(Seen("w", 5, 1)), Rule.HIGH_WATERMARK_BEYOND),
        (lambda h: h.positions.append(Seen("c", 0, 4)), Rule.POSITION_BACK),
        (lambda h: h.resets.append("c: partition 0"), Rule.RESET),
        (lambda h: h.committed_seen.append(CommittedSeen("g", 0, 4, 6, 7)), Rule.COMMITTED_BACK),
        (lambda h: h.committed_seen.append(CommittedSeen("g", 0, -1, 9, 9)), Rule.COMMITTED_BACK),
        (lambda h: h.committed_seen.append(CommittedSeen("g", 0, 2, 4.5, 9)), None),
    ],
)
def test_planted_histories(plant: Plant, rule: Rule | None) -> None:
    history = good()
    plant(history)
    assert found(history) == ({rule} if rule else set())


def test_one_offset_is_acknowledged_for_two() -> None:
    history = good()
    history.acknowledged.append(Acknowledged(A3, Place(0, 4), 9))
    log: Log = {**LOG, 0: [*LOG[0], (5, A3)]}
    assert found(history, log) == {Rule.GIVEN_TWICE, Rule.MOVED}


def test_an_offset_seen_once_is_not_unseen_later() -> None:
    history = History(
        committed_seen=[CommittedSeen("g", 0, 5, 1, 2), CommittedSeen("g", 0, 4, 3, 4)]
    )
    assert found(history, {}) == {Rule.COMMITTED_BACK}


def test_only_definite_failures_bind() -> None:
    for error in (ErrorCode.request_timed_out, ErrorCode.not_enough_replicas_after_append):
        check(History(refused=[Refused(A0, error, 1)]), LOG)
    assert found(History(refused=[Refused(A0, ErrorCode.not_enough_replicas, 1)])) == {
        Rule.ABORTED_THEN_SEEN
    }


def test_records_out_of_order_are_found_without_acknowledgements() -> None:
    assert found(History(), {0: [(0, A1), (1, A0)]}) == {Rule.OUT_OF_ORDER}


def test_producers_that_are_not_idempotent_may_repeat_themselves() -> None:
    log: Log = {0: [(0, A1), (1, A0), (2, A1)]}
    history = History(acknowledged=[Acknowledged(A1, Place(0, 2), 1)], not_idempotent={"a"})
    check(history, log)
    assert found(History(), log) == {Rule.DUPLICATED, Rule.OUT_OF_ORDER}


def test_a_summary_names_each_rule_and_is_short() -> None:
    history = History(resets=[f"consumer {number}" for number in range(1000)])
    history.positions += [Seen("c", 0, 5), Seen("c", 0, 4)]
    lines = summary(broken_promises(history, {})).splitlines()
    assert len(lines) == 7
    assert lines[0].startswith("position went back: c")
    assert lines[-1] == "reset: and 995 more"
    with pytest.raises(AssertionError, match="and 995 more"):
        check(history, {})


def test_many_records_take_seconds() -> None:
    history, log = good_history(1, 100_000)
    deadline = Deadline("it is quadratic: thousands of seconds")
    check(history, log)
    deadline.check()
