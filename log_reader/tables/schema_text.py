"""The schema of values as text, `id string, amount decimal(10,2)`, as Spark writes it. Pure.

The grammar is that part of Spark's DDL which an ingest can use: no comments and no NOT NULL. Names
in backticks may have any characters. Types are those of the table of conversions in docs/lake.md.
"""

import re
from collections.abc import Iterator

import pyarrow as pa

from bucketlog.log_format.errors import ConfigurationError

TEXT_CHARACTERS_MAX = 1_000_000
DEPTH_MAX = 50
PRECISION_MAX = 38
_TOKEN = re.compile(r"\s*(`(?:[^`]|``)+`|[A-Za-z0-9_]+|[<>(),:])")
_NAME = re.compile(r"`.*`|\w+", re.ASCII | re.DOTALL)
_SIMPLE = {
    "string": pa.string(),
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "byte": pa.int8(),
    "smallint": pa.int16(),
    "short": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "long": pa.int64(),
    "float": pa.float32(),
    "real": pa.float32(),
    "double": pa.float64(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ltz": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_DECIMAL = ("decimal", "dec", "numeric")


def parse_schema(text: str) -> pa.Schema:
    """Return the fields; none for an empty text. Raises `ConfigurationError`, which names the place
    in the text."""
    if len(text) > TEXT_CHARACTERS_MAX:
        raise ConfigurationError(
            f"the schema has {len(text):,} characters",
            remedy=f"shorten it to {TEXT_CHARACTERS_MAX:,} characters",
        )
    if not text.strip():
        return pa.schema([])
    return pa.schema(_Parser(text).fields(end="", depth=0))


class _Parser:
    """Reads `text` from left to right, one token at a time; "" is the end of the text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._split()
        self._next = next(self._tokens)

    def _split(self) -> Iterator[str]:
        self._at = at = 0
        while self._text[at:].strip():
            found = _TOKEN.match(self._text, at)
            if found is None:
                raise self._wrong(f"{self._text[at:].strip()[:20]!r} is unexpected")
            self._at = at
            yield found[1]
            at = found.end()
        self._at = len(self._text)
        while True:
            yield ""

    def fields(self, *, end: str, depth: int) -> list[pa.Field]:
        """Names and types, with or without a colon between them, up to `end`."""
        found: list[pa.Field] = []
        while True:
            name = self._name()
            if self._next == ":":
                self._take()
            found.append(pa.field(name, self._type(depth)))
            if self._next == end:
                return found
            self._expect(",")

    def _type(self, depth: int) -> pa.DataType:
        if depth > DEPTH_MAX:
            raise self._wrong(f"types are nested more than {DEPTH_MAX} deep")
        name = self._take().lower()
        if name in _DECIMAL:
            return self._decimal()
        if name == "array":
            self._expect("<")
            kind = self._type(depth + 1)
            self._expect(">")
            return pa.list_(kind)
        if name == "map":
            self._expect("<")
            key = self._type(depth + 1)
            self._expect(",")
            kind = self._type(depth + 1)
            self._expect(">")
            return pa.map_(key, kind)
        if name == "struct":
            self._expect("<")
            members = self.fields(end=">", depth=depth + 1)
            self._expect(">")
            return pa.struct(members)
        if name not in _SIMPLE:
            raise self._wrong(f"{name!r} is not a type of values")
        return _SIMPLE[name]

    def _decimal(self) -> pa.DataType:
        if self._next != "(":
            return pa.decimal128(10, 0)
        self._take()
        precision, scale = self._number(), 0
        if self._next == ",":
            self._take()
            scale = self._number()
        self._expect(")")
        if not 1 <= precision <= PRECISION_MAX or scale > precision:
            raise self._wrong(f"decimal({precision},{scale}) has no digits for its scale")
        return pa.decimal128(precision, scale)

    def _number(self) -> int:
        found = self._take()
        if not (found.isascii() and found.isdigit() and len(found) < 5):
            raise self._wrong(f"{found[:20]!r} is not a number of digits")
        return int(found)

    def _name(self) -> str:
        found = self._take()
        if not _NAME.fullmatch(found):
            raise self._wrong(f"{found!r} is not a name" if found else "a field is expected")
        return found[1:-1].replace("``", "`") if found.startswith("`") else found

    def _expect(self, wanted: str) -> None:
        found = self._take()
        if found != wanted:
            raise self._wrong(f"{wanted!r} is expected, not {found[:20]!r}")

    def _take(self) -> str:
        found, self._next = self._next, ""
        if found:
            self._next = next(self._tokens)
        return found

    def _wrong(self, reason: str) -> ConfigurationError:
        return ConfigurationError(
            f"the schema does not parse near character {self._at + 1}: {reason}",
            remedy="write names and types of docs/lake.md, as in 'id string, amount double'",
        )
