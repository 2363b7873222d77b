"""What counts as growth, and what does not."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.models.flatness import HOUR_S, Limit, growing, growth, theil_sen

TIMES_S = [10.0 * number for number in range(361)]
"""An hour."""
LIMIT = Limit(share_per_hour=0.05, slack=2)


def noisy(seed: int, per_hour: float, *, level: float = 1000.0) -> list[float]:
    """A saw of a tenth of the level, noise, and outliers of twice the level now and then."""
    source = Random(seed)
    return [
        level
        + per_hour * at / HOUR_S
        + level * 0.1 * (at % 120 / 120)
        + source.gauss(0, level * 0.02)
        + (2 * level if source.random() < 0.03 else 0)
        for at in TIMES_S
    ]


@given(seed=st.integers(0, 1 << 32))
def test_noise_saws_and_outliers_are_flat(seed: int) -> None:
    assert growth(TIMES_S, noisy(seed, 0), LIMIT).is_flat


@given(seed=st.integers(0, 1 << 32))
def test_growth_of_a_quarter_of_the_level_is_found_in_an_hour(seed: int) -> None:
    found = growth(TIMES_S, noisy(seed, 250), LIMIT)
    assert not found.is_flat
    assert found.per_hour == pytest.approx(250, rel=0.5)


def test_what_grew_while_it_started_is_flat() -> None:
    values = [min(at, 1200.0) for at in TIMES_S]
    assert growth(TIMES_S, values, LIMIT).is_flat


def test_growth_that_begins_late_is_found() -> None:
    values = [1000 + max(0.0, at - 2000) for at in TIMES_S]
    assert not growth(TIMES_S, values, LIMIT).is_flat


def test_falling_is_flat() -> None:
    assert growth(TIMES_S, [5000 - at for at in TIMES_S], LIMIT).is_flat


def test_a_step_within_the_slack_is_flat() -> None:
    values = [10.0 + 0.001 * at for at in TIMES_S]  # 1.8 in the half hour, 36 % an hour
    assert growth(TIMES_S, values, LIMIT).is_flat
    assert not growth(TIMES_S, values, Limit(0.05, slack=1)).is_flat


def test_slopes() -> None:
    assert theil_sen([0, 1, 2, 3, 4], [0, 2, 4, 6, 100]) == 2
    assert theil_sen([5, 5], [1, 2]) == 0


def test_what_grows_is_named() -> None:
    found = {
        "writers": growth(TIMES_S, list(TIMES_S), LIMIT),
        "threads": growth(TIMES_S, [9.0 for _ in TIMES_S], LIMIT),
    }
    (text,) = growing(found)
    assert text.startswith("writers grows by 3600.0 an hour")
