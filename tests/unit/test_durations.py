"""Durations: one grammar, whoever reads them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bucketlog.cli.topics_file import read_topics
from bucketlog.client.retention import retention_ms
from bucketlog.log_format.durations import format_duration, is_duration, parse_duration_ms
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.replaying.selection import milliseconds

DAY_MS = 86_400_000
NOW_MS = 1_700_000_000_000
ACCEPTED = [
    ("7d", 7 * DAY_MS),
    ("7 d", 7 * DAY_MS),
    (" 1 d ", DAY_MS),
    ("2w", 14 * DAY_MS),
    ("12h", DAY_MS // 2),
    ("1.5h", 5_400_000),
    ("0.1s", 100),
    ("30m", 1_800_000),
    ("90s", 90_000),
    ("250ms", 250),
    ("0s", 0),
    ("0d", 0),
    ("0.001s", 1),
]
REFUSED = ["", "7", "d", "7 days", "-1d", "+1d", "1.5", ".5h", "1.h", "1e3s", "1,5h", "٣d", "7D"]


@pytest.mark.parametrize(("written", "length_ms"), ACCEPTED)
def test_accepted(written: str, length_ms: int) -> None:
    assert is_duration(written)
    assert parse_duration_ms(written) == length_ms


@pytest.mark.parametrize("written", [*REFUSED, "0.5ms", "1.0001s", "9" * 19 + "w", "9" * 20 + "ms"])
def test_refused(written: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_duration_ms(written)
    assert repr(written) in caught.value.message
    assert "1.5h" in caught.value.remedy


@pytest.mark.parametrize(("written", "length_ms"), ACCEPTED)
def test_sdk_topics_file_and_replay_agree_on_what_is_accepted(written: str, length_ms: int) -> None:
    assert retention_ms(written) == length_ms
    topics = f"topics:\n  - {{name: a, retention: '{written}'}}\n"
    assert read_topics("t.yaml", topics.encode())[0].retention == length_ms
    assert milliseconds("since", written, lambda: NOW_MS) == NOW_MS - length_ms


@pytest.mark.parametrize("written", REFUSED)
def test_sdk_topics_file_and_replay_agree_on_what_is_refused(written: str) -> None:
    with pytest.raises(ConfigurationError):
        retention_ms(written)
    with pytest.raises(ConfigurationError, match="retention"):
        read_topics("t.yaml", f"topics:\n  - {{name: a, retention: '{written}'}}\n".encode())
    with pytest.raises(ConfigurationError, match="since"):
        milliseconds("since", written, lambda: NOW_MS)


@given(st.integers(0, 2**63 - 1))
def test_every_duration_has_a_text(length_ms: int) -> None:
    assert parse_duration_ms(format_duration(length_ms)) == length_ms
