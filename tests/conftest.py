"""What several kinds of test share: the components plugin and one real broker for a whole run."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
from hypothesis import settings

from bucketlog.embedded.cluster import EmbeddedCluster

ROOT = Path(__file__).parent
# the same examples in every run, and no wall clock that judges one
settings.register_profile("deterministic", derandomize=True, deadline=None)
settings.load_profile("deterministic")
os.environ["XDG_CONFIG_HOME"] = os.devnull  # no profile of whoever runs the tests counts
os.environ.setdefault("BUCKETLOG_CONSOLE_REFRESH_WAIT_MS", "60000")  # pages show the newest state
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # of a job in the background: the programs that tests start and stop would ignore it, too
    signal.signal(signal.SIGINT, signal.default_int_handler)

if TYPE_CHECKING:  # pytest must be the first to import its plugin
    from tests.servers.components import Components

pytest_plugins = [
    "pytester",
    "tests.rigs.suite_scheduling",
    "tests.rigs.traced_memory",
    "tests.servers.components",
    "tests.servers.s3_stores",
    "tests.servers.sequencing",
    "tests.servers.shared_registry",
]
collect_ignore = ["sample_project"]
LONGEST_FIRST = (
    "spark",
    "compat",
    "integration",
    "infra",
    "contract",
    "property",
    "unit",
    "architecture",
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Folders whose tests take long go first, so that no worker is left with them at the end."""
    rank = {ROOT / folder: number for number, folder in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: min((rank.get(at, 99) for at in item.path.parents), default=99))


@pytest.fixture
def no_umask() -> Iterator[None]:
    """The umask of this process, and of processes that it starts, removes no bits."""
    umask = os.umask(0)
    try:
        yield
    finally:
        os.umask(umask)


def version_of_process(pid: int) -> str:
    """What the program that runs as `pid` says of its version."""
    program = psutil.Process(pid).exe()
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture(scope="session")
def broker(
    tmp_path_factory: pytest.TempPathFactory, components: "Components"
) -> Iterator[EmbeddedCluster]:
    """A broker process, a Valkey process and a `file://` bucket, shared: use fresh topic names.

    Tests write records of 2023: retention would delete them. Transactions are on, so that all APIs
    are served.
    """
    settings = {"log_retention_check_interval_ms": "0", "transactions": "true"}
    with EmbeddedCluster(tmp_path_factory.mktemp("cluster"), settings=settings) as cluster:
        components.took_part("Valkey", version_of_process(cluster.pids["valkey"]))
        components.took_part("bucketlog broker", f"file:// bucket, Python {sys.version.split()[0]}")
        yield cluster
