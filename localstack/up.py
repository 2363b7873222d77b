"""Starts and ends a whole deployment on this machine, in the background, without Docker.

    make up STORE=minio    or localstack, file: a store, a Valkey, two brokers; says how to use them
    make down              ends them

`python -m localstack.up minio` and `python -m localstack.up --down` are the same. The data stays in
`--data` until somebody removes it. Exit codes: 0, it is as asked; 1, it is not, with the reason.
"""

import argparse
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from bucketlog.embedded.folder import holder_of, is_alive
from bucketlog.log_format.errors import BucketlogError, ConfigurationError
from bucketlog.log_format.private_files import make_file, make_folder
from localstack.keeper import FILE, STORES, Deployment, keeper_of

ROOT = Path(__file__).parents[1]
DATA = Path(".bucketlog")
PORT = 9092
READY_TIMEOUT_S = 120.0
GONE_TIMEOUT_S = 60.0
POLL_S = 0.05


class DeploymentError(BucketlogError):
    code = "DEPLOYMENT"


def up(store: str, data: Path, port: int) -> Deployment:
    """One that is up already is left as it is. Raises `BucketlogError`."""
    there = Deployment.read(data) if keeper_of(data) is not None else None
    if there is not None:
        if there.store != store:
            raise ConfigurationError(
                f"a deployment on {there.store} is up in {data}", remedy="make down, then again"
            )
        return there
    make_folder(data)
    log = data / "keeper.log"
    os.close(make_file(log, os.O_WRONLY))
    begun = log.stat().st_size
    keeper = int(
        subprocess.run(
            [
                *(sys.executable, "-P", "-m", "localstack.keeper", store, "--log", str(log)),
                *("--data", str(data), "--port", str(port)),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": _python_path()},
            check=True,
        ).stdout
    )
    deadline = time.monotonic() + READY_TIMEOUT_S
    try:
        while (found := Deployment.read(data)) is None or found.pids["keeper"] != keeper:
            if not is_alive(keeper) or time.monotonic() > deadline:
                told = log.read_bytes()[begun:].decode(errors="replace").splitlines()
                raise DeploymentError(
                    f"it did not start: {told[-1] if told else 'nothing was said'}",
                    remedy=f"see {log} and {data}/broker.log",
                )
            time.sleep(POLL_S)
    except BaseException:
        with suppress(ProcessLookupError):
            os.kill(keeper, signal.SIGTERM)
        raise
    return found


def _python_path() -> str:
    """The repository, which contains `localstack`, followed by the environment's PYTHONPATH."""
    return os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])


def down(data: Path) -> bool:
    """Whether one was up. Raises `DeploymentError` where it does not end."""
    keeper = keeper_of(data)
    if keeper is None:
        return False
    with suppress(ProcessLookupError):  # it ends by itself
        os.kill(keeper, signal.SIGTERM)
    _wait(lambda: not is_alive(keeper), f"process {keeper} does not end")
    _wait(lambda: holder_of(data) is None, f"{data} is held by a process that was left")
    return True


def _wait(holds: Callable[[], bool], complaint: str) -> None:
    deadline = time.monotonic() + GONE_TIMEOUT_S
    while not holds():
        if time.monotonic() > deadline:
            raise DeploymentError(complaint, remedy="end it by hand")
        time.sleep(POLL_S)


def _introduce(found: Deployment, data: Path) -> str:
    exports = "\n".join(
        f"  export {name}={shlex.quote(text)}" for name, text in found.environment.items()
    )
    return f"""two brokers on {found.store} are ready at {found.bootstrap}

{exports}

  bucketlog demo --bootstrap {found.bootstrap} --bucket {found.bucket_url}

metrics at {" and ".join(found.metrics)}
data and logs in {data}; `make down` ends them"""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="localstack.up", description=__doc__.splitlines()[0])
    parser.add_argument("store", nargs="?", choices=STORES, default=FILE)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--port", type=int, default=PORT, help="of the first broker; 0: any")
    parser.add_argument("--down", action="store_true", help="end it")
    options = parser.parse_args(arguments)
    data = options.data.absolute()
    try:
        if options.down:
            told = "ended" if down(data) else f"nothing is up in {data}"
        else:
            told = _introduce(up(options.store, data, options.port), data)
    except BucketlogError as error:
        sys.stderr.write(f"localstack.up: {error}\n")
        return 1
    except OSError as error:
        why = f"{error.strerror} (give a folder that this user may write, as --data)"
        sys.stderr.write(f"localstack.up: {data} cannot hold a deployment: {why}\n")
        return 1
    with suppress(BrokenPipeError):
        sys.stdout.write(f"{told}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
