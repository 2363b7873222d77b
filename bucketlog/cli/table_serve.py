"""`bucketlog table serve`: a catalog as a read-only Iceberg REST catalog."""

from typing import Annotated

import typer

from bucketlog.cli.table_flags import Catalog, pairs
from bucketlog.log_format.extras import check_installed
from bucketlog.log_format.local_server import is_local
from bucketlog.terminal import note, say

DEFAULT_PORT = 8181
"""The usual port of Iceberg REST catalogs."""

CatalogName = Annotated[
    str, typer.Argument(metavar="CATALOG", help="Name of the catalog for PyIceberg.")
]
Host = Annotated[
    str, typer.Option(help="Address to listen on. There is no login, so prefer a local address.")
]
Port = Annotated[int, typer.Option(min=0, max=65_535, help="Port to listen on; 0: any free port.")]
AllowedHosts = Annotated[
    list[str] | None,
    typer.Option(
        "--allowed-host",
        metavar="NAME",
        help="Host name that clients may use, such as *.example.com; '*': any. Repeatable.",
    ),
]


def serve(
    catalog: CatalogName,
    catalog_property: Catalog = None,
    host: Host = "127.0.0.1",
    port: Port = DEFAULT_PORT,
    allowed_host: AllowedHosts = None,
) -> None:
    """Serve a catalog to other engines, as a read-only Iceberg REST catalog.

    Readers need their own access to the files of the tables."""
    check_installed("iceberg")
    check_installed("console", extra="console,iceberg")
    from bucketlog.ingesting.catalog_server import serve_catalog
    from bucketlog.log_reader.tables.catalog import open_catalog
    from bucketlog.log_reader.tables.catalog_failure import catalog_failures

    if not is_local(host):
        note(f"there is no login: everyone who reaches {host}:{port} can list these tables")
    with catalog_failures(catalog):
        opened = open_catalog(catalog, pairs("--catalog-property", catalog_property or []))
    serve_catalog(
        opened,
        host=host,
        port=port,
        allowed_hosts=allowed_host or (),
        on_ready=lambda address: say(f"catalog at {address} (Ctrl-C stops it)"),
    )
