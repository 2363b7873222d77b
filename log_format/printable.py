"""Makes untrusted text safe for a terminal or a log.

Group ids, client ids, offset metadata, configs, records and errors of servers may contain any
character. This module escapes characters that move a terminal's cursor, change its state, or
reorder or end a line: C0, DEL, C1, bidirectional controls (UAX 9), and the line and paragraph
separators. It also escapes lone surrogates, which cannot be encoded. Invariant: the result of
`printable` is one line.
"""

import re

_BEYOND_ASCII = r"\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff"
_UNSAFE = re.compile(rf"[\x00-\x1f{_BEYOND_ASCII}]")
_UNSAFE_IN_LINES = re.compile(rf"[\x00-\x08\x0b-\x1f{_BEYOND_ASCII}]")
_UNSAFE_IN_JSON = re.compile(rf"[{_BEYOND_ASCII}]")
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def printable(text: str) -> str:
    """One line, with escapes such as `\\x1b`, `\\n` and `\\u202e` for unsafe characters."""
    return _UNSAFE.sub(_escaped, text)


def printable_lines(text: str) -> str:
    """Like `printable`, but line feeds and tabs stay."""
    return _UNSAFE_IN_LINES.sub(_escaped, text)


def printable_json(text: str) -> str:
    """JSON of the same value. JSON already escapes C0 in strings, so this escapes the others."""
    return _UNSAFE_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    return _SHORT.get(found[0]) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")
