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
_NOT_THERE = range(40401, 40409)
"""Codes for what the registry does not have or has deleted, and for a subject without a
compatibility level."""
_NOT_DELETED_YET = (40405, 40407)
_CONFLICT = 409
_REFERENCED = 42206
_INVALID = 422
_REFUSED = (401, 403)
_PASSING = (408, 429)
_SERVER_ERROR = 500
_CREDENTIALS = "give credentials that may do this, as auth= or BUCKETLOG_SCHEMA_REGISTRY_AUTH"
_SAID_MAX = 500
"""Another server may answer instead of a registry, and send a whole page."""


def registry_error(error: Exception, what: str, url: str, *, missing: str) -> BucketlogError:
    """Convert an error of confluent-kafka's client: the registry's answer, or why there was none.
    `missing`: the remedy if the registry does not have what was asked for."""
    status = getattr(error, "http_status_code", None)
    if status is None:
        return SchemaRegistryUnavailableError(
            f"{what}: no schema registry answers at {public(url)}: "
            f"{_short(error) or type(error).__name__}",
            remedy="check its address and that it runs, then try again: nothing was skipped",
        )
    code, reason = getattr(error, "error_code", None), getattr(error, "error_message", None)
    said = f"{what}: {_short(reason or 'no reason given')} (HTTP {status}, code {_short(code)})"
    if status in _PASSING or status >= _SERVER_ERROR:
        return SchemaRegistryUnavailableError(said, remedy="see the registry's log; try again")
    if status == _CONFLICT and code not in _NOT_DELETED_YET:
        return IncompatibleSchemaError(
            said,
            remedy="give added fields a default, or set the subject's compatibility; "
            "a different type needs another topic or subject",
        )
    if status == _NOT_FOUND:
        return _not_found(said, what, code, missing=missing)
    if status in _REFUSED:
        return SchemaRegistryError(said, remedy=_CREDENTIALS)
    if code == _REFERENCED:
        return SchemaRegistryError(said, remedy="delete the schemas that refer to it first")
    if status == _INVALID:
        return SchemaRegistryError(said, remedy="correct the schema, or ask for another version")
    return SchemaRegistryError(said, remedy=f"check that {public(url)} is a schema registry")


def _not_found(said: str, what: str, code: object, *, missing: str) -> BucketlogError:
    by_id = what.startswith("asking for schema ")
    if by_id and code == _UNKNOWN_SCHEMA:
        return InvalidDataError(
            f"the schema registry has no {what.removeprefix('asking for ')}",
            remedy="it was written with another registry, or its schema was deleted",
        )
    if code in _NOT_THERE:
        return SchemaRegistryError(said, remedy=missing)
    return SchemaRegistryError(
        said, remedy="check the URL's path: the API of some registries is under /apis/ccompat/v7"
    )


def is_absent(error: Exception) -> bool:
    """Return True if the registry answered that it does not have what was asked for."""
    status, code = getattr(error, "http_status_code", None), getattr(error, "error_code", None)
    return status == _NOT_FOUND and code in _NOT_THERE


def public(url: str) -> str:
    """Without user and password."""
    return ",".join(_USER_INFO.sub(r"\1", one) for one in url.split(","))


def _short(said: object) -> str:
    text = str(said)
    return text if len(text) <= _SAID_MAX else f"{text[:_SAID_MAX]}…"
