"""What clients use of their quotas: rates, throttle times, and the number of windows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bucketlog.metadata.quota_entities import (
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    DEFAULT,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    QuotaChange,
    QuotaEntity,
)
from bucketlog.metadata.security_facts import ClientQuotasAltered
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.network.quotas import (
    CLIENT_ID_CHARS_MAX,
    ClientLimits,
    QuotaRules,
    Quotas,
    ThrottleCounts,
)
from bucketlog.stateless_broker.network.token_bucket import TokenBucket
from tests.models.indexes import segment

ANN = "User:ann"
WINDOW_S = 10


class Place:
    """Quotas with a clock that the test moves."""

    def __init__(self, tracked_max: int = 100, /, **limits: float) -> None:
        self.s = 100.0
        self.view = View()
        self.counts = ThrottleCounts()
        rules = QuotaRules(11, 1_000, tracked_max, 60_000)
        self.quotas = Quotas(self.view, rules, lambda: self.s, self.counts)
        self._segments = 0
        self.set(QuotaEntity("ann"), **limits)

    def set(self, entity: QuotaEntity, **limits: float | None) -> None:
        changes = tuple(QuotaChange(*entity, key, value) for key, value in limits.items())
        fact = ClientQuotasAltered(changes=changes, by="", at_ms=0)
        self.view.apply(segment(self._segments, None, fact))
        self._segments += 1

    def limits(self, principal: str = ANN, client_id: str = "c") -> ClientLimits:
        found = self.quotas.limits_of(principal, client_id)
        assert found is not None
        return found


requests = st.lists(
    st.tuples(st.integers(0, 2_000), st.integers(1, 5_000)), min_size=30, max_size=100
)


@given(st.integers(100, 10_000), requests)
def test_a_client_that_waits_keeps_the_rate(rate: int, sent: list[tuple[int, int]]) -> None:
    """Whatever it sends: in all, at most the quota of the time, of one window, and one request."""
    place, total, largest = Place(producer_byte_rate=rate), 0, 0
    began_s = place.s
    for pause_ms, size in sent:
        place.s += pause_ms / 1000
        total, largest = total + size, max(largest, size)
        place.s += place.limits().produced(size) / 1000
    assert total <= rate * (place.s - began_s + WINDOW_S) + largest + 1e-3


@given(st.integers(1_000, 10_000), requests)
def test_a_refused_fetch_does_not_count(rate: int, wanted: list[tuple[int, int]]) -> None:
    place, read = Place(consumer_byte_rate=rate), list[tuple[float, int]]()
    for pause_ms, size in wanted:
        place.s += pause_ms / 1000
        if not place.limits().fetching(size):
            read.append((place.s, size))
    total, largest = sum(size for _, size in read), max(size for _, size in read)
    assert total <= rate * (place.s - 100 + WINDOW_S) + largest + 1e-3


def test_a_batch_above_the_quota_of_a_window_is_read_and_waited_for() -> None:
    place = Place(consumer_byte_rate=10)
    assert place.limits().fetch_bytes_max == 100
    assert place.limits().fetching(1_000) == 0
    assert place.limits().fetched(0) == 90_000
    assert place.limits().fetching(1) == 90_000
    place.s += 90.001
    assert place.limits().fetching(1_000) == 0


def test_what_was_promised_and_not_read_is_given_back() -> None:
    place = Place(consumer_byte_rate=10)
    assert place.limits().fetching(110) == 0
    assert place.limits().fetching(90) > 0
    assert place.limits().fetched(-110) == 0
    assert place.limits().fetching(90) == 0


def test_the_time_of_requests_throttles_for_at_most_a_sample() -> None:
    place = Place(request_percentage=1.0)
    assert place.limits().worked(100_000_000) == 0, "0.1 s of 10 s"
    assert 0 < place.limits().worked(1_000_000) <= 1_000
    assert place.limits().worked(10**12) == 1_000
    assert place.counts.throttled[REQUEST_PERCENTAGE] == 2
    place.s += WINDOW_S + 0.001
    assert place.limits().worked(0) == 0, "the rest is forgotten"


def test_changes_take_tokens() -> None:
    place = Place(controller_mutation_rate=2.0)
    assert place.limits().changes_wait_s() == 0
    place.limits().changed(32)
    assert place.limits().changes_wait_s() == pytest.approx(5, abs=0.01)
    assert place.limits().throttled_changes() == pytest.approx(5_000, abs=10)
    place.s += 5.01
    assert place.limits().changes_wait_s() == 0


@given(st.lists(st.tuples(st.floats(0, 100), st.integers(0, 100)), max_size=30))
def test_a_token_bucket_keeps_the_rate(events: list[tuple[float, int]]) -> None:
    bucket, now_s, taken, last = TokenBucket(11), 0.0, 0, 0
    for pause_s, tokens in events:
        now_s += pause_s
        if bucket.wait_s(2.0, now_s) == 0:
            bucket.take(tokens, 2.0, now_s)
            taken, last = taken + tokens, max(last, tokens)
    assert taken <= 2.0 * (11 + now_s) + last + 1e-6


def test_each_client_of_a_default_has_a_window() -> None:
    place = Place()
    place.set(QuotaEntity(client_id=DEFAULT), producer_byte_rate=1)
    assert place.limits(client_id="a").produced(1_000) > 0
    assert place.limits(client_id="b").produced(10) == 0
    assert place.limits("User:bob", "a").produced(1) > 900_000, "without a user, users share it"


def test_a_change_of_quotas_applies_at_once_and_remembers_the_use() -> None:
    place = Place(producer_byte_rate=10)
    first_ms = place.limits().produced(200)
    place.set(QuotaEntity("ann"), producer_byte_rate=5)
    assert place.limits().produced(0) == 2 * first_ms
    place.set(QuotaEntity("ann"), producer_byte_rate=None)
    assert place.quotas.limits_of(ANN, "c") is None


@given(st.lists(st.tuples(st.text(max_size=3), st.integers(0, 30_000)), max_size=60))
def test_invented_client_ids_are_bounded(clients: list[tuple[str, int]]) -> None:
    place = Place(5)
    place.set(QuotaEntity(client_id=DEFAULT), producer_byte_rate=1)
    for client_id, pause_ms in clients:
        place.s += pause_ms / 1000
        place.limits(client_id=client_id).produced(1)
        assert place.counts.tracked <= 5


def test_a_busy_client_is_not_forgotten_and_a_quiet_one_is() -> None:
    place = Place(3, producer_byte_rate=1)
    place.limits().produced(10)
    place.set(QuotaEntity(client_id=DEFAULT), producer_byte_rate=1)
    for number in range(20):
        assert place.limits().produced(100) == (number + 1) * 100_000
        place.limits("User:bob", f"invented{number}").produced(1)
    place.s += 61
    place.limits("User:bob", "another").produced(1)
    assert place.counts.tracked == 1


def test_long_client_ids_are_not_kept() -> None:
    place = Place()
    place.set(QuotaEntity(client_id=DEFAULT), producer_byte_rate=1)
    long = "c" * (CLIENT_ID_CHARS_MAX + 1)
    assert place.limits(client_id=long).produced(1_000) > 0
    assert place.limits(client_id=long + "d").produced(1) == 0
    assert place.limits(client_id=long).produced(1) > 0


def test_connections_of_an_address() -> None:
    place = Place()
    place.set(QuotaEntity(ip="10.0.0.1"), connection_creation_rate=2)
    found = [place.quotas.connection_refusal("::ffff:10.0.0.1") for _ in range(30)]
    assert found.count(None) == 2 * WINDOW_S + 1
    assert found[-1] is not None
    assert found[-1].endswith(f"(quota {CONNECTION_CREATION_RATE})")
    assert place.quotas.connection_refusal("10.0.0.2") is None
    place.s += 12
    assert place.quotas.connection_refusal("10.0.0.1") is None
    assert place.counts.throttled[CONNECTION_CREATION_RATE] == 9


def test_the_keys_are_those_of_kafka() -> None:
    limits = {CONTROLLER_MUTATION_RATE, CONSUMER_BYTE_RATE, PRODUCER_BYTE_RATE, REQUEST_PERCENTAGE}
    for key in limits:
        place = Place(**{key: 1.0})
        assert place.limits().counts_work is (key == REQUEST_PERCENTAGE)
