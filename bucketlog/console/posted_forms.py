"""Checks of POST requests: a page of this console sent them, and their form is small.

Source: the application/x-www-form-urlencoded parser of the WHATWG's URL standard.
"""

from urllib.parse import parse_qsl, urlsplit

from starlette.requests import ClientDisconnect, Request

from bucketlog.console.page_query import PageQuery
from bucketlog.log_format.errors import BucketlogError, ConfigurationError

FORM = "application/x-www-form-urlencoded"
FORM_FIELDS_MAX = 20


class OtherOriginError(BucketlogError):
    """No page of this console sent the POST request."""

    code = "OTHER_ORIGIN"


class BadFormError(ConfigurationError):
    """The body of a POST request is not a form, or is too large."""


def check_origin(request: Request) -> None:
    """Raise `OtherOriginError` unless a page of this console sent the request."""
    origin = _netloc(request.headers.get("origin", ""))
    if not origin or origin != request.headers.get("host", "").lower():
        raise OtherOriginError(
            "only a page of this console may send this request",
            remedy="use the button of the page",
        )


def _netloc(url: str) -> str:
    try:
        return urlsplit(url).netloc.lower()
    except ValueError:  # such as "http://["
        return ""


async def form_values(request: Request, bytes_max: int) -> PageQuery:
    """The values of a form of at most `bytes_max` bytes. Raises `BadFormError`."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != FORM:
        raise BadFormError("the request has no form", remedy="use the form of the page")
    body = await _body(request, bytes_max)
    try:
        pairs = parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=FORM_FIELDS_MAX,
        )
    except ValueError as error:
        raise BadFormError(
            f"the form cannot be read: {error}", remedy="use the form of the page"
        ) from error
    return PageQuery(dict(pairs))


async def _body(request: Request, bytes_max: int) -> bytes:
    body = bytearray()
    try:
        async for part in request.stream():
            body += part
            if len(body) > bytes_max:
                raise BadFormError(
                    f"the form has more than {bytes_max} bytes",
                    remedy="shorten its values, or raise BUCKETLOG_CONSOLE_CHANGE_BYTES_MAX",
                )
    except ClientDisconnect as error:
        raise BadFormError(
            "the connection ended within the form", remedy="send the form again"
        ) from error
    return bytes(body)
