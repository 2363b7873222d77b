"""The console as an ASGI application: routes, headers, templates, and errors as pages.

Invariants: a page is computed in a thread, and at most `pages_in_flight_max` threads work at a
time. A request that gets no thread in time is answered with 503. Every response has a
Content-Security-Policy without inline scripts and styles. Templates escape every value. GET
requests change nothing. POST requests start and stop checks and replays, run queries, and change
the log through brokers. The console refuses POST requests that its pages did not send. A read-only
application has no route for POST requests.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from http import HTTPStatus
from typing import Any, TypeAlias, TypeVar

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bucketlog.console import group_pages, message_pages, pages
from bucketlog.console.access_page import access
from bucketlog.console.aged_value import StillReadingError
from bucketlog.console.brokers_page import brokers
from bucketlog.console.bucket_page import bucket
from bucketlog.console.change_page import change_form, change_plan, change_result
from bucketlog.console.cost_page import cost
from bucketlog.console.export_response import ExportSlots, send_export
from bucketlog.console.log_checks import CheckRefusedError
from bucketlog.console.message_export import export
from bucketlog.console.metrics import CONTENT_TYPE, metrics_text
from bucketlog.console.page_deadline import PageTimeoutError, page_timeout
from bucketlog.console.page_query import PageQuery
from bucketlog.console.page_templates import FOLDER, environment
from bucketlog.console.page_threads import PagesBusyError, PageThreads
from bucketlog.console.pages import Console, UnknownNameError, Values
from bucketlog.console.pending_plans import PlanGoneError
from bucketlog.console.posted_forms import OtherOriginError, check_origin, form_values
from bucketlog.console.queries import QueryRefusedError
from bucketlog.console.query_page import query_form, query_result
from bucketlog.console.replay_page import replay, start_replay, stop_replay
from bucketlog.console.replay_runs import ReplayRefusedError
from bucketlog.console.transactions_page import transactions
from bucketlog.console.verify_page import start_check, stop_check, verify
from bucketlog.log_format.encryption_errors import KeyRefusedError, SealedRecordsError
from bucketlog.log_format.errors import BucketlogError, ConfigurationError, LogError
from bucketlog.log_format.printable import printable

THEMES = ("auto", "light", "dark")
THEME_COOKIE = "bucketlog-theme"
COOKIE_AGE_S = 365 * 86_400
RETRY_AFTER_S = 2
LOOK_AGAIN_S = 1


STATUSES: tuple[tuple[type[BucketlogError], HTTPStatus], ...] = (
    (UnknownNameError, HTTPStatus.NOT_FOUND),
    (ConfigurationError, HTTPStatus.BAD_REQUEST),
    (OtherOriginError, HTTPStatus.FORBIDDEN),
    (CheckRefusedError, HTTPStatus.CONFLICT),
    (ReplayRefusedError, HTTPStatus.CONFLICT),
    (QueryRefusedError, HTTPStatus.CONFLICT),
    (PlanGoneError, HTTPStatus.CONFLICT),
    (KeyRefusedError, HTTPStatus.FORBIDDEN),
    (SealedRecordsError, HTTPStatus.FORBIDDEN),
    (PagesBusyError, HTTPStatus.SERVICE_UNAVAILABLE),
    (PageTimeoutError, HTTPStatus.GATEWAY_TIMEOUT),
    (BucketlogError, HTTPStatus.BAD_GATEWAY),
)
"""The status of an error is the first that fits."""
SECURITY_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}

T = TypeVar("T")
Page: TypeAlias = Callable[[Console, PageQuery], Values]
Action: TypeAlias = Callable[[Console], None]
FormAction: TypeAlias = Callable[[Console, PageQuery], None]
NAVIGATION = (
    ("overview", "", "Overview", "o"),
    ("topics", "topics", "Topics", "t"),
    ("messages", "messages", "Messages", "m"),
    ("replay", "replay", "Replay", "p"),
    ("query", "query", "Query", "q"),
    ("groups", "groups", "Groups", "g"),
    ("transactions", "transactions", "Transactions", "x"),
    ("bucket", "bucket", "Bucket", "b"),
    ("cost", "cost", "Cost", "c"),
    ("brokers", "brokers", "Brokers", "r"),
    ("access", "access", "Access", "a"),
)
"""Name, path and label of a page, and the key that opens it after `g`."""
PAGES: Mapping[str, tuple[str, Page]] = {
    "overview": ("", pages.overview),
    "topics": ("topics", pages.topics),
    "topic": ("topic", pages.topic),
    "messages": ("messages", message_pages.messages),
    "record": ("record", message_pages.record),
    "replay": ("replay", replay),
    "query": ("query", query_form),
    "groups": ("groups", group_pages.groups),
    "group": ("group", group_pages.group),
    "transactions": ("transactions", transactions),
    "bucket": ("bucket", bucket),
    "verify": ("verify", verify),
    "cost": ("cost", cost),
    "brokers": ("brokers", brokers),
    "access": ("access", access),
    "change": ("change", change_form),
}
POSTED_PAGES = frozenset({"query", "change"})
"""Pages that are forms alone. A read-only application leaves them out."""
ACTIONS: Mapping[str, tuple[str, Action]] = {
    "verify/start": ("verify", start_check),
    "verify/stop": ("verify", stop_check),
    "replay/stop": ("replay", stop_replay),
}
"""The page to which an action belongs, and the function that acts, by path."""
FORM_ACTIONS: Mapping[str, tuple[str, FormAction]] = {"replay/start": ("replay", start_replay)}
"""As `ACTIONS`, with a function that gets the values of a form."""
FORMS: Mapping[str, tuple[str, str, Page]] = {
    "change": ("change", "change.html", change_plan),
    "change/apply": ("change", "changed.html", change_result),
    "query": ("query", "query.html", query_result),
}
"""The page to which a form belongs, and the template and the function of the response, by path."""


class SecurityHeaders:
    """Adds `SECURITY_HEADERS` to every response."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._headers = [(name.encode(), text.encode()) for name, text in SECURITY_HEADERS.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *self._headers]
            await send(message)

        await self._app(scope, receive, send_with_headers)


class Endpoints:
    """Requests for pages of one `Console`."""

    def __init__(self, console: Console, left_out: Collection[str] = ()) -> None:
        """`left_out` are names of pages that are not served."""
        self._console = console
        self._navigation = [entry for entry in NAVIGATION if entry[0] not in left_out]
        self._environment = environment()
        self._threads = PageThreads(console.settings.pages_in_flight_max)
        self._exports = ExportSlots(console.settings.exports_in_flight_max)

    def page(self, name: str, build: Page) -> Callable[[Request], Awaitable[Response]]:
        async def respond(request: Request) -> Response:
            try:
                work = partial(self._render, request, name, build, self._query(request))
                return await self._worked(work)
            except BucketlogError as error:
                return self._error(request, name, error)

        return respond

    async def export(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with a file, or with a page about the error."""
        request, settings = Request(scope, receive), self._console.settings
        try:
            async with self._exports.one(wait_s=settings.page_wait_ms_max / 1000):
                query = self._query(request)
                made = await self._worked(lambda: export(self._console.for_page(), query))
                await send_export(made, send, send_s=settings.export_send_ms_max / 1000)
        except BucketlogError as error:
            await self._error(request, "messages", error)(scope, receive, send)

    async def metrics(self, _: Request) -> Response:
        """Answer a scrape of Prometheus."""
        try:
            text = await self._worked(lambda: metrics_text(self._console.for_page()))
        except BucketlogError as error:
            return PlainTextResponse(f"# {printable(str(error))}\n", _status(error))
        return Response(text, media_type=CONTENT_TYPE)

    def _query(self, request: Request) -> PageQuery:
        """The query of the address. Raises `ConfigurationError` if the query is too long."""
        chars_max = self._console.settings.query_chars_max
        if len(request.url.query) > chars_max:
            raise ConfigurationError(
                f"the query has more than {chars_max} characters", remedy="shorten the filter"
            )
        return PageQuery(dict(request.query_params))

    def action(self, name: str, act: Action) -> Callable[[Request], Awaitable[Response]]:
        """Return an endpoint that calls `act`, then redirects to the page `name`. The endpoint does
        not read the body of the request."""

        def work(request: Request) -> Response:
            check_origin(request)
            act(self._console)
            return RedirectResponse(f"{_root(request)}/{PAGES[name][0]}", HTTPStatus.SEE_OTHER)

        async def respond(request: Request) -> Response:
            try:
                return await self._worked(partial(work, request))
            except BucketlogError as error:
                return self._error(request, name, error)

        return respond

    def form_action(self, name: str, act: FormAction) -> Callable[[Request], Awaitable[Response]]:
        """Return an endpoint that calls `act` with a form, then redirects to the page `name`."""
        bytes_max = self._console.settings.change_bytes_max

        async def respond(request: Request) -> Response:
            try:
                check_origin(request)
                query = await form_values(request, bytes_max)
                await self._worked(lambda: act(self._console.for_page(), query))
            except BucketlogError as error:
                return self._error(request, name, error)
            return RedirectResponse(f"{_root(request)}/{PAGES[name][0]}", HTTPStatus.SEE_OTHER)

        return respond

    def form(
        self, name: str, template: str, build: Page
    ) -> Callable[[Request], Awaitable[Response]]:
        """Return an endpoint that answers a form of the page `name`."""
        bytes_max = self._console.settings.change_bytes_max

        async def respond(request: Request) -> Response:
            try:
                check_origin(request)
                query = await form_values(request, bytes_max)
                return await self._worked(
                    partial(self._render_form, request, name, template, build, query)
                )
            except BucketlogError as error:
                return self._error(request, name, error)

        return respond

    def _render_form(
        self, request: Request, name: str, template: str, build: Page, query: PageQuery
    ) -> Response:
        values = build(self._console.for_page(), query)
        error = values.get("error")
        text = self._rendered(request, name, template, {**values, "query": query})
        return HTMLResponse(text, HTTPStatus.OK if error is None else _status(error))

    async def _worked(self, work: Callable[[], T]) -> T:
        """Raises `PagesBusyError`, `PageTimeoutError`, and the errors of `work`."""
        settings = self._console.settings
        try:
            return await self._threads.run(
                work,
                wait_s=settings.page_wait_ms_max / 1000,
                page_s=settings.page_ms_max / 1000,
            )
        except TimeoutError:
            raise page_timeout(settings.page_ms_max, "page_ms_max") from None

    async def theme(self, request: Request) -> Response:
        """Keep the chosen colours in a cookie, and go back to the page `at`."""
        chosen = request.query_params.get("to", "")
        at = request.query_params.get("at", "")
        known = {path for path, _ in PAGES.values()}
        target = at if at.partition("?")[0] in known else ""
        response = RedirectResponse(f"{_root(request)}/{target}", HTTPStatus.SEE_OTHER)
        if chosen in THEMES:
            response.set_cookie(
                THEME_COOKIE,
                chosen,
                max_age=COOKIE_AGE_S,
                path=f"{_root(request)}/",
                httponly=True,
                samesite="strict",
            )
        return response

    def _render(self, request: Request, name: str, build: Page, query: PageQuery) -> Response:
        values = build(self._console.for_page(), query)
        text = self._rendered(request, name, f"{name}.html", {**values, "query": query})
        return HTMLResponse(text)

    def _rendered(self, request: Request, name: str, template: str, values: Values) -> str:
        theme = request.cookies.get(THEME_COOKIE, "")
        shared: dict[str, Any] = {
            "root": _root(request),
            "page_name": name,
            "navigation": self._navigation,
            "theme": theme if theme in THEMES else THEMES[0],
            "themes": THEMES,
            "place": self._console.place,
            "now_ms": self._console.now_ms(),
            "at": PAGES[name][0] + (f"?{request.url.query}" if request.url.query else ""),
            "limits": self._console.settings,
            "may_change": self._console.may_change,
            "may_check": self._console.checks is not None,
        }
        return self._environment.get_template(template).render({**shared, **values})

    def _error(self, request: Request, name: str, error: BucketlogError) -> Response:
        if isinstance(error, StillReadingError) and request.method == "GET":
            text = self._rendered(request, name, "reading.html", {"view": None, "error": error})
            return HTMLResponse(text, HTTPStatus.ACCEPTED, {"refresh": str(LOOK_AGAIN_S)})
        status = _status(error)
        values: Values = {"error": error, "status": status, "view": None}
        if request.method != "GET":
            values["at"] = ""
        response = HTMLResponse(self._rendered(request, name, "error.html", values), status)
        if status is HTTPStatus.SERVICE_UNAVAILABLE:
            response.headers["retry-after"] = str(RETRY_AFTER_S)
        return response


def _status(error: BucketlogError) -> HTTPStatus:
    if isinstance(error, LogError) and not error.retriable:
        return HTTPStatus.BAD_REQUEST  # the brokers refused the values
    return next(found for kind, found in STATUSES if isinstance(error, kind))


class ExportApp:
    """`Endpoints.export` as an ASGI application. Starlette takes a bound method for a function of a
    request."""

    def __init__(self, endpoints: Endpoints) -> None:
        self._endpoints = endpoints

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._endpoints.export(scope, receive, send)


def _root(request: Request) -> str:
    return str(request.scope.get("root_path", ""))


def application(console: Console, *, hosts: list[str], is_read_only: bool = False) -> Starlette:
    """`hosts` are the names by which browsers may call: other sites' names that resolve to this
    machine are refused (DNS rebinding)."""
    left_out = POSTED_PAGES if is_read_only else frozenset[str]()
    endpoints = Endpoints(console, left_out)
    return Starlette(
        routes=[
            *(
                Route(f"/{path}", endpoints.page(name, build), methods=["GET"], name=name)
                for name, (path, build) in PAGES.items()
                if name not in left_out
            ),
            *([] if is_read_only else _posted(endpoints)),
            Route("/metrics", endpoints.metrics, methods=["GET"]),
            Route("/messages/export", ExportApp(endpoints), methods=["GET"]),
            Route("/theme", endpoints.theme, methods=["GET"]),
            Mount("/static", StaticFiles(directory=FOLDER / "static"), name="static"),
        ],
        middleware=[
            Middleware(SecurityHeaders),
            Middleware(TrustedHostMiddleware, allowed_hosts=hosts, www_redirect=False),
        ],
    )


def _posted(endpoints: Endpoints) -> list[Route]:
    return [
        *(
            Route(f"/{path}", endpoints.action(name, act), methods=["POST"])
            for path, (name, act) in ACTIONS.items()
        ),
        *(
            Route(f"/{path}", endpoints.form_action(name, act), methods=["POST"])
            for path, (name, act) in FORM_ACTIONS.items()
        ),
        *(
            Route(f"/{path}", endpoints.form(name, template, build), methods=["POST"])
            for path, (name, template, build) in FORMS.items()
        ),
    ]
