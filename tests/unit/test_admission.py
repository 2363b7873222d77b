"""Which connections are accepted and which are idle, and the log lines about closed ones."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass

import pytest

from bucketlog.stateless_broker.network.admission import Admission, AdmissionLimits
from bucketlog.stateless_broker.network.closing_lines import ClosingLines

LIMITS = AdmissionLimits(connections=6, per_address=4, per_address_per_s=10, idle_ms=1_000)


@dataclass(eq=False)
class Open:
    """An open connection."""

    name: str
    active_s: float


def filled(**numbers: int) -> tuple[Admission[Open], dict[str, Open]]:
    admission: Admission[Open] = Admission(LIMITS)
    opened = {}
    for address, count in numbers.items():
        for number in range(count):
            opened[f"{address}{number}"] = each = Open(f"{address}{number}", float(number))
            admission.add(each, address)
    return admission, opened


def names(connections: Iterable[Open]) -> list[str]:
    return [each.name for each in connections]


def test_an_address_has_its_limit_and_others_are_accepted() -> None:
    admission, opened = filled(a=4)
    refusal = admission.refusal("a", 0.0)
    assert refusal is not None
    assert "CONNECTIONS_PER_ADDRESS_MAX" in refusal
    assert admission.refusal("b", 0.0) is None
    admission.remove(opened["a0"], "a")
    assert admission.refusal("a", 0.0) is None


def test_an_address_that_connects_too_fast_is_refused_and_others_are_not() -> None:
    admission, _ = filled()
    answers = [admission.refusal("a", 0.0) for _ in range(25)]
    assert [answer is None for answer in answers] == [True] * 20 + [False] * 5
    assert "PER_S_MAX" in str(answers[-1])
    assert admission.refusal("b", 0.0) is None
    later = [admission.refusal("a", 0.5) for _ in range(7)]
    assert [answer is None for answer in later] == [True] * 5 + [False] * 2


def test_the_address_with_most_connections_gives_way_its_least_active_first() -> None:
    admission, opened = filled(a=2, b=4)
    assert admission.is_full
    opened["b0"].active_s = 9.0
    assert names(admission.by_least_active()) == ["b1", "b2", "b3", "b0"]


def test_idle_is_what_was_not_active_for_so_long() -> None:
    admission, opened = filled(a=3, b=3)
    assert admission.idle(0.5) == []
    assert names(admission.idle(2.0)) == ["a0", "a1", "b0", "b1"]
    opened["a0"].active_s = 2.0
    assert names(admission.idle(2.5)) == ["a1", "b0", "b1"]


def test_what_is_gone_is_counted_once() -> None:
    admission, opened = filled(a=2)
    admission.remove(opened["a0"], "a")
    admission.remove(opened["a0"], "a")
    admission.remove(Open("never", 0.0), "z")
    assert admission.count == 1
    assert names(admission) == ["a1"]


def test_lines_about_closed_connections_are_few_and_the_rest_is_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = [0.0]
    lines = ClosingLines(per_minute=6, now_s=lambda: now[0])
    with caplog.at_level(logging.INFO):
        for number in range(1000):
            lines.closed(f"peer {number}", "garbage")
        assert len(caplog.records) == 6
        assert lines.unwritten == 994
        now[0] = 10.0
        lines.closed("the next", "garbage")
    assert "994 more connections" in caplog.messages[-2]
    assert "the next" in caplog.messages[-1]
    assert lines.unwritten == 0
