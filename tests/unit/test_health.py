"""Degraded parts of a broker, and how long each of them stays degraded."""

from pathlib import Path

import pytest

from bucketlog.stateless_broker.health import BrokerPart, Health, Lifetime

OPERATIONS = Path(__file__).parents[2] / "docs" / "operations.md"


@pytest.mark.parametrize("over", Lifetime)
def test_what_is_over_takes_only_its_own_parts_along(over: Lifetime) -> None:
    health = Health()
    for part in BrokerPart:
        health.degrade(part, "the test says so")
    health.recover_all(over)
    assert health.degraded == {part for part in BrokerPart if part.lifetime is not over}


def test_parts_are_shown_by_plain_names() -> None:
    health = Health()
    health.started = True
    health.degrade(BrokerPart.WRITER, "given up")
    assert health.report() == {"writer": "given up"}
    assert [type(name) for name in health.report()] == [str]


@pytest.mark.parametrize("part", BrokerPart)
def test_the_page_on_operations_names_every_part(part: BrokerPart) -> None:
    page = OPERATIONS.read_text()
    assert part in page if part.lifetime is Lifetime.DUTY else f"`{part}`" in page
