"""What is counted of requests, and what the log says of slow ones."""

import asyncio
import json
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from bucketlog.stateless_broker.network.request_figures import (
    SOFTWARE_CHARS_MAX,
    SOFTWARE_MAX,
    ApiFigures,
    RequestFigures,
)
from bucketlog.stateless_broker.process.log_lines import JsonLines
from bucketlog.tiered_storage.counting import BUCKETS_S
from tests.rigs.fake_wire import Requests, connect, framed

METADATA = b"\0\3\0\x05\0\0\0\x07rest"


@given(st.lists(st.floats(0, 100) | st.sampled_from(BUCKETS_S)))
def test_a_duration_counts_in_each_bucket_that_is_no_less(durations: list[float]) -> None:
    figures = RequestFigures(slow_request_ms=0)
    for seconds in durations:
        figures.answered(3, seconds, request_bytes=2, response_bytes=5)
    each = figures.by_api.get(3, ApiFigures())
    assert sum(each.seconds.counts) == len(durations)
    assert (each.request_bytes, each.response_bytes) == (2 * len(durations), 5 * len(durations))
    for bound, count in each.seconds.cumulative():
        assert count == sum(seconds <= float(bound) for seconds in durations)


async def test_requests_count_when_they_are_answered_errors_too() -> None:
    figures = RequestFigures(slow_request_ms=0)
    requests = Requests()
    wire = connect(requests, figures=figures)
    wire.carry(framed(METADATA) * 2)
    requests.answer(1)
    await asyncio.sleep(0)
    assert figures.by_api == {}
    requests.taken[0][1].errors = (ErrorCode.not_controller, ErrorCode.not_controller)
    requests.answer(0)
    await asyncio.sleep(0)
    each = figures.by_api[3]
    assert (sum(each.seconds.counts), each.request_bytes) == (2, 2 * len(METADATA))
    assert each.response_bytes == 2 * len(b"answer to " + METADATA)
    assert figures.errors == {(3, ErrorCode.not_controller): 2}


@pytest.mark.parametrize("may_wait_s", [0.0, 10.0])
async def test_a_slow_request_is_told_unless_it_asked_to_wait(
    may_wait_s: float, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = Requests()
    wire = connect(requests, figures=RequestFigures(slow_request_ms=20))
    clock_s = 100.0
    monkeypatch.setattr(wire.connection, "_now_s", lambda: clock_s)
    wire.carry(framed(METADATA))
    answer = requests.taken[0][1]
    answer.client_id, answer.correlation_id, answer.may_wait_s = "who", 7, may_wait_s
    clock_s += 0.03
    with caplog.at_level(logging.WARNING):
        requests.answer(0)
        await asyncio.sleep(0)
    if may_wait_s:
        assert caplog.records == []
        return
    assert wire.connection.service.figures.slow == {3: 1}
    (line,) = caplog.records
    row = json.loads(JsonLines().format(line))
    assert row["message"].startswith("Metadata took 0.03")
    assert (row["level"], row["client_id"], row["correlation_id"]) == ("WARNING", "who", 7)


def test_a_line_of_json_holds_the_exception() -> None:
    try:
        raise ValueError("two\nlines")
    except ValueError as error:
        info = (type(error), error, error.__traceback__)
    record = logging.LogRecord("a.b", logging.ERROR, "", 0, "what %s", ("ever",), info)
    text = JsonLines().format(record)
    assert "\n" not in text
    row = json.loads(text)
    assert (row["logger"], row["message"]) == ("a.b", "what ever")
    assert "two\nlines" in row["exception"]


def test_closed_connections_count_by_the_setting_that_is_the_reason() -> None:
    figures = RequestFigures(slow_request_ms=0)
    for reason in (
        "no request for 5 ms (BUCKETLOG_CONNECTIONS_IDLE_MS_MAX)",
        "no request for 6 ms (BUCKETLOG_CONNECTIONS_IDLE_MS_MAX)",
        "(BUCKETLOG_CONNECTIONS_IDLE_MS_MAX) is what a client may say",
        "a string is not UTF-8",
    ):
        figures.closed_because(reason)
    figures.closed_by_limit("http_idle_ms_max")
    assert figures.closed == {"connections_idle_ms_max": 2, "other": 2, "http_idle_ms_max": 1}


def test_names_of_software_are_bounded() -> None:
    figures = RequestFigures(slow_request_ms=0)
    figures.shook_hands("n" * SOFTWARE_CHARS_MAX, "1")
    for number in range(2 * SOFTWARE_MAX):
        figures.shook_hands("made-up", str(number))
        figures.shook_hands("made-up", "0")
    assert len(figures.software) == SOFTWARE_MAX
    assert figures.software["made-up 0"] == 2 * SOFTWARE_MAX + 1
    assert figures.software["other"] == SOFTWARE_MAX + 2
