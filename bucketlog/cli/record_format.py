"""`consume --format`: a template for each record, in the manner of kcat and rpk.

`%t` topic, `%p` partition, `%o` offset, `%T` timestamp in milliseconds, `%k` key, `%v` value, `%h`
headers as name=value with commas between them, `%%` a percent sign. `{hex}` or `{base64}` after
`%k`, `%v` or `%h` encodes the bytes. `\\n`, `\\r`, `\\t`, `\\0`, `\\\\` and `\\xHH` are escapes. A
line feed follows each record, unless the template ends with an escape.
"""

import base64
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from bucketlog.log_format.errors import ConfigurationError

if TYPE_CHECKING:
    from bucketlog.client.topic import Record

Part: TypeAlias = "Callable[[Record[bytes, bytes]], bytes]"
_TOKENS = re.compile(
    r"%(?P<field>.)(?:\{(?P<encoding>[^}]*)\})?|\\(?P<escape>x[0-9a-fA-F]{2}|.)|(?P<text>[^%\\]+)",
    re.DOTALL,
)
_ESCAPES = {"n": b"\n", "r": b"\r", "t": b"\t", "0": b"\0", "\\": b"\\"}
_ENCODINGS: Mapping[str | None, Callable[[bytes], bytes]] = {
    None: lambda data: data,
    "hex": lambda data: data.hex().encode(),
    "base64": base64.b64encode,
}
_NUMBERS: Mapping[str, Part] = {
    "t": lambda record: record.topic.encode(),
    "p": lambda record: b"%d" % record.partition,
    "o": lambda record: b"%d" % record.offset,
    "T": lambda record: b"%d" % record.timestamp_ms,
    "%": lambda record: b"%",
}


def record_format(template: str) -> Part:
    """Returns a function from a record to its bytes. A key or value that is null is empty. Raises
    `ConfigurationError`."""
    parts: list[Part] = []
    at, ends_with_escape = 0, False
    while at < len(template):
        token = _TOKENS.match(template, at)
        if token is None:
            raise _unknown(template[at:])
        ends_with_escape = token["escape"] is not None
        parts.append(_part(token))
        at = token.end()
    if not ends_with_escape:
        parts.append(_constant(b"\n"))
    return lambda record: b"".join([part(record) for part in parts])


def _part(token: "re.Match[str]") -> Part:
    field, encoding, escape = token["field"], token["encoding"], token["escape"]
    if token["text"] is not None:
        return _constant(token["text"].encode(errors="surrogateescape"))
    if escape is not None:
        if escape.startswith("x") and len(escape) == 3:
            return _constant(bytes.fromhex(escape[1:]))
        if escape not in _ESCAPES:
            raise _unknown(token[0])
        return _constant(_ESCAPES[escape])
    if encoding not in _ENCODINGS or (field not in _NUMBERS and field not in "kvh"):
        raise _unknown(token[0])
    if field in _NUMBERS:
        if encoding is not None:
            raise _unknown(token[0])
        return _NUMBERS[field]
    encode = _ENCODINGS[encoding]
    match field:
        case "k":
            return lambda record: encode(record.key or b"")
        case "v":
            return lambda record: encode(b"" if record.is_tombstone else record.value)
        case _:
            return lambda record: b",".join(
                name.encode() + b"=" + encode(value or b"") for name, value in record.headers
            )


def _constant(data: bytes) -> Part:
    return lambda record: data


def _unknown(text: str) -> ConfigurationError:
    return ConfigurationError(
        f"--format: {text[:20]!r} has no meaning",
        remedy=r"use %t %p %o %T %k %v %h %%, %k{hex}, %v{base64}, \n \t \r \0 \\ \xHH",
    )
