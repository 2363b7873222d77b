"""The address of a broker's Valkey: the part of a claim that other brokers follow
(docs/format/claim.md).

Invariants: decoded values are within bounds, and the host is a name or an address; the password is
in no text and no `repr`. A value that this version does not understand decodes to None. Its claim
is valid nevertheless: brokers then judge the epoch from outside.
"""

import re
from dataclasses import dataclass, field
from ipaddress import IPv6Address

from pydantic import BaseModel, ConfigDict, Field, ValidationError

VERSION = 1
PORT_MAX = 65_535
HOST_CHARS_MAX = 253
PASSWORD_CHARS_MIN, PASSWORD_CHARS_MAX = 32, 128
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_PASSWORD = re.compile(r"[0-9a-f]+")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A Valkey that a broker started. The login is the user `valkey_process.USER`."""

    host: str
    port: int
    password: str = field(repr=False)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


class _Content(BaseModel):
    model_config = ConfigDict(strict=True)

    version: int = Field(ge=VERSION, le=VERSION)
    host: str = Field(min_length=1, max_length=HOST_CHARS_MAX)
    port: int = Field(ge=1, le=PORT_MAX)
    password: str = Field(min_length=PASSWORD_CHARS_MIN, max_length=PASSWORD_CHARS_MAX)


def is_host(text: str) -> bool:
    """Return whether `text` is a host name, an IPv4 or an IPv6 address."""
    if len(text) > HOST_CHARS_MAX:
        return False
    if ":" not in text:
        return _NAME.fullmatch(text) is not None
    try:
        return IPv6Address(text).scope_id is None
    except ValueError:
        return False


def encode_endpoint(endpoint: Endpoint) -> dict[str, object]:
    """The value of a claim's field `valkey`, for JSON."""
    return {
        "version": VERSION,
        "host": endpoint.host,
        "port": endpoint.port,
        "password": endpoint.password,
    }


def decode_endpoint(value: object) -> Endpoint | None:
    """The reverse of `encode_endpoint`. None for a value of a later version, and for an invalid
    one."""
    try:
        content = _Content.model_validate(value)
    except ValidationError:
        return None
    if not is_host(content.host) or _PASSWORD.fullmatch(content.password) is None:
        return None
    return Endpoint(content.host, content.port, content.password)
