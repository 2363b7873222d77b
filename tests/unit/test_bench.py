"""Histogram, schedule, payload and sending of a load, against numpy and on a made-up clock."""

from collections.abc import Callable
from fractions import Fraction
from random import Random
from typing import Any, cast

import numpy as np
import pytest
from confluent_kafka import KafkaError, Message
from hypothesis import given, settings
from hypothesis import strategies as st

from bucketlog.bench.account import Second
from bucketlog.bench.end_to_end import HEADER_BYTES, stamp
from bucketlog.bench.histogram import Histogram, latency_of
from bucketlog.bench.payload import Payload
from bucketlog.bench.producing import CHUNK, Clock, Load, ProducerRun, RunObserver
from bucketlog.bench.schedule import NS_PER_S, STEP_NS, PacedSchedule, UnpacedSchedule, parse_rate
from bucketlog.client.sending import Outbox
from bucketlog.log_format.errors import ConfigurationError

VALUES = st.lists(st.integers(0, 10**9), min_size=1, max_size=300)
QUANTILES = st.sampled_from([1, 500, 950, 990, 999, 1000])


def filled(values: list[int]) -> Histogram:
    histogram = Histogram()
    for value in values:
        histogram.add(value)
    return histogram


@given(VALUES, QUANTILES)
def test_quantiles_are_numpys_within_a_thousandth(values: list[int], thousandths: int) -> None:
    exact = int(np.percentile(values, thousandths / 10, method="inverted_cdf"))
    told = filled(values).quantile(thousandths)
    assert exact <= told <= exact * (1 + 2**-10)


@given(VALUES)
def test_mean_and_largest_are_exact(values: list[int]) -> None:
    histogram = filled(values)
    assert histogram.largest == max(values)
    assert histogram.count == len(values)
    assert Fraction(histogram.total, len(values)) == Fraction(sum(values), len(values))


@given(VALUES, VALUES, QUANTILES)
def test_merged_is_as_if_counted_together(
    first: list[int], second: list[int], thousandths: int
) -> None:
    merged, together = filled(first), filled(first + second)
    merged.merge(filled(second))
    assert merged.quantile(thousandths) == together.quantile(thousandths)
    assert (merged.count, merged.total, merged.largest) == (
        together.count,
        together.total,
        together.largest,
    )


def test_buckets_are_bounded() -> None:
    histogram = filled([Random(seed).randrange(60_000_000) for seed in range(50_000)])
    assert len(histogram) < 17 * 1024, "a minute in microseconds has 26 bits, 11 are kept"


def test_nothing_counted_is_nothing() -> None:
    assert latency_of(Histogram()) == (0, 0, 0, 0, 0, 0)
    assert filled([-5]).quantile(500) == 0


RATES = st.floats(0.5, 2_000_000)
TIMES = st.lists(st.integers(0, 3 * NS_PER_S), max_size=20).map(sorted)


@given(RATES, TIMES)
def test_all_that_is_due_is_given_once_and_none_before(rate: float, times: list[int]) -> None:
    schedule, given_so_far = PacedSchedule(rate, records=None, duration_ns=None), 0
    for now_ns in times:
        for step in schedule.due(now_ns):
            assert step.due_ns <= now_ns
            assert step.due_ns % STEP_NS == 0
            assert step.due_ns <= given_so_far / rate * NS_PER_S < step.due_ns + STEP_NS + 1
            given_so_far += step.records
        until_ns = (now_ns // STEP_NS + 1) * STEP_NS
        assert abs(given_so_far - rate * until_ns / NS_PER_S) <= 1
        assert schedule.next_ns is not None
        assert schedule.next_ns > now_ns


@given(RATES, st.integers(1, 5000))
def test_a_number_of_records_ends_it(rate: float, records: int) -> None:
    schedule = PacedSchedule(rate, records=records, duration_ns=None)
    assert sum(step.records for step in schedule.due(10**15)) == records
    assert schedule.next_ns is None


def test_a_time_ends_it() -> None:
    schedule = PacedSchedule(1000, records=None, duration_ns=2 * NS_PER_S)
    assert sum(step.records for step in schedule.due(10**12)) == 2000


def test_without_a_pace_there_is_always_more() -> None:
    schedule = UnpacedSchedule(10, records=25, duration_ns=None, free_ns=5)
    counts = [step.records for now in (0, 5, 6, 7, 8) for step in schedule.due(now)]
    assert counts == [10, 10, 10, 5], "the first ones were free"
    assert schedule.next_ns is None
    assert list(UnpacedSchedule(10, records=None, duration_ns=5).due(5)) == []


@pytest.mark.parametrize(
    ("text", "rate"),
    [("0", 0), ("5000", 5000), ("2.5/s", 2.5), ("10MB/s", 100_000), ("1 kb", 10), ("1GB", 10**7)],
)
def test_rates(text: str, rate: float) -> None:
    assert parse_rate(text, 100) == rate


@pytest.mark.parametrize("text", ["", "fast", "-1", "10M", "1e9", "10MiB", "1/h"])
def test_what_is_no_rate(text: str) -> None:
    with pytest.raises(ConfigurationError, match="--rate"):
        parse_rate(text, 100)


@settings(deadline=None, max_examples=20)
@given(st.integers(HEADER_BYTES, 3000), st.integers(0, 50))
def test_records_have_their_size_and_keys(record_bytes: int, keys: int) -> None:
    payload = Payload(
        record_bytes, key_cardinality=keys, random=Random(1), header_bytes=HEADER_BYTES
    )
    header = stamp(b"12345678", 77)
    taken = payload.take(200, header)
    assert {len(record["value"]) for record in taken} == {record_bytes}
    assert all(record["value"].startswith(header) for record in taken)
    assert len({record.get("key") for record in taken}) == (min(keys, 200) if keys else 1)


def test_values_differ_within_a_batch() -> None:
    payload = Payload(100, key_cardinality=0, random=Random(1))
    values = [record["value"] for _ in range(10) for record in payload.take(1000)]
    assert len(set(values)) == len(values)


class SlowBroker:
    """Stands for an outbox: it takes `room` records, and acknowledges none before `answers_ns`."""

    def __init__(self, answers_ns: int, room: int = 10**9) -> None:
        self.now_ns = 0
        self.kafka = self
        self._answers_ns = answers_ns
        self._room = room
        self._waiting: list[tuple[int, Callable[..., None]]] = []

    def put_batch(self, topic: str, messages: list[Any], report: Any) -> list[Any]:
        fits = messages[: self._room - len(self)]
        self._waiting += [(self.now_ns, report)] * len(fits)
        return messages[len(fits) :]

    def poll(self, timeout_s: float) -> int:
        if timeout_s:
            self.sleep(timeout_s)
        if self.now_ns < self._answers_ns:
            return 0
        answered, self._waiting = self._waiting, []
        for put_ns, report in answered:
            report(None, cast(Message, Acknowledged((self.now_ns - put_ns) / NS_PER_S)))
        return len(answered)

    def flush(self, timeout_s: float) -> int:
        self.poll(timeout_s)
        return len(self)

    def purge(self) -> None:
        purged, self._waiting = self._waiting, []
        for _, report in purged:
            report(KafkaError(KafkaError._PURGE_QUEUE), cast(Message, Acknowledged(0)))

    def close(self) -> None: ...

    def sleep(self, seconds: float) -> None:
        self.now_ns += int(seconds * NS_PER_S)

    def __len__(self) -> int:
        return len(self._waiting)


class Acknowledged:
    def __init__(self, latency_s: float) -> None:
        self._latency_s = latency_s

    def latency(self) -> float:
        return self._latency_s

    def topic(self) -> str:
        return "t"


def sending(broker: SlowBroker, load: Load, stops_ns: int = 10**15) -> ProducerRun:
    payload = Payload(load.record_bytes, key_cardinality=0, random=Random(1))
    clock = Clock(lambda: broker.now_ns, broker.sleep)
    watching = RunObserver(lambda: broker.now_ns >= stops_ns)
    return ProducerRun(load, [cast(Outbox, broker)], payload, clock, watching)


@pytest.mark.parametrize("room", [10**9, 10])
def test_a_pause_counts_for_every_record_that_was_due_in_it(room: int) -> None:
    """A cluster answers nothing for two seconds: at 1000 a second that is 2000 late records, also
    where the client had room for 10 only."""
    run = sending(SlowBroker(2 * NS_PER_S, room), Load("t", 100, 1000, 4000, None))
    run.run()
    run.settle(1)
    summary = run.summary(is_interrupted=False)
    assert summary.records == 4000
    late = summary.latency["acknowledged"]
    assert 1900 < late.max <= 2050
    assert 0 <= late.p50 < 60, "the 1000th of 2000 waited no longer than that"
    assert 1700 < late.p95 <= 2000, "of 4000 the 200 latest ones waited so long"


def test_without_a_pace_latency_begins_when_there_is_room() -> None:
    run = sending(SlowBroker(2 * NS_PER_S, 10), Load("t", 100, 0, 4000, None))
    run.run()
    run.settle(1)
    summary = run.summary(is_interrupted=False)
    assert summary.records == 4000
    assert summary.latency["acknowledged"].p95 < 100
    assert summary.late is None


def test_what_is_due_in_the_warm_up_is_not_counted() -> None:
    load = Load("t", 100, 1000, None, NS_PER_S, warm_up_ns=2 * NS_PER_S)
    run = sending(SlowBroker(NS_PER_S), load)
    run.run()
    run.settle(1)
    summary = run.summary(is_interrupted=False)
    assert summary.records == 1000
    assert run.acknowledged == 3000
    assert summary.latency["acknowledged"].max < 100
    assert summary.seconds == pytest.approx(1, abs=0.05)


def test_stopped_it_gives_up_what_is_under_way_and_that_is_no_failure() -> None:
    run = sending(SlowBroker(10**15), Load("t", 100, 1000, None, None), stops_ns=NS_PER_S)
    run.run()
    run.settle(0.5)
    summary = run.summary(is_interrupted=True)
    assert summary.records == 0
    assert 980 <= summary.given_up <= 1001
    assert summary.failed == 0
    assert run.failure is None
    assert summary.records_per_s == 0


def test_it_is_told_each_second() -> None:
    broker, told = SlowBroker(0), list[Second]()
    clock = Clock(lambda: broker.now_ns, broker.sleep)
    payload = Payload(10, key_cardinality=0, random=Random(1))
    load = Load("t", 10, 500, None, 3 * NS_PER_S + 1)
    watching = RunObserver(lambda: False, told.append)
    run = ProducerRun(load, [cast(Outbox, broker)], payload, clock, watching)
    run.run()
    run.settle(1)
    assert [round(second.elapsed_s) for second in told] == [1, 2, 3]
    assert [second.records for second in told[:2]] == pytest.approx([500, 500], abs=15)


def test_a_step_is_handed_over_in_chunks() -> None:
    broker = SlowBroker(0)
    run = sending(broker, Load("t", 10, 5_000_000, 20_000, None))
    run.run()
    run.settle(1)
    assert run.summary(is_interrupted=False).records == 20_000
    assert 5_000_000 * STEP_NS / NS_PER_S > CHUNK, "a millisecond's worth is more than that"


def test_a_step_of_very_many_is_stopped_between_its_chunks() -> None:
    broker = SlowBroker(10**15)
    payload = Payload(10, key_cardinality=0, random=Random(1))
    clock = Clock(lambda: broker.now_ns, broker.sleep)
    watching = RunObserver(lambda: len(broker) >= CHUNK)
    load = Load("t", 10, 10**9, None, None)
    ProducerRun(load, [cast(Outbox, broker)], payload, clock, watching).run()
    assert len(broker) == CHUNK
