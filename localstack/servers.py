"""Real S3 servers as processes on 127.0.0.1, for tests, demos and benchmarks.

Invariants: a server is ready when the `with` block is entered, and ended by its pid when it is
left; on Linux also when this process is killed. All it writes is in the folder it was given. A
server serves whoever has its credentials, which are public: nothing but test data belongs there.
"""

import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import boto3

from bucketlog.log_format.errors import BucketlogError, ConfigurationError
from bucketlog.log_format.private_files import make_file, make_folder

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

ACCESS_KEY = "bucketlog"
SECRET_KEY = "bucketlog-secret"
REGION = "us-east-1"
KMS_KEY = "bucketlog-key"
"""The one key of MinIO's built-in KMS, for buckets with `aws:kms` encryption."""

READY_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 10.0
LOG_TAIL_LINES = 20
_PORT_TRIES = 3
_INSTALL = Path(__file__).parents[1] / "scripts" / "install.sh"
_KMS_SECRET = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="


class StoreName(StrEnum):
    MINIO = "minio"
    LOCALSTACK = "localstack"


class StoreStartError(BucketlogError):
    """The server ended by itself, or did not answer in time."""

    code = "STORE_START"


@dataclass(frozen=True, slots=True)
class RunningStore:
    name: StoreName
    version: str
    endpoint_url: str
    pid: int

    def environment(self) -> dict[str, str]:
        """What every AWS SDK needs to find the server."""
        return {
            "AWS_ENDPOINT_URL_S3": self.endpoint_url,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_REGION": REGION,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def iceberg_properties(self) -> dict[str, str]:
        """Return PyIceberg's properties for files on the server."""
        return {
            "s3.endpoint": self.endpoint_url,
            "s3.access-key-id": ACCESS_KEY,
            "s3.secret-access-key": SECRET_KEY,
            "s3.region": REGION,
        }

    @contextmanager
    def client(self) -> Iterator["S3Client"]:
        client = boto3.session.Session().client(
            "s3",
            endpoint_url=self.endpoint_url,
            aws_access_key_id=ACCESS_KEY,
            aws_secret_access_key=SECRET_KEY,
            region_name=REGION,
        )
        try:
            yield client
        finally:
            client.close()

    def make_bucket(self, bucket: str) -> None:
        """Make it, unless it is there."""
        with self.client() as client:
            names = [known.get("Name") for known in client.list_buckets()["Buckets"]]
            if bucket not in names:
                client.create_bucket(Bucket=bucket)


def program(name: StoreName) -> str:
    """The server's program. Waits for an installation that is under way; raises
    `ConfigurationError` where there is none."""
    asked = subprocess.run(
        [str(_INSTALL), "--where", name], stdout=subprocess.PIPE, text=True, check=False
    )
    if asked.returncode != 0:
        raise ConfigurationError(
            f"{name} is not installed", remedy=f"run scripts/install.sh {name}"
        )
    return asked.stdout.strip()


@contextmanager
def running(name: StoreName, folder: Path, *, port: int = 0) -> Iterator[RunningStore]:
    """A server on `port` (0: any free one) with its data and `server.log` below `folder`.

    Raises `ConfigurationError` (not installed), `StoreStartError`.
    """
    path = program(name)
    folder = folder.absolute()
    make_folder(folder)
    process, store = _start(name, path, folder, port)
    try:
        yield store
    finally:
        _stop(process)


def _start(
    name: StoreName, path: str, folder: Path, port: int
) -> "tuple[subprocess.Popen[bytes], RunningStore]":
    tries = _PORT_TRIES if port == 0 else 1  # somebody may take a free port before the server
    while True:
        tries -= 1
        chosen = port or free_port()
        process = _spawn(*_command(name, path, folder, chosen), folder)
        try:
            _wait_until_ready(name, process, chosen, folder / "server.log")
        except BaseException as error:
            _stop(process)
            if tries and isinstance(error, StoreStartError):
                continue
            raise
        version = _version(name, path)
        return process, RunningStore(name, version, f"http://127.0.0.1:{chosen}", process.pid)


def _command(
    name: StoreName, path: str, folder: Path, port: int
) -> tuple[list[str], dict[str, str]]:
    address = f"127.0.0.1:{port}"
    match name:
        case StoreName.MINIO:
            return [path, "server", str(folder / "data"), "--address", address, "--quiet"], {
                "MINIO_ROOT_USER": ACCESS_KEY,
                "MINIO_ROOT_PASSWORD": SECRET_KEY,
                "MINIO_BROWSER": "off",
                "MINIO_UPDATE": "off",
                "MINIO_KMS_SECRET_KEY": f"{KMS_KEY}:{_KMS_SECRET}",
            }
        case StoreName.LOCALSTACK:
            return [path, "-P", "-m", "localstack.runtime.main"], {
                "SERVICES": "s3,iam,sts,logs",
                "DISABLE_EVENTS": "1",
                "SKIP_SSL_CERT_DOWNLOAD": "1",
                "GATEWAY_LISTEN": address,
                "OVERRIDE_IN_DOCKER": "0",  # in a container, too, its files are where we say
                "FILESYSTEM_ROOT": str(folder / "data"),
            }


def _spawn(
    command: list[str], environment: Mapping[str, str], folder: Path
) -> "subprocess.Popen[bytes]":
    setpriv = shutil.which("setpriv")
    if setpriv is not None:  # Linux: ends with the thread that started it
        command = [setpriv, "--pdeathsig", "KILL", "--", *command]
    inherited = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
    with open(make_file(folder / "server.log", os.O_WRONLY | os.O_APPEND), "ab") as log:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**inherited, **environment},
            cwd=folder,  # not the repository: its folder `localstack` is not LocalStack
            start_new_session=True,  # Ctrl-C is for whoever started it
        )


def _wait_until_ready(
    name: StoreName, process: "subprocess.Popen[bytes]", port: int, log: Path
) -> None:
    path = "minio/health/ready" if name is StoreName.MINIO else "_localstack/health"
    deadline = time.monotonic() + READY_TIMEOUT_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=5):
                return
        except (OSError, urllib.error.URLError):
            time.sleep(0.05)
    ended = process.poll()
    what = "gave no answer" if ended is None else f"ended with exit code {ended}"
    error = StoreStartError(f"{name} did not start: it {what}", remedy=f"see {log}")
    error.add_note("\n".join(log.read_text(errors="replace").splitlines()[-LOG_TAIL_LINES:]))
    raise error


def _stop(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _version(name: StoreName, path: str) -> str:
    """MinIO built by Go does not know its version: it is the folder's name."""
    if name is StoreName.MINIO:
        return Path(path).parent.name
    code = "from importlib.metadata import version; print(version('localstack'), end='')"
    return subprocess.run(
        [path, "-I", "-c", code], stdout=subprocess.PIPE, text=True, check=True
    ).stdout


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])
