"""How long partitions of retry topics wait, and the headers of their records."""

import pytest

from bucketlog import ConfigurationError, DeadLetter, InvalidDataError, RetryTopics
from bucketlog.client.due_times import DueTimes
from bucketlog.client.origin_headers import Header, due_ms, retry_of, split_headers
from bucketlog.client.topic import Retry

A, B = ("retry-1", 0), ("retry-1", 1)
NOW_MS = 1_000_000_000


class Clocks:
    def __init__(self) -> None:
        self.monotonic_s = 50.0
        self.now_s = 1_000_000.0

    def due_times(self) -> DueTimes:
        return DueTimes(lambda: self.monotonic_s, lambda: self.now_s)


def test_a_partition_waits_until_its_record_is_due() -> None:
    clocks = Clocks()
    due = clocks.due_times()
    assert not due.waits(A, 999_999_000, NOW_MS, 60.0)
    assert not due.waits(A, 1_000_000_000, NOW_MS, 60.0)
    assert due.waits(A, 1_000_010_000, NOW_MS, 60.0)
    assert due.waits(B, 1_000_020_000, NOW_MS, 60.0)
    assert A in due
    assert due.take_due() == []
    clocks.monotonic_s += 10.0
    assert due.take_due() == [A]
    assert A not in due
    due.forget([B])
    clocks.monotonic_s += 100.0
    assert due.take_due() == []


@pytest.mark.parametrize("at_ms", [NOW_MS, 10**18])
@pytest.mark.parametrize("header_ms", [10**18, 253_402_300_800_000, 2_000_000_000_000])
def test_no_record_lets_a_partition_wait_longer_than_the_delay(header_ms: int, at_ms: int) -> None:
    clocks = Clocks()
    due = clocks.due_times()
    assert due.waits(A, header_ms, at_ms, 60.0)
    clocks.monotonic_s += 60.0
    assert due.take_due() == [A]


def test_a_shorter_delay_holds_for_records_that_wait_already() -> None:
    due = Clocks().due_times()
    hour_ago_ms = NOW_MS - 3_600_000
    assert due.waits(A, NOW_MS + 86_400_000, hour_ago_ms, 86_400.0)
    assert not due.waits(A, NOW_MS + 86_400_000, hour_ago_ms, 60.0)


def test_a_clock_that_is_set_back_does_not_lengthen_the_wait() -> None:
    clocks = Clocks()
    due = clocks.due_times()
    assert due.waits(A, 1_000_010_000, NOW_MS, 60.0)
    clocks.now_s -= 86_400.0
    clocks.monotonic_s += 10.0
    assert due.take_due() == [A]


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ([], 0),
        ([("__bucketlog.retry.due_ms", b"17")], 17),
        ([("__bucketlog.retry.due_ms", b"17"), ("__bucketlog.retry.due_ms", b"18")], 18),
        ([("__bucketlog.retry.due_ms", None)], 0),
        ([("__bucketlog.retry.due_ms", b"-1")], 0),
        ([("__bucketlog.retry.due_ms", b"9" * 1_000_000)], 0),
        ([("__bucketlog.retry.due_ms", "\u0663".encode())], 0),
        ([("__bucketlog.retry.due_ms", b"\xff")], 0),
    ],
)
def test_due_times_in_headers(headers: list[Header], expected: int) -> None:
    assert due_ms(headers) == expected


def test_added_headers_come_off_again() -> None:
    first: list[Header] = [("h", b"1"), ("h", None)]
    earlier: list[Header] = [("__connect.errors.topic", b"older"), ("x", b"y")]
    added: list[Header] = [
        ("__connect.errors.topic", b"orders"),
        ("__connect.errors.partition", b"3"),
        ("__connect.errors.offset", b"17"),
        ("__connect.errors.attempts", b"5"),
        ("__bucketlog.retry.due_ms", b"99"),
        ("__bucketlog.retry.timestamp_ms", b"7"),
    ]
    assert retry_of(first + added) == (Retry("orders", 3, 17, 5), tuple(first), 7)
    kept, _ = split_headers(first + earlier + added)
    assert kept == tuple(first + earlier)
    for wrong in ([], first, added[:2], [("__connect.errors.topic", b""), *added[1:]]):
        with pytest.raises(InvalidDataError, match="do not name its origin"):
            retry_of(wrong)


def test_wrong_settings() -> None:
    for delays in ((), (0,), (-1.0,), (float("nan"),), (8 * 24 * 3600,), (1,) * 21):
        with pytest.raises(ConfigurationError, match="delay"):
            RetryTopics("r", delays_s=delays, dead_letter="d")
    with pytest.raises(ConfigurationError, match="is not a topic name"):
        RetryTopics("r/", delays_s=(1,), dead_letter="d")
    with pytest.raises(ConfigurationError, match="is too long"):
        RetryTopics("r" * 248, delays_s=(1,), dead_letter="d")
    with pytest.raises(ConfigurationError, match="is a retry topic and the dead-letter topic"):
        RetryTopics("r", delays_s=(1, 2), dead_letter="r-2")
    made = RetryTopics("r", delays_s=(1, 2), dead_letter=DeadLetter("d"))
    assert made.topics == ("r-1", "r-2")
    ways = [made.next_after(topic) for topic in ("orders", "r-1", "r-2")]
    assert ways == [("r-1", 1.0), ("r-2", 2.0), ("d", None)]
