"""The judge of crash tests, on histories that are good and on planted bad ones."""

import pytest

from tests.scenarios.history import Log, Place, Sent, broken_promises

A0, A1, A2 = (Sent("a", number) for number in range(3))
B0, B1 = (Sent("b", number) for number in range(2))
LOG: Log = {0: [(0, A0), (1, B0), (4, A2)], 1: [(0, A1), (7, B1)]}
ACKNOWLEDGED = [
    (A0, Place(0, 0)),
    (B0, Place(0, 1)),
    (A2, Place(0, 4)),
    (A1, Place(1, 0)),
    (B1, Place(1, 7)),
]


def test_a_good_history() -> None:
    assert not broken_promises(ACKNOWLEDGED, LOG)


def test_what_was_not_acknowledged_may_be_there() -> None:
    assert not broken_promises(ACKNOWLEDGED[1:3], LOG)
    assert not broken_promises([], LOG)


@pytest.mark.parametrize(
    ("log", "word"),
    [
        ({**LOG, 0: LOG[0][:2]}, "lost"),
        ({**LOG, 1: []}, "lost"),
        ({**LOG, 0: [*LOG[0], (5, A2)]}, "2 times"),
        ({**LOG, 1: [*LOG[1], (8, A0)]}, "2 times"),
        ({**LOG, 0: [(0, A0), (1, B0), (5, A2)]}, "stands at"),
        ({0: LOG[1], 1: LOG[0]}, "stands at"),
        ({**LOG, 0: [(0, B0), (1, A0), (4, A2)]}, "stands at"),
        ({**LOG, 0: [(0, A0), (4, A2), (1, B0)]}, "is read after"),
        ({**LOG, 0: [(0, A0), (1, B0), (1, A2)]}, "is read after"),
    ],
)
def test_planted_faults_are_found(log: Log, word: str) -> None:
    complaints = broken_promises(ACKNOWLEDGED, log)
    assert any(word in complaint for complaint in complaints), complaints


def test_records_out_of_order_are_found_without_acknowledgements() -> None:
    assert broken_promises([], {0: [(0, A1), (1, A0)]})
