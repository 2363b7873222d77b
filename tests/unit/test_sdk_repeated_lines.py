"""Librdkafka's log during an outage: the same line comes once in a while, a new one at once."""

import logging
from collections.abc import Iterator

import pytest

from bucketlog.client import repeated_lines
from bucketlog.client.repeated_lines import REPEAT_S, RepeatedLines


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def logger(clock: Clock) -> Iterator[logging.Logger]:
    logger = logging.getLogger("test.repeated")
    lines = RepeatedLines(clock)
    logger.addFilter(lines)
    yield logger
    logger.removeFilter(lines)


def refused(
    logger: logging.Logger,
    address: str = "127.0.0.1:9092",
    *,
    client: str = "bucketlog#producer-1",
    suffix: str = "bootstrap",
    details: str = "after 0ms in state CONNECT",
    level: int = logging.ERROR,
    reason: str = "Connection refused",
) -> None:
    text = (
        f"[thrd:{address}/{suffix}]: {address}/{suffix}:"
        f" Connect to ipv4#{address} failed: {reason} ({details})"
    )
    logger.log(level, "%s [%s] %s", "FAIL", client, text)


def test_the_same_line_once_in_a_while(
    logger: logging.Logger, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(100):
        refused(logger)
        refused(logger, client="bucketlog#consumer-2", suffix="0")
        refused(logger, details="after 3ms in state CONNECT, 30 identical error(s) suppressed")
        clock.now_s += REPEAT_S / 101
    assert len(caplog.messages) == 1
    assert "like it" not in caplog.text
    clock.now_s = REPEAT_S
    refused(logger)
    assert caplog.messages[1].endswith("CONNECT) (and 299 like it in the last 30 s)")
    clock.now_s += REPEAT_S
    refused(logger)
    assert "like it" not in caplog.messages[2]


def test_what_differs_is_written_at_once(
    logger: logging.Logger, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        refused(logger)
        refused(logger, "127.0.0.1:9093")
        refused(logger, "10.0.0.1:9092")
        refused(logger, reason="Host is unreachable")
        refused(logger, details="after 0ms in state SSL_HANDSHAKE")
        refused(logger, level=logging.WARNING)
        logger.error("%s [%s] %s", "ERROR", "bucketlog#producer-1", "1/1 brokers are down")
        logger.error("%s [%s] %s", "ERROR", "bucketlog#producer-1", "2/2 brokers are down")
    assert len(caplog.messages) == 8
    for _ in range(2):
        logger.error("a line of our own: %s", "x")
        logger.error("plain")
    assert len(caplog.messages) == 12


def test_memory_is_bounded(
    logger: logging.Logger, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repeated_lines, "LINES_MAX", 10)
    for port in (*range(50), 49, 0):
        refused(logger, f"127.0.0.1:{port}")
    assert len(caplog.messages) == 51, "the first was forgotten, the last was not"
    (lines,) = logger.filters
    assert isinstance(lines, RepeatedLines)
    assert len(lines._lines) == 10
