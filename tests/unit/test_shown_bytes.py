"""Bytes of hostile records are shown safely, within limits, and without changing JSON."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bucketlog.console.shown_bytes import (
    ShownBytes,
    decoded,
    hex_dump,
    indented,
    is_json,
    preview,
    shown,
)
from bucketlog.log_format.printable import printable, printable_lines

LIMIT = 1_000
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def show(data: bytes | None, form: str = "") -> ShownBytes:
    return shown(data, max_bytes=LIMIT, json_depth_max=20, form=form)


@given(st.binary(max_size=3 * LIMIT))
def test_what_is_shown_is_safe_and_bounded(data: bytes) -> None:
    for form in ("", "text", "hex"):
        text = show(data, form).text
        assert text == printable_lines(text)
        assert len(text) <= 6 * LIMIT
    line = preview(data, max_bytes=100).text
    assert line == printable(line)
    assert len(line) <= 600


@given(st.lists(JSON) | st.dictionaries(st.text(), JSON))
def test_indenting_changes_white_space_only(value: object) -> None:
    text = json.dumps(value, ensure_ascii=False)
    assert json.loads(indented(text)) == value
    assert indented(text).split() == indented(indented(text)).split()


def test_numbers_and_repeated_names_stay_as_they_are() -> None:
    text = '{"n":1.00000000000000000001,"a":1,"a":2,"e":{},"l":[]}'
    assert indented(text) == (
        '{\n  "n": 1.00000000000000000001,\n  "a": 1,\n  "a": 2,\n  "e": {},\n  "l": []\n}'
    )


@pytest.mark.parametrize(
    ("data", "form"),
    [
        (None, "null"),
        (b"", "empty"),
        (b'{"a": "x]"}', "json"),
        (b" [1, 2] ", "json"),
        (b"12", "text"),
        (b'{"a": }', "text"),
        (b"[" * 21 + b"]" * 21, "text"),
        (b"[" * 20 + b"]" * 20, "json"),
        (b'{"n": ' + b"9" * 900 + b"}", "json"),
        (b"[" + b"1," * LIMIT + b"1]", "text"),
        (b"\xff\x00", "hex"),
        ("é".encode() * LIMIT, "text"),
    ],
)
def test_the_form_fits_the_bytes(data: bytes | None, form: str) -> None:
    found = show(data)
    assert found.form == form
    assert found.hidden_bytes == max(0, len(data or b"") - LIMIT)


def test_deep_nesting_is_never_parsed() -> None:
    deep = b"[" * 100_000
    found = shown(deep, max_bytes=len(deep), json_depth_max=50)
    assert found.form == "text"
    assert not is_json("[" * 1_000 + "]" * 1_000, 999)


def test_controls_are_escaped() -> None:
    assert show(b"\x1b[2J\x07ok").text == "\\x1b[2J\\x07ok"
    assert show("a\u202eb".encode()).text == "a\\u202eb"
    assert preview(b"a\nb", max_bytes=10).text == "a\\nb"


def test_a_cut_character_is_left_out() -> None:
    assert decoded("aé".encode()[:2], is_cut=True) == "a"
    assert decoded("aé".encode()[:2], is_cut=False) is None
    assert preview("é".encode() * 10, max_bytes=5).text == "éé"


def test_previews_count_what_they_hide() -> None:
    assert preview(b"\xff" * 8, max_bytes=30) == ShownBytes("hex", "ff " * 7 + "ff", 8, 0)
    assert preview(b"\xff" * 80, max_bytes=30).hidden_bytes == 70
    assert preview(b"x" * 80, max_bytes=30).hidden_bytes == 50


def test_a_hex_dump_has_offset_bytes_and_text() -> None:
    first, second = hex_dump(b"0123456789abcdef\x00~").split("\n")
    assert first == ("00000000  30 31 32 33 34 35 36 37 38 39 61 62 63 64 65 66  0123456789abcdef")
    assert second.startswith("00000010  00 7e ")
    assert second.endswith("  .~")
