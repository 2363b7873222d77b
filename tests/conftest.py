"""What several kinds of test share: the components plugin and one real broker for a whole run."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import psutil
import pytest

from bucketlog.embedded import EmbeddedCluster

os.environ["XDG_CONFIG_HOME"] = os.devnull  # no profile of whoever runs the tests counts
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # of a job in the background: the programs that tests start and stop would ignore it, too
    signal.signal(signal.SIGINT, signal.default_int_handler)

if TYPE_CHECKING:  # pytest must be the first to import its plugin
    from tests.components import Components

pytest_plugins = ["pytester", "tests.components", "tests.s3_stores", "tests.sequencing"]
collect_ignore = ["sample_project"]


def version_of_process(pid: int) -> str:
    """What the program that runs as `pid` says of its version."""
    program = psutil.Process(pid).exe()
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture(scope="session")
def broker(
    tmp_path_factory: pytest.TempPathFactory, components: "Components"
) -> Iterator[EmbeddedCluster]:
    """A broker process, a Valkey process and a `file://` bucket, shared: use fresh topic names."""
    with EmbeddedCluster(tmp_path_factory.mktemp("cluster")) as cluster:
        components.took_part("Valkey", version_of_process(cluster.pids["valkey"]))
        components.took_part("bucketlog broker", f"file:// bucket, Python {sys.version.split()[0]}")
        yield cluster
