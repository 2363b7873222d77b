"""A read-only Iceberg REST catalog, which serves the tables of another catalog to every engine.

The paths, responses and errors are those of Iceberg's REST specification (apache/iceberg,
open-api/rest-catalog-open-api.yaml, 1.10). Invariants: no request changes the catalog. Responses do
not contain properties of the other catalog, because these may be secrets. Readers therefore need
their own access to the files. The bodies of requests are not read.
"""

import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from threading import Lock
from typing import Any, TypeVar

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError
from pyiceberg.table import Table
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from bucketlog.log_format.errors import BucketlogError

logger = logging.getLogger(__name__)

SEPARATOR = "\x1f"
"""The character between the levels of a namespace in a URL."""
PAGE_ROWS_MAX = 1_000
NAMES_MAX = 100_000
"""Maximum number of names in a listing. Further names are left out."""
_PREFIX = "/v1"
_NAMESPACE = f"{_PREFIX}/namespaces/{{namespace}}"
_TABLE = f"{_NAMESPACE}/tables/{{table}}"
ENDPOINTS = (
    "GET /v1/{prefix}/namespaces",
    "GET /v1/{prefix}/namespaces/{namespace}",
    "HEAD /v1/{prefix}/namespaces/{namespace}",
    "GET /v1/{prefix}/namespaces/{namespace}/tables",
    "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    "HEAD /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/metrics",
)
Answer = Callable[[Request], Awaitable[Response]]
Name = tuple[str, ...]
T = TypeVar("T")


class CatalogDownError(BucketlogError):
    """The catalog behind the REST catalog does not answer."""

    code = "CATALOG_DOWN"
    retriable = True


class CatalogPages:
    """Answers requests about `catalog`. Only one thread at a time calls the catalog's methods."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._lock = Lock()

    async def config(self, request: Request) -> Response:
        return JSONResponse({"defaults": {}, "overrides": {}, "endpoints": ENDPOINTS})

    async def namespaces(self, request: Request) -> Response:
        parent = _levels(request.query_params.get("parent", ""))
        found = await self._locked(lambda: self._catalog.list_namespaces(parent))
        return _paged(request, "namespaces", [list(each) for each in sorted(found)])

    async def namespace(self, request: Request) -> Response:
        name = _levels(request.path_params["namespace"])
        properties = await self._locked(lambda: self._catalog.load_namespace_properties(name))
        return JSONResponse({"namespace": list(name), "properties": dict(properties)})

    async def tables(self, request: Request) -> Response:
        name = _levels(request.path_params["namespace"])
        found = await self._locked(lambda: self._listed(name))
        rows = [{"namespace": list(each[:-1]), "name": each[-1]} for each in sorted(found)]
        return _paged(request, "identifiers", rows)

    def _listed(self, name: Name) -> Sequence[Name]:
        self._catalog.load_namespace_properties(name)  # raises if there is no such namespace
        return self._catalog.list_tables(name)

    async def table(self, request: Request) -> Response:
        """Return the metadata of a table. With `snapshots=refs`, they have only the snapshots of
        branches and tags."""
        table = await self._table(request)
        text = await run_in_threadpool(table.metadata.model_dump_json)
        metadata = json.loads(text)
        if request.query_params.get("snapshots") == "refs":
            named = {each["snapshot-id"] for each in metadata.get("refs", {}).values()}
            metadata["snapshots"] = [
                each for each in metadata.get("snapshots", []) if each["snapshot-id"] in named
            ]
        return JSONResponse(
            {"metadata-location": table.metadata_location, "metadata": metadata, "config": {}}
        )

    async def table_exists(self, request: Request) -> Response:
        await self._table(request)
        return Response(status_code=204)

    async def namespace_exists(self, request: Request) -> Response:
        await self.namespace(request)
        return Response(status_code=204)

    async def metrics(self, request: Request) -> Response:
        """Accept the report of an engine about its scan, and discard the report."""
        return Response(status_code=204)

    async def _table(self, request: Request) -> Table:
        name = (*_levels(request.path_params["namespace"]), request.path_params["table"])
        return await self._locked(lambda: self._catalog.load_table(name))

    async def _locked(self, ask: Callable[[], T]) -> T:
        def locked() -> T:
            try:
                with self._lock:
                    return ask()
            except (NoSuchNamespaceError, NoSuchTableError):
                raise
            except Exception as error:
                # the text of the error may contain secrets
                raise CatalogDownError(
                    f"the catalog does not answer: {type(error).__name__}",
                    remedy="try again, or check the catalog that this server reads",
                ) from error

        return await run_in_threadpool(locked)


def catalog_application(catalog: Catalog, *, hosts: Sequence[str]) -> Starlette:
    """Return an application that serves `catalog` to clients that use the names in `hosts`."""
    pages = CatalogPages(catalog)
    return Starlette(
        routes=[
            Route(f"{_PREFIX}/config", pages.config, methods=["GET"]),
            Route(f"{_PREFIX}/namespaces", pages.namespaces, methods=["GET"]),
            *_read(_NAMESPACE, pages.namespace, pages.namespace_exists),
            Route(f"{_NAMESPACE}/tables", pages.tables, methods=["GET"]),
            *_read(_TABLE, pages.table, pages.table_exists),
            Route(f"{_TABLE}/metrics", pages.metrics, methods=["POST"]),
        ],
        middleware=[
            Middleware(TrustedHostMiddleware, allowed_hosts=list(hosts), www_redirect=False)
        ],
        exception_handlers={
            NoSuchNamespaceError: _missing("NoSuchNamespaceException"),
            NoSuchTableError: _missing("NoSuchTableException"),
            HTTPException: _refused,
            CatalogDownError: _failed,
        },
    )


def _read(path: str, get: Answer, head: Answer) -> list[Route]:
    return [Route(path, head, methods=["HEAD"]), Route(path, get, methods=["GET"])]


def _levels(text: str) -> Name:
    levels = tuple(text.split(SEPARATOR)) if text else ()
    if not all(each.strip() for each in levels):
        raise HTTPException(400, "a level of the namespace is empty")
    return levels


def _paged(request: Request, name: str, rows: Sequence[Any]) -> Response:
    """Return the rows of a page. The token of the next page is the number of its first row. Without
    `pageToken` in the request, all rows are one page, as the specification says."""
    rows = rows[:NAMES_MAX]
    token = request.query_params.get("pageToken")
    if token is None:
        return JSONResponse({name: rows, "next-page-token": None})
    size = _number(request.query_params.get("pageSize"), PAGE_ROWS_MAX)
    first = _number(token, 0)
    end = first + max(1, min(size, PAGE_ROWS_MAX))
    return JSONResponse(
        {name: rows[first:end], "next-page-token": str(end) if end < len(rows) else None}
    )


def _number(text: str | None, default: int) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else default


def _error(code: int, kind: str, message: str) -> Response:
    body = {"error": {"message": message, "type": kind, "code": code}}
    return JSONResponse(body, status_code=code)


def _missing(kind: str) -> Callable[[Request, Exception], Response]:
    return lambda request, error: _error(404, kind, str(error))


def _refused(request: Request, error: Exception) -> Response:
    """Refuse a path that does not exist, or a method that would change the catalog."""
    assert isinstance(error, HTTPException)
    if request.method not in ("GET", "HEAD"):
        text = "this catalog is read-only (change the catalog that this server reads)"
        return _error(406, "UnsupportedOperationException", text)
    return _error(error.status_code, "BadRequestException", error.detail)


def _failed(request: Request, error: Exception) -> Response:
    logger.warning("%s", error, exc_info=error)
    return _error(503, "ServiceUnavailableException", str(error))
