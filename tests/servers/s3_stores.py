"""Real S3 servers in tests: started when first asked for, shared by a run, ended with it.

Tests that name one, by a fixture or in their parameters, run last: `make test` installs the servers
in the background on a fresh machine, and waits for them where they are first needed.
"""

import importlib.metadata
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest

from bucketlog.log_format.errors import ConfigurationError
from localstack.servers import ACCESS_KEY, SECRET_KEY, RunningStore, StoreName, running
from tests.servers.components import Components


@pytest.fixture(scope="session")
def s3_store(
    tmp_path_factory: pytest.TempPathFactory, components: Components
) -> Iterator[Callable[[StoreName], RunningStore]]:
    """A running server by its name."""
    known: dict[StoreName, RunningStore] = {}
    with ExitStack() as closing:

        def store(name: StoreName) -> RunningStore:
            if name not in known:
                folder = tmp_path_factory.mktemp(name)
                try:
                    known[name] = closing.enter_context(running(name, folder))
                except ConfigurationError as error:
                    components.missing(name, error.remedy)
                components.took_part(name.value, known[name].version)
            return known[name]

        yield store


@pytest.fixture(scope="session")
def minio(s3_store: Callable[[StoreName], RunningStore]) -> RunningStore:
    return s3_store(StoreName.MINIO)


@pytest.fixture(scope="session")
def localstack(s3_store: Callable[[StoreName], RunningStore]) -> RunningStore:
    return s3_store(StoreName.LOCALSTACK)


@pytest.fixture(scope="session")
def credentials() -> Iterator[None]:
    """Those of every server here, so that no test looks for an instance role."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
        patch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        yield


@pytest.fixture(scope="session")
def moto(credentials: None, components: Components) -> Iterator[str]:
    """The endpoint of moto's server."""
    with moto_server() as endpoint:
        components.took_part("moto server", importlib.metadata.version("moto"))
        yield endpoint


@contextmanager
def moto_server(*, checks_credentials: bool = False) -> Iterator[str]:
    """moto's S3 as a process of its own; gives its endpoint."""
    environment = dict(os.environ)
    if checks_credentials:
        environment["INITIAL_NO_AUTH_ACTION_COUNT"] = "0"
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env=environment
    ) as server:
        try:
            assert server.stderr is not None
            for line in server.stderr:
                if address := re.search(r"http://127\.0\.0\.1:\d+", line):
                    break
            else:
                raise RuntimeError("moto's server ended before it listened")
            # its request log is not read: let it go nowhere rather than fill the pipe
            drain = subprocess.Popen(["cat"], stdin=server.stderr, stdout=subprocess.DEVNULL)
            try:
                yield address.group()
            finally:
                server.terminate()
                drain.wait()
        finally:
            server.kill()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=_names_a_store)


def _names_a_store(item: pytest.Item) -> bool:
    fixtures: list[str] = getattr(item, "fixturenames", [])
    return not {*fixtures, *re.split(r"[\[\]-]", item.name)}.isdisjoint(StoreName)
