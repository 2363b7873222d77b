"""franz-go, a client in Go, as the program that `scripts/install.sh go-client` builds from
`tests/servers/go_client`.

Invariant: every run ends with the client's first error, or within `timeout_s`.
"""

import json
import os
import re
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from bucketlog.log_format.errors import BucketlogError, ConfigurationError
from tests.rigs.client_tls import ClientTls
from tests.rigs.patience import PATIENCE_S
from tests.servers.components import Components

INSTALL = "scripts/install.sh go-client"
ROOT = Path(__file__).parents[2]
SOURCE = Path(__file__).with_name("go_client")


class GoClientError(BucketlogError):
    """The client reported an error. The message has the client's words."""

    code = "GO_CLIENT"


@cache
def program() -> Path:
    """Raises `ConfigurationError` where the program is not installed."""
    done = subprocess.run(
        [ROOT / "scripts" / "install.sh", "--where", "go-client"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ConfigurationError("the client in Go is not installed", remedy=INSTALL)
    return Path(done.stdout.strip())


def version() -> str:
    needs = re.search(
        r"^require \S+/franz-go (\S+)$", (SOURCE / "go.mod").read_text(), re.MULTILINE
    )
    assert needs is not None
    return needs[1]


def require(components: Components) -> None:
    """For tests: ends them where the program is not installed."""
    try:
        program()
    except ConfigurationError:
        components.missing("franz-go", INSTALL)
    components.took_part("franz-go", version())


def run(
    bootstrap: str,
    tls: ClientTls | None,
    *words: str,
    stdin: bytes = b"",
    timeout_s: float = PATIENCE_S,
) -> bytes:
    """The standard output. Raises `GoClientError`, `ConfigurationError`."""
    done = subprocess.run(
        [program(), *words],
        input=stdin,
        capture_output=True,
        env=environment(bootstrap, tls, timeout_s),
        check=False,
    )
    if done.returncode:
        raise GoClientError(done.stderr.decode(errors="replace").strip())
    return done.stdout


def start(bootstrap: str, tls: ClientTls | None, *words: str) -> "subprocess.Popen[bytes]":
    """The caller ends the standard input, and waits. Raises `ConfigurationError`."""
    return subprocess.Popen(
        [program(), *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(bootstrap, tls, PATIENCE_S),
    )


def environment(bootstrap: str, tls: ClientTls | None, timeout_s: float) -> Mapping[str, str]:
    described: dict[str, Any] = {"bootstrap": bootstrap, "timeout_s": timeout_s}
    return os.environ | {"GO_CLIENT": json.dumps(described | (tls.go() if tls else {}))}
