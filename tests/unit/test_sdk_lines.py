"""Records as lines: what `consume -o jsonl` prints, `produce --jsonl` sends unchanged."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bucketlog.client.lines import json_line, plain_line, to_json_line
from bucketlog.client.topic import Record
from bucketlog.log_format.errors import InvalidDataError

MAYBE_BYTES = st.none() | st.binary(max_size=20)
HEADERS = st.lists(st.tuples(st.text(max_size=5), MAYBE_BYTES), max_size=3)


@given(key=MAYBE_BYTES, value=MAYBE_BYTES, headers=HEADERS, timestamp=st.integers(-(2**42), 2**42))
def test_nothing_is_lost_on_the_way(
    key: bytes | None,
    value: bytes | None,
    headers: list[tuple[str, bytes | None]],
    timestamp: int,
) -> None:
    record: Record[bytes, bytes] = Record(
        "t", 3, 9, timestamp, key, value, tuple(headers), is_tombstone=value is None
    )
    text = to_json_line(record)
    assert "\n" not in text
    line = json_line(text.encode())
    assert (line.key, line.value) == (key, value)
    sent = [(name, item.encode() if isinstance(item, str) else item) for name, item in line.headers]
    assert sent == headers
    assert line.timestamp_ms == timestamp


def test_what_a_line_looks_like() -> None:
    record: Record[bytes, bytes] = Record("t", 1, 2, 3, b"k", b"\xff", (("h", b"v"),))
    assert json.loads(to_json_line(record)) == {
        "topic": "t",
        "partition": 1,
        "offset": 2,
        "timestamp": 3,
        "key": "k",
        "value_base64": "/w==",
        "headers": [["h", "v"]],
    }


def test_a_nested_value_is_sent_as_json() -> None:
    assert json_line(b'{"value": {"a": [1, true]}}').value == b'{"a": [1, true]}'


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[]",
        b'"x"',
        b"{}",
        b'{"key": "k"}',
        b'{"value_base64": "?"}',
        b'{"value": "x", "headers": [1]}',
        b'{"value": "x", "headers": [["a"]]}',
        b'{"value": "x", "headers": [[1, "a"]]}',
        b'{"value": "x", "timestamp": "now"}',
        b"\xff",
    ],
)
def test_a_line_that_is_no_record(text: bytes) -> None:
    with pytest.raises(InvalidDataError):
        json_line(text)


def test_plain_lines() -> None:
    assert plain_line(b"a\tb\tc", None).value == b"a\tb\tc"
    keyed = plain_line(b"a\tb\tc", b"\t")
    assert (keyed.key, keyed.value) == (b"a", b"b\tc")
    with pytest.raises(InvalidDataError, match="no key separator"):
        plain_line(b"abc", b"\t")
