"""The check of transaction histories reports each planted anomaly, and nothing else."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.models.transaction_history import (
    Anomaly,
    Item,
    Moved,
    OffsetSeen,
    Outcome,
    Poll,
    StableSeen,
    Transaction,
    TransactionHistory,
    anomalies,
)

IN, ONE, TWO = ("in", 0), ("out", 0), ("out", 1)
Plant = Callable[[TransactionHistory], None]


def items(name: str, count: int = 2) -> list[Item]:
    return [Item(name, number) for number in range(count)]


(A0, A1), (B0, B1), (D0, D1), (X0, _), (S0, S1) = map(items, ("a", "b", "d", "x", "seed"))


def moved(first: int, end: int) -> list[Moved]:
    return [Moved("g", IN, first, end)]


def good() -> TransactionHistory:
    """A history without anomalies. `a` and `b` consume one seed each. `c` aborts. `d` reads what
    `a` wrote, and its client dies after the commit. `x` is lost. Markers and aborted records take
    offsets that no reader gets."""
    return TransactionHistory(
        transactions=[
            Transaction("a", Outcome.COMMITTED, 2, [S0], moved(0, 1), ended=1),
            Transaction("c", Outcome.ABORTED, 2, [S1], moved(1, 2), ended=2),
            Transaction("b", Outcome.COMMITTED, 2, [S1], moved(1, 3), ended=3),
            Transaction("d", Outcome.UNKNOWN, 2, [A0, A1]),
            Transaction("x", Outcome.UNKNOWN, 2, [B0], moved(3, 4)),
        ],
        polls=[
            Poll("r", ONE, 0, [(0, A0), (3, B0)], 5),
            Poll("r", TWO, 0, [(0, A1)], 2),
            Poll("r", TWO, 2, [(4, B1)], 5),
            Poll("r", ONE, 5, [(5, D0)], 6),
            Poll("late", TWO, 4, [(4, B1), (6, D1)], 8),
        ],
        offsets_seen=[
            OffsetSeen("g", IN, -1, 0.5),
            OffsetSeen("g", IN, 1, 2.5),
            OffsetSeen("g", IN, 3, 4),
        ],
        stable_seen=[
            StableSeen("w", ONE, 2),
            StableSeen("w", ONE, 5),
            StableSeen("w", TWO, 1),
            StableSeen("v", ONE, 0),
        ],
        final={
            IN: [(0, S0), (1, S1)],
            ONE: [(0, A0), (3, B0), (5, D0)],
            TWO: [(0, A1), (4, B1), (6, D1)],
        },
    )


def found(history: TransactionHistory) -> list[Anomaly]:
    return [each.anomaly for each in anomalies(history)]


def test_a_good_history() -> None:
    assert anomalies(good()) == []


def test_nothing() -> None:
    assert anomalies(TransactionHistory()) == []


def is_changed(name: str, **fields: object) -> Plant:
    def plant(history: TransactionHistory) -> None:
        history.transactions = [
            replace(each, **fields) if each.name == name else each  # type: ignore[arg-type] # any
            for each in history.transactions
        ]

    return plant


def polls(*planted: Poll) -> Plant:
    return lambda history: history.polls.extend(planted)


def offset(value: int, began: float) -> Plant:
    return lambda history: history.offsets_seen.append(OffsetSeen("g", IN, value, began))


def stable(observer: str, value: int) -> Plant:
    return lambda history: history.stable_seen.append(StableSeen(observer, ONE, value))


def final(**rows: list[tuple[int, Item]]) -> Plant:
    """Replace the records of partitions `in_`, `one` and `two`, and remove all polls."""
    names = {"in_": IN, "one": ONE, "two": TWO}

    def plant(history: TransactionHistory) -> None:
        history.polls = []
        history.final = dict(history.final) | {names[name]: mine for name, mine in rows.items()}

    return plant


def both(*plants: Plant) -> Plant:
    def plant(history: TransactionHistory) -> None:
        for each in plants:
            each(history)

    return plant


C0 = Item("c", 0)
PLANTED: dict[str, tuple[Plant, Anomaly]] = {
    "a reader sees an aborted record": (
        polls(Poll("s", ONE, 0, [(0, A0), (2, C0)], 3)),
        Anomaly.ABORTED_READ,
    ),
    "a reader sees a record that is gone": (
        polls(Poll("s", ONE, 5, [(5, D0), (8, X0)], 9)),
        Anomaly.ABORTED_READ,
    ),
    "a transaction reads an aborted record": (
        is_changed("d", reads=[C0]),
        Anomaly.ABORTED_READ,
    ),
    "an aborted record is in the log": (
        final(one=[(0, A0), (2, C0), (3, B0), (5, D0)]),
        Anomaly.ABORTED_READ,
    ),
    "an aborted offset is seen": (offset(2, 2.5), Anomaly.ABORTED_READ),
    "a part in the same partition": (
        both(
            final(one=[(0, A0), (1, A1), (3, B0), (5, D0)], two=[(4, B1), (6, D1)]),
            polls(Poll("r", ONE, 0, [(0, A0)], 2)),
        ),
        Anomaly.INTERMEDIATE_READ,
    ),
    "a part in another partition": (
        polls(Poll("s", ONE, 0, [(0, A0)], 1), Poll("s", TWO, 0, [], 1)),
        Anomaly.INTERMEDIATE_READ,
    ),
    "a reader passes a record": (
        polls(Poll("s", ONE, 1, [(5, D0)], 6)),
        Anomaly.PASSED_OVER,
    ),
    "two read each other": (is_changed("a", reads=[D0]), Anomaly.CIRCULAR_FLOW),
    "one reads what goes on from its offset": (
        is_changed("a", reads=[B0]),
        Anomaly.CIRCULAR_FLOW,
    ),
    "a committed offset goes back": (offset(1, 4), Anomaly.LOST_OFFSETS),
    "a committed offset is gone": (offset(-1, 1.5), Anomaly.LOST_OFFSETS),
    "two consume the same": (is_changed("b", offsets=moved(0, 3)), Anomaly.LOST_OFFSETS),
    "a partition lacks its part": (final(two=[(0, A1), (6, D1)]), Anomaly.TORN_COMMIT),
    "of an unknown outcome, the same": (final(two=[(0, A1), (4, B1)]), Anomaly.TORN_COMMIT),
    "only the offset is committed": (offset(4, 5), Anomaly.TORN_COMMIT),
    "nothing is there": (
        final(one=[(0, A0), (5, D0)], two=[(0, A1), (6, D1)]),
        Anomaly.LOST_COMMIT,
    ),
    "a record is there twice": (
        final(one=[(0, A0), (3, B0), (5, D0), (6, A0)]),
        Anomaly.DUPLICATED,
    ),
    "a last stable offset goes back": (stable("w", 4), Anomaly.STABLE_END_BACK),
}


@pytest.mark.parametrize("case", PLANTED)
def test_a_planted_anomaly(case: str) -> None:
    plant, anomaly = PLANTED[case]
    history = good()
    plant(history)
    assert found(history) == [anomaly]


def test_each_anomaly_is_planted() -> None:
    assert {anomaly for _, anomaly in PLANTED.values()} == set(Anomaly)


@pytest.mark.parametrize(
    "plant",
    [
        polls(Poll("s", ONE, 0, [(0, A0)], 1), Poll("s", TWO, 0, [], 0)),
        polls(Poll("s", ONE, 3, [(3, B0)], 4), Poll("s", TWO, 5, [], 6)),
        offset(1, 3),
        stable("w", 5),
        stable("v", 1),
    ],
)
def test_what_is_no_anomaly(plant: Plant) -> None:
    """A reader that is behind in a partition or began later. An offset that was requested before
    the response to the commit. A last stable offset that stays the same."""
    history = good()
    plant(history)
    assert anomalies(history) == []


def test_a_circle_is_named() -> None:
    names = ["a", "b", "c"]
    history = TransactionHistory(
        transactions=[
            *(
                Transaction(name, Outcome.COMMITTED, 1, [Item(before, 0)])
                for name, before in zip(names, ["c", "a", "b"], strict=True)
            ),
            Transaction("before", Outcome.COMMITTED, 0),
            Transaction("after", Outcome.COMMITTED, 1, [Item("a", 0)]),
        ],
        final={ONE: [(at, Item(name, 0)) for at, name in enumerate([*names, "after"])]},
    )
    (one,) = anomalies(history)
    assert one.what == "a -> b -> c -> a"
