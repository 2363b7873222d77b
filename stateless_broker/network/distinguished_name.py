"""The subject of a certificate as text, as Java writes it, and hence Kafka's ACLs. Pure.

Invariant: the input was verified by OpenSSL; a certificate that is cut or unknown is an error all
the same, never a guess. Source: RFC 2253, X.690, and X500Principal.getName (JDK's AVA and RDN).
"""

from collections.abc import Iterator
from typing import NamedTuple

_SEQUENCE, _SET, _OID, _VERSION = 0x30, 0x31, 0x06, 0xA0
_BMP, _UNIVERSAL = 0x1E, 0x1C
_TEXTS = frozenset({0x0C, 0x13, 0x14, 0x16, 0x1B, _BMP, _UNIVERSAL})
"""UTF8String, PrintableString, TeletexString, IA5String, GeneralString."""
_FIELDS_BEFORE_SUBJECT = 4
_KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
"""Other attributes are written by their numbers, with their values in hexadecimal."""
_ESCAPED = frozenset(',=+<>#;"\\')


class _Element(NamedTuple):
    """An element in DER. `whole` has the tag and the length, too."""

    tag: int
    content: bytes
    whole: bytes


def subject_name(certificate: bytes) -> str:
    """The subject of the certificate (DER), as in `CN=a,OU=b,C=c`. Raises `ValueError`."""
    (outer,) = _elements(certificate)
    signed, *_ = _elements(outer.content)
    fields = [*_elements(signed.content)]
    if fields and fields[0].tag == _VERSION:
        del fields[0]
    if len(fields) <= _FIELDS_BEFORE_SUBJECT or fields[_FIELDS_BEFORE_SUBJECT].tag != _SEQUENCE:
        raise ValueError("the certificate has no subject")
    relative = [*_elements(fields[_FIELDS_BEFORE_SUBJECT].content)]
    return ",".join(
        "+".join(_attribute(each) for each in _elements(name.content)) for name in relative[::-1]
    )


def _elements(data: bytes) -> Iterator[_Element]:
    at = 0
    while at < len(data):
        begin = at
        if at + 2 > len(data):
            raise ValueError("the certificate is cut")
        tag, length = data[at], data[at + 1]
        at += 2
        if length & 0x80:
            count = length & 0x7F
            length = int.from_bytes(data[at : at + count], "big")
            at += count
        if at + length > len(data):
            raise ValueError("the certificate is cut")
        yield _Element(tag, data[at : at + length], data[begin : at + length])
        at += length


def _attribute(attribute: _Element) -> str:
    kind, value = _elements(attribute.content)
    if kind.tag != _OID:
        raise ValueError("an attribute of the certificate's subject has no type")
    number = _oid(kind.content)
    keyword = _KEYWORDS.get(number)
    if keyword is None or value.tag not in _TEXTS:
        return f"{keyword or number}=#{value.whole.hex()}"
    return f"{keyword}={_escaped(_text(value))}"


def _oid(content: bytes) -> str:
    numbers, number = [], 0
    for byte in content:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    if not numbers:
        raise ValueError("an attribute of the certificate's subject has no type")
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, [first, numbers[0] - 40 * first, *numbers[1:]]))


def _text(value: _Element) -> str:
    encoding = {_BMP: "utf-16-be", _UNIVERSAL: "utf-32-be"}.get(value.tag, "utf-8")
    return value.content.decode(encoding, errors="replace")


def _escaped(text: str) -> str:
    inner = text.strip(" \r")
    lead = len(text) - len(text.lstrip(" \r"))
    before, behind = text[:lead], text[lead + len(inner) :]
    return "".join(
        [
            *(f"\\{each}" for each in before),
            *(
                f"\\{each}" if each in _ESCAPED else "\\00" if each == "\0" else each
                for each in inner
            ),
            *(f"\\{each}" for each in behind),
        ]
    )
