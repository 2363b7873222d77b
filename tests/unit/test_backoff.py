"""The pauses between retries: how they grow, what jitter does to them, when they end."""

from itertools import islice
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bucketlog.log_format.backoff import Backoff, Retries

AWAY = ConnectionError("away")


def test_pauses_double_up_to_the_longest() -> None:
    backoff = Backoff(first_pause_ms=100, longest_pause_ms=350)
    assert list(islice(backoff.pauses_s(), 5)) == [0.1, 0.2, 0.35, 0.35, 0.35]
    assert backoff.pause_s(10**9) == 0.35, "however often it failed"


@given(number=st.integers(0, 100), drawn=st.floats(0, 1, exclude_max=True), jitter=st.floats(0, 1))
def test_jitter_only_shortens_by_no_more_than_its_share(
    number: int, drawn: float, jitter: float
) -> None:
    plain_s = Backoff(20, 1_000).pause_s(number)
    pause_s = Backoff(20, 1_000, jitter=jitter).pause_s(number, drawn)
    assert plain_s * (1 - jitter) <= pause_s <= plain_s


def test_one_number_is_drawn_for_each_pause_with_jitter_and_none_without() -> None:
    """The courses of simulated clusters depend on it."""
    drawing, counted = Random(7), Random(7)
    pauses_s = list(islice(Backoff(25, 100, jitter=0.5).pauses_s(drawing), 4))
    limits_ms = [25, 50, 100, 100]
    assert pauses_s == [limit * (1 - counted.random() / 2) / 1000 for limit in limits_ms]
    list(islice(Backoff(25, 100).pauses_s(drawing), 4))
    assert drawing.getstate() == counted.getstate()


def test_no_try_begins_after_the_time_is_up() -> None:
    now_s = 5.0
    retries = Retries(
        Backoff(100, 400, give_up_after_ms=1_000), random=Random(1), monotonic=lambda: now_s
    )
    for pause_s in (0.1, 0.2, 0.4):
        assert retries.pause_s(AWAY) == pause_s
        now_s += pause_s
    with pytest.raises(ConnectionError, match="away"):
        retries.pause_s(AWAY)


def test_without_an_end_tries_never_end() -> None:
    retries = Retries(Backoff(100, 400), random=Random(1), monotonic=lambda: 1e18)
    assert [retries.pause_s(AWAY) for _ in range(3)] == [0.1, 0.2, 0.4]
