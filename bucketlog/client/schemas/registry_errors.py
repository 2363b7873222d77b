"""What a registry's answers mean, in our errors."""

import re

from bucketlog.log_format.errors import (
    BucketlogError,
    IncompatibleSchemaError,
    InvalidDataError,
    SchemaRegistryError,
    SchemaRegistryUnavailableError,
)

_USER_INFO = re.compile("^([a-z]+://)?.*@", re.DOTALL)
_NOT_FOUND = 404
_UNKNOWN_SCHEMA = 40403
_UNKNOWN_SUBJECT = (40401, 40402)
_CONFLICT = 409
_INVALID = 422
_REFUSED = (401, 403)
_PASSING = (408, 429)
_SERVER_ERROR = 500
_SAID_MAX = 500
"""What answers instead of a registry may send pages."""


def registry_error(error: Exception, what: str, url: str, *, auto_register: bool) -> BucketlogError:
    """`error` is of confluent-kafka's client: the registry's answer, or why there was none."""
    status = getattr(error, "http_status_code", None)
    if status is None:
        return SchemaRegistryUnavailableError(
            f"{what}: no schema registry answers at {public(url)}: "
            f"{_short(error) or type(error).__name__}",
            remedy="check its address and that it runs; nothing was skipped: try again",
        )
    code, reason = getattr(error, "error_code", None), getattr(error, "error_message", None)
    said = f"{what}: {_short(reason or 'no reason given')} (HTTP {status}, code {code})"
    if status in _PASSING or status >= _SERVER_ERROR:
        return SchemaRegistryUnavailableError(said, remedy="see the registry's log; try again")
    if status == _CONFLICT:
        return IncompatibleSchemaError(
            said,
            remedy="give added fields a default, or set the subject's compatibility; "
            "a type that is another needs another topic or subject",
        )
    if status == _NOT_FOUND:
        return _not_found(said, what, code, auto_register=auto_register)
    if status in _REFUSED:
        return SchemaRegistryError(said, remedy="give credentials that may do this, as auth=")
    if status == _INVALID:
        return SchemaRegistryError(said, remedy="correct the schema, or ask for another version")
    return SchemaRegistryError(said, remedy=f"check that {public(url)} is a schema registry")


def _not_found(said: str, what: str, code: object, *, auto_register: bool) -> BucketlogError:
    by_id = what.startswith("asking for schema ")
    if by_id and code == _UNKNOWN_SCHEMA:
        return InvalidDataError(
            f"the schema registry has no {what.removeprefix('asking for ')}",
            remedy="it was written with another registry, or its schema was deleted",
        )
    if code == _UNKNOWN_SCHEMA or code in _UNKNOWN_SUBJECT:
        register = "leave out use_latest" if auto_register else "auto_register=True registers it"
        return SchemaRegistryError(said, remedy=f"register it first; {register}")
    return SchemaRegistryError(
        said, remedy="check the URL's path: the API of some registries is under /apis/ccompat/v7"
    )


def public(url: str) -> str:
    """Without user and password."""
    return ",".join(_USER_INFO.sub(r"\1", one) for one in url.split(","))


def _short(said: object) -> str:
    text = str(said)
    return text if len(text) <= _SAID_MAX else f"{text[:_SAID_MAX]}…"
