"""A whole deployment on this machine: a store, a Valkey, two brokers. Ends them when it ends.

    python -m localstack.keeper minio --data DIR

Run by `localstack.up`, with `--log FILE`: in the background, having printed its pid. Invariants:
`deployment.json` is in the folder while the deployment is ready, and says how to reach it; all
processes end with this one, however it ends.
"""

import argparse
import json
import os
import sys
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

from bucketlog.cli.signals import sigterm_interrupts
from bucketlog.embedded.cluster import EmbeddedCluster
from bucketlog.embedded.folder import holder_of, lock_folder
from bucketlog.log_format.errors import BucketlogError, InvalidDataError
from bucketlog.log_format.private_files import make_file, make_folder
from localstack.provision import provision
from localstack.servers import StoreName, running

BUCKET = "bucketlog"
BROKERS = 2
FILE = "file"
STORES = (FILE, *StoreName)
DEPLOYMENT = "deployment.json"
KEEPER = "keeper"
"""The folder with the keeper's own lock: it is held before anything else is begun."""
FAILED = 1


@dataclass(frozen=True, slots=True)
class Deployment:
    """`environment` is what a client of the store, and of the brokers, needs in its own."""

    store: str
    bootstrap: str
    bucket_url: str
    metrics: list[str]
    environment: dict[str, str]
    pids: dict[str, int]

    @classmethod
    def read(cls, data: Path) -> "Deployment | None":
        """None where none is ready. Raises `InvalidDataError`."""
        path = data / DEPLOYMENT
        try:
            return cls(**json.loads(path.read_text()))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError) as error:
            raise InvalidDataError(f"{path} is not what was written there: {error}") from error

    def write(self, data: Path) -> None:
        whole = data / f"{DEPLOYMENT}.new"
        whole.unlink(missing_ok=True)
        with open(make_file(whole, os.O_WRONLY | os.O_EXCL), "w") as file:  # contains secrets
            json.dump(asdict(self), file, indent=2)
        whole.replace(data / DEPLOYMENT)


def keep(store: str, data: Path, port: int) -> None:
    """Until SIGTERM or Ctrl-C. Raises `BucketlogError` where a part does not start or ends."""
    with ExitStack() as closing:
        make_folder(data / KEEPER)
        closing.callback(os.close, lock_folder(data / KEEPER))
        (data / DEPLOYMENT).unlink(missing_ok=True)  # of one that was killed
        bucket_url, environment, pids = None, {}, {}
        if store != FILE:
            lent = closing.enter_context(running(StoreName(store), data / "store"))
            bucket_url, environment = f"s3://{BUCKET}", lent.environment()
            pids["store"] = lent.pid
            os.environ.update(environment)
            for line in provision(BUCKET):
                sys.stderr.write(f"{line}\n")
        cluster = EmbeddedCluster(data, port=port, brokers=BROKERS, bucket_url=bucket_url)
        closing.enter_context(cluster)
        Deployment(
            store,
            cluster.bootstrap,
            cluster.bucket_url,
            [f"http://{each.http_host}:{each.http_port}/metrics" for each in cluster.members],
            {
                **environment,
                "BUCKETLOG_BOOTSTRAP": cluster.bootstrap,
                "BUCKETLOG_BUCKET_URL": cluster.bucket_url,
            },
            {"keeper": os.getpid(), **pids, **cluster.pids},
        ).write(data)
        closing.callback((data / DEPLOYMENT).unlink, missing_ok=True)
        cluster.wait(lambda loss: sys.stderr.write(f"{loss}\n"))


def keeper_of(data: Path) -> int | None:
    """The process that keeps a deployment there, or starts it; None: nobody does."""
    return holder_of(data / KEEPER)


def _is_background(log: Path) -> bool:
    """Whether this is the one of two processes that goes on: without a terminal, writing to `log`.
    The other says which it is."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        sys.stdout.write(f"{pid}\n")
        return False
    os.setsid()
    with open(make_file(log, os.O_WRONLY | os.O_APPEND), "ab") as said:
        os.dup2(said.fileno(), 1)
        os.dup2(said.fileno(), 2)
    return True


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="localstack.keeper")
    parser.add_argument("store", choices=STORES)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--log", type=Path)
    options = parser.parse_args(arguments)
    if options.log is not None and not _is_background(options.log):
        return 0
    try:
        with sigterm_interrupts():
            keep(options.store, options.data.absolute(), options.port)
    except KeyboardInterrupt:
        return 0
    except BucketlogError as error:
        sys.stderr.write(f"{error}\n")
    return FAILED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
