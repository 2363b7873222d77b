"""Rates over a window of samples."""

from hypothesis import given
from hypothesis import strategies as st

from bucketlog.stateless_broker.network.rate_window import RateWindow

events = st.lists(st.tuples(st.integers(0, 3_000), st.integers(0, 10_000)), min_size=1, max_size=60)


@given(events)
def test_the_rate_is_that_of_what_is_left(some: list[tuple[int, int]]) -> None:
    window, now_ms, seen = RateWindow(samples=11, sample_ms=1_000), 0, list[tuple[int, int]]()
    for pause_ms, amount in some:
        now_ms += pause_ms
        window.record(amount, now_ms)
        seen.append((now_ms, amount))
        left = sum(size for at_ms, size in seen if now_ms - at_ms < 10_000)
        most = sum(size for at_ms, size in seen if now_ms - at_ms < 11_000)
        assert left / 11 - 1e-6 <= window.per_s(now_ms) <= most / 10 + 1e-6
    assert window.is_idle(now_ms + 11_000)
    assert window.per_s(now_ms + 11_000) == 0


@given(st.integers(1, 10_000), st.integers(1, 10**7))
def test_a_burst_waits_until_its_rate_is_at_the_limit(limit: int, burst: int) -> None:
    window = RateWindow(samples=11, sample_ms=1_000)
    window.record(burst, 0)
    wait_ms = window.throttle_ms(limit, 0)
    if burst <= 10 * limit:
        assert wait_ms == 0
    else:
        assert abs(wait_ms - (burst * 1000 / limit - 10_000)) <= 1
