"""`consume --format`, and the lines of `produce` with a key and headers for all."""

import pytest

from bucketlog.cli.line_format import LineFormat
from bucketlog.cli.record_format import record_format
from bucketlog.client.lines import Line
from bucketlog.client.topic import Record
from bucketlog.log_format.errors import ConfigurationError

RECORD: Record[bytes, bytes] = Record(
    "orders", 2, 17, 1000, b"k\x00", b"v\xff", (("a", b"1"), ("b", None), ("a", b"\xfe"))
)
TOMBSTONE: Record[bytes, bytes] = Record("t", 0, 0, -1, None, None, is_tombstone=True)


@pytest.mark.parametrize(
    ("template", "shown"),
    [
        ("%t %p %o %k %v %h", b"orders 2 17 k\x00 v\xff a=1,b=,a=\xfe\n"),
        ("%T %k{hex} %v{base64} %h{hex}", b"1000 6b00 dv8= a=31,b=,a=fe\n"),
        ("100%% {%o}", b"100% {17}\n"),
        (r"%o\n", b"17\n"),
        (r"%v\0", b"v\xff\0"),
        (r"\t\r\\\x1f\xFF", b"\t\r\\\x1f\xff"),
        ("ä", "ä\n".encode()),
        ("", b"\n"),
    ],
)
def test_a_template(template: str, shown: bytes) -> None:
    assert record_format(template)(RECORD) == shown


def test_null_is_empty() -> None:
    assert record_format("[%k] [%v{hex}] [%h] %T")(TOMBSTONE) == b"[] [] [] -1\n"


@pytest.mark.parametrize("template", ["%", "%x", "%o{hex}", "%k{rot13}", r"\q", "a\\", r"\xg0"])
def test_what_has_no_meaning_is_refused(template: str) -> None:
    with pytest.raises(ConfigurationError, match="has no meaning"):
        record_format(template)


def test_a_key_and_headers_for_all_lines() -> None:
    shape = LineFormat.of_flags(
        jsonl=False, separator=None, key="k", headers=["a=1", "a=2=3", "empty="]
    )
    headers: list[tuple[str, str | bytes | None]] = [("a", "1"), ("a", "2=3"), ("empty", "")]
    assert shape.record(b"line") == Line(b"k", b"line", headers, None)
    both = LineFormat.of_flags(jsonl=True, separator=None, key=None, headers=["b=2"])
    line = both.record(b'{"key": "own", "value": "v", "headers": [["a", "1"]]}')
    assert line == Line(b"own", b"v", [("a", "1"), ("b", "2")], None)
    assert both.record(b"") is None
    split = LineFormat.of_flags(jsonl=False, separator=r"\t", key=None, headers=[])
    assert split.record(b"k\tv") == Line(b"k", b"v", [], None)
