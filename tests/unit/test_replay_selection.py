"""From words to the source's options: what is meant, and what is refused."""

import json
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.replaying.selection import Selection, milliseconds, parse_offsets

NOW_MS = 1_800_000_000_000
DAY_MS = 86_400_000


def clock() -> int:
    return NOW_MS


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        ("7d", NOW_MS - 7 * DAY_MS),
        ("2h", NOW_MS - 7_200_000),
        ("30m", NOW_MS - 1_800_000),
        ("1.5s", NOW_MS - 1_500),
        ("250ms", NOW_MS - 250),
        ("1w", NOW_MS - 7 * DAY_MS),
        ("99999d", 0),
        ("2026-11-01T00:00Z", int(datetime(2026, 11, 1, tzinfo=UTC).timestamp()) * 1000),
        (
            datetime(2026, 11, 1, tzinfo=UTC),
            int(datetime(2026, 11, 1, tzinfo=UTC).timestamp()) * 1000,
        ),
        ("2026-11-01", int(datetime(2026, 11, 1).astimezone().timestamp()) * 1000),
        (date(2026, 11, 1), int(datetime(2026, 11, 1).astimezone().timestamp()) * 1000),
        ("2026-11-01T12:30", int(datetime(2026, 11, 1, 12, 30).astimezone().timestamp()) * 1000),
    ],
)
def test_moments(moment: Any, expected: int) -> None:
    assert milliseconds("since", moment, clock) == expected


@pytest.mark.parametrize("moment", ["yesterday", "7", "7 days", "-2h", "", "1969-01-01T00:00Z", 7])
def test_what_is_no_moment(moment: Any) -> None:
    with pytest.raises(ConfigurationError, match="since"):
        milliseconds("since", moment, clock)


def test_points_in_time_become_the_sources_options() -> None:
    chosen = Selection("orders", since="2h", until=datetime.fromtimestamp(NOW_MS / 1000, UTC))
    assert chosen.options(clock) == {
        "subscribe": "orders",
        "startingTimestamp": str(NOW_MS - 7_200_000),
        "startingOffsetsByTimestampStrategy": "latest",
        "endingTimestamp": str(NOW_MS),
    }


def test_offsets_become_the_sources_options() -> None:
    found = Selection("orders", offsets={0: 5, 2: (None, 9), 1: (3, None)}).options(clock)
    assert json.loads(found["assign"]) == {"orders": [0, 1, 2]}
    assert json.loads(found["startingOffsets"]) == {"orders": {"0": 5, "1": 3, "2": -2}}
    assert json.loads(found["endingOffsets"]) == {"orders": {"0": -1, "1": -1, "2": 9}}


def test_offsets_as_text() -> None:
    assert parse_offsets("0:120, 1:7-90,2:-50,3:") == {
        0: (120, None),
        1: (7, 90),
        2: (None, 50),
        3: (None, None),
    }


@pytest.mark.parametrize("text", ["", "0", "0:a", "0:1-2-3", "0:1,0:2", "x:1", "0:" + "9" * 5_000])
def test_what_is_no_text_of_offsets(text: str) -> None:
    with pytest.raises(ConfigurationError, match="as in 0:120"):
        parse_offsets(text)


@pytest.mark.parametrize(
    "wanted",
    [
        {"since": "1h", "until": "2h"},
        {"since": "1h", "offsets": {0: 1}},
        {"until": "1h", "offsets": {0: 1}},
        {"offsets": {0: 1}, "partitions": [1]},
        {"offsets": {0: -1}},
        {"partitions": []},
    ],
)
def test_contradictions_are_refused(wanted: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        Selection("orders", **wanted).options(clock)


def test_a_duration_is_back_from_the_clock_that_is_passed_in() -> None:
    later = NOW_MS + int(timedelta(days=1) / timedelta(milliseconds=1))
    assert milliseconds("since", "1d", lambda: later) == NOW_MS
