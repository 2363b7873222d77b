"""Pauses of clients, and the faults to which they belong."""

from tests.models.history import Acknowledged, Place, Sent
from tests.models.pauses import (
    NO_FAULT,
    Events,
    Pauses,
    events_of,
    figures,
    first_seen,
    longest,
    longest_begun,
    pauses_by_fault,
    table,
)
from tests.models.recorded_history import FaultSpan, Recorded


def test_a_pause_that_began_before_the_span_counts_in_full() -> None:
    assert longest([1, 2, 7, 8], began=3, ended=10) == 5
    assert longest([1, 2, 7, 8], began=8, ended=20) == 12
    assert longest([], began=3, ended=10) == 7


def test_a_pause_belongs_to_the_fault_during_which_it_begins() -> None:
    times = [1, 2, 9.5, 10, 11, 19.5, 26]
    assert longest_begun(times, began=1, until=10, ended=30) == 7.5
    assert longest_begun(times, began=10, until=20, ended=30) == 8.5
    assert longest_begun(times, began=20, until=25, ended=30) == 6.5
    assert longest_begun(times, began=25, until=30, ended=30) == 4
    assert longest_begun([1, 26], began=10, until=20, ended=30) == 0
    assert longest_begun([], began=3, until=5, ended=10) == 7


def test_only_the_first_who_sees_an_offset_counts() -> None:
    assert first_seen([(1, 5), (3, 5), (2, 4), (4, 9), (5, 7)]) == [1, 4]


def test_events_of_a_history() -> None:
    recorded = Recorded()
    recorded.history.acknowledged += [
        Acknowledged(Sent("p", 0), Place(0, 0), 2.0),
        Acknowledged(Sent("p", 1), Place(1, 0), 1.0),
        Acknowledged(Sent("q", 0), Place(0, 1), 1.5),
        Acknowledged(Sent("probe-1", 0), Place(0, 2), 1.7),
    ]
    recorded.polls = {
        ("broker 0", 0): [(3.0, 2)],
        ("broker 1", 0): [(2.5, 1)],
        ("member", 1): [(4.0, 1)],
        ("another", 0): [(0.1, 9)],
    }
    assert events_of(recorded, observers="broker ", member="member", probes="probe-") == Events(
        {0: [1.5, 2.0], 1: [1.0]}, {0: [2.5, 3.0], 1: []}, [4.0]
    )


def test_faults_that_overlap_are_one_slot() -> None:
    events = Events({0: [0, 10, 20, 50, 60, 70, 80]}, {0: [0, 19.5, 60, 65, 80]}, [0, 20, 80])
    faults = [
        FaultSpan("kill", 1, 20, 30),
        FaultSpan("pause", 0, 21, 35),
        FaultSpan("wipe", None, 65, 66),
    ]
    assert pauses_by_fault(events, faults, 90) == {
        NO_FAULT: [Pauses(10, 10, 19.5, 20)],
        "kill + pause": [Pauses(30, 30, 40.5, 60)],
        "wipe": [Pauses(10, 10, 15, 10)],
    }


def test_figures_and_table() -> None:
    found = {"kill": [Pauses(0.1, 1, 2, 3), Pauses(0.3, 4, 2, 3), Pauses(0.2, 2, 2, 3)]}
    assert figures(found["kill"])["ack_s_p50"] == 2
    assert figures(found["kill"])["ack_s_max"] == 4
    assert table(found).splitlines()[-1] == "| kill | 3 | 0.3 | 4.0 | 2.0 | 3.0 |"
