"""Serves a read-only Iceberg REST catalog on a socket, until a signal."""

from collections.abc import Callable, Sequence
from contextlib import closing

import uvicorn
from pyiceberg.catalog import Catalog

from bucketlog.ingesting.catalog_application import catalog_application
from bucketlog.log_format.local_server import QUIET_SERVER, host_names, in_address, listening_socket

CONNECTIONS_MAX = 100
GRACE_S = 2


def serve_catalog(
    catalog: Catalog,
    *,
    host: str,
    port: int,
    allowed_hosts: Sequence[str],
    on_ready: Callable[[str], None],
) -> None:
    """Serve `catalog` until SIGINT or SIGTERM. Clients may use the local names, `host`, and the
    names in `allowed_hosts`. `on_ready` gets the address. Raises `ConfigurationError` if the
    address cannot be used."""
    names = host_names(host, allowed_hosts)
    with closing(listening_socket(host, port)) as listening:
        on_ready(f"http://{in_address(host)}:{listening.getsockname()[1]}")
        config = uvicorn.Config(
            catalog_application(catalog, hosts=names),
            **QUIET_SERVER,
            limit_concurrency=CONNECTIONS_MAX,
            timeout_graceful_shutdown=GRACE_S,
        )
        try:
            uvicorn.Server(config).run(sockets=[listening])
        except KeyboardInterrupt:
            return  # uvicorn raises the signal again when the server has ended
