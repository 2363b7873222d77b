"""Random JSON texts: numbers, strings, times and objects, in unusual and in wrong spellings."""

import json
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

whole = st.one_of(
    st.integers(-12, 1200).map(str),
    st.integers(-(2**70), 2**70).map(str),
    st.sampled_from(["-0", "00", "01", "+1", "1.0", "1e3", str(10**18), str(10**18 - 1), "0x1"]),
)
exponents = st.sampled_from(["", "", "e0", "E5", "e+22", "e-23", "e23", "e-310", "e400", "e", "e+"])
reals = st.one_of(
    st.floats().map(repr),
    st.floats(-12, 12).map(repr),
    st.builds("{}{}".format, st.floats(allow_nan=False, allow_infinity=False).map(repr), exponents),
    st.builds("{}.{}{}".format, whole, st.from_regex(r"[0-9]{0,25}", fullmatch=True), exponents),
    whole,
    st.sampled_from(["-0.0", "NaN", "Infinity", "-Infinity", "1.", ".5", "9007199254740993.0"]),
)
strings = st.one_of(
    st.text(max_size=5).map(json.dumps),
    st.text(max_size=5).map(lambda text: json.dumps(text, ensure_ascii=False)),
    st.sampled_from(
        [r'"\u00e9\/\b\f\n\r\t\\"', r'"\ud83d\ude00"', r'"\ud800"', r'"\u00"', r'"\x"']
    ),
    st.sampled_from(['"red"', '"s"', '"6fa459ea-ee8a-3ca4-894e-db77e160355e"', '"1234567.89"']),
)
digits = st.integers(0, 99).map("{:02}".format)
moments = st.builds(
    '"{}{}{}:{}{}{}"'.format,
    st.one_of(
        st.dates().map(str),
        st.sampled_from(["0000-01-01", "0001-01-01", "9999-12-31", "2023-02-29", "1900-02-29"]),
        st.sampled_from(["2000-02-29", "1969-12-31", "2024-13-01", "2024-04-31", "2024-00-10"]),
    ),
    st.sampled_from(["T", "T", " ", "t", "_"]),
    st.integers(0, 23).map("{:02}".format) | digits,
    st.integers(0, 59).map("{:02}".format) | digits,
    st.sampled_from(["", ":00", ":59", ":59.5", ":30.123456", ":30.1234567", ":60", ":", ":00."]),
    st.sampled_from(["", "Z", "Z", "z", "+00:00", "-0530", "+23:59", "+24:00", "+12:60", "+1"]),
)
deep: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=5,
)
tokens = st.one_of(
    whole,
    reals,
    strings,
    moments,
    st.dates().map(lambda day: f'"{day}"'),
    st.sampled_from(
        ["true", "false", "null", "nul", "True", "[]", "{}", "[1,]", '{"a":}', "[" * 70]
    ),
    deep.map(json.dumps),
)
spaces = st.sampled_from(["", "", "", " ", "\n\t", "\r", "\v", "\u00a0"])


@st.composite
def written(draw: st.DrawFn, members: Sequence[tuple[str, str]]) -> bytes:
    """Make an object with these members. Some objects are damaged."""
    space = draw(spaces)
    inside = f",{space}".join(
        f"{json.dumps(name, ensure_ascii=draw(st.booleans()))}{space}:{space}{value}"
        for name, value in members
    )
    made = f"{space}{{{space}{inside}{space}}}{space}".encode(errors="surrogatepass")
    if not draw(st.integers(0, 2)):
        at = draw(st.integers(0, len(made)))
        cut = draw(st.integers(0, 2))
        made = made[:at] + draw(st.binary(max_size=2)) + made[at + cut :]
    return made
