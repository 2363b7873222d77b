"""The pages `/healthz` (whether the process lives), `/readyz` (whether the broker is ready for
clients, or why not) and `/metrics`. The page `/` names the broker and links to them. A broker can
also serve the console, below `/console/`."""

import asyncio
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
)
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.stateless_broker.health import Readiness
from bucketlog.stateless_broker.process.console_process import ROOT
from bucketlog.stateless_broker.process.http_connections import HttpConnections, HttpLimits
from bucketlog.stateless_broker.process.index_page import HEADERS, BrokerName, Page, index_page
from bucketlog.stateless_broker.process.metrics import RenderedFigures
from bucketlog.version import package_version

PAGES = (
    Page("/readyz", "whether the broker is ready for clients, or why not"),
    Page("/healthz", "whether the process lives"),
    Page("/metrics", "metrics for Prometheus"),
)
"""The pages beside `/`, which links to them in this order."""
CONSOLE_PAGE = Page(f"{ROOT}/", "the console: topics, records, groups and objects of the log")


def application(
    health: Readiness,
    figures: RenderedFigures,
    brokers: Callable[[], Sequence[BrokerName]],
    console: ASGIApp | None = None,
) -> Starlette:
    """Return the application. `brokers` returns the names of the process in its clusters; none
    before the process has joined one. `console` answers requests below `/console/`."""
    version = package_version()

    async def index(_: Request) -> Response:
        page = index_page(
            brokers(),
            version=version,
            is_ready=health.ready,
            reasons=health.report(),
            pages=PAGES if console is None else (*PAGES, CONSOLE_PAGE),
        )
        return HTMLResponse(page, headers=HEADERS)

    async def healthz(_: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def readyz(_: Request) -> Response:
        report = health.report()
        return JSONResponse(
            {"ready": health.ready, "reasons": report}, status_code=200 if health.ready else 503
        )

    async def metrics(_: Request) -> Response:
        return Response(figures.render(), media_type=CONTENT_TYPE_LATEST)

    answers = (readyz, healthz, metrics)
    routes = [Route(page.path, answer) for page, answer in zip(PAGES, answers, strict=True)]
    return Starlette(routes=[Route("/", index), *routes, *_console_routes(console)])


def _console_routes(console: ASGIApp | None) -> list[BaseRoute]:
    async def to_overview(_: Request) -> Response:
        return RedirectResponse(CONSOLE_PAGE.path)

    return [] if console is None else [Route(ROOT, to_overview), Mount(ROOT, app=console)]


class _Server(uvicorn.Server):
    """uvicorn inside a broker, which handles signals itself."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class HttpEndpoint:
    """`closed` is called with the name of the setting that caused a connection to be closed."""

    def __init__(
        self,
        app: Starlette,
        *,
        host: str,
        port: int,
        limits: HttpLimits,
        closed: Callable[[str], None],
    ) -> None:
        try:
            self._socket = socket.create_server((host, port))
        except OSError as error:
            raise ConfigurationError(
                f"cannot listen on {host}:{port} for HTTP: {error.strerror}",
                remedy="choose another port (BUCKETLOG_HTTP_PORT), 0 for any free one",
            ) from error
        self.port = int(self._socket.getsockname()[1])
        config = uvicorn.Config(
            app,
            http=HttpConnections(limits, closed).protocol,
            ws="none",
            log_config=None,
            access_log=False,
            lifespan="off",
            timeout_keep_alive=-(-limits.idle_ms // 1000) + 1,  # after the timer of HttpConnections
            timeout_graceful_shutdown=1,
            h11_max_incomplete_event_size=limits.header_bytes,
        )
        self._server = _Server(config)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._server.serve(sockets=[self._socket]))

    async def stop(self) -> None:
        self._server.should_exit = True
        if self._task is not None:
            await self._task
        self._socket.close()
