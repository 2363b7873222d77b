"""The program of the console that a broker serves on its HTTP port.

    python -m bucketlog.console.broker_program

The broker writes one line of JSON, the fields of `ServedPlace`, to the standard input, and keeps it
open. The process writes one line, `READY`, when it listens. Invariants: the process ends with its
broker, however the broker ends, also while it is stopped. It uses at most `memory_bytes_max` of
address space. It changes nothing in the bucket.
"""

import ctypes
import json
import os
import resource
import signal
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

PR_SET_PDEATHSIG = 1
READY = b"ready\n"


@dataclass(frozen=True, slots=True)
class ServedPlace:
    """The bucket `place` with its `shard`, and how to serve it. `hosts` are names by which browsers
    may call. `key_file` and the options of KMS are those of encrypted topics."""

    broker_pid: int
    place: str
    shard: int
    socket_path: str
    root: str
    hosts: Sequence[str]
    safety_age_ms: int
    memory_bytes_max: int
    key_file: str | None
    kms_region: str | None
    kms_endpoint_url: str | None
    kms_timeout_ms: int


def end_with(broker_pid: int, broker_end: int) -> None:
    """Have the process end when the broker does. `broker_end` is the descriptor of a pipe from the
    broker, which writes nothing more to it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != broker_pid:  # the broker died before the call
        os._exit(1)

    def wait() -> None:
        os.read(broker_end, 1)
        os._exit(1)

    threading.Thread(target=wait, name="broker's end", daemon=True).start()


def main(given: BinaryIO, out: BinaryIO) -> int:
    at = ServedPlace(**json.loads(given.readline()))
    end_with(at.broker_pid, given.fileno())
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (at.memory_bytes_max, at.memory_bytes_max))

    # with the limits in place
    from pydantic import ValidationError

    from bucketlog.console.serving import serve_read_only
    from bucketlog.log_format.errors import BucketlogError
    from bucketlog.log_format.printable import printable
    from bucketlog.tiered_storage.encryption.key_service import KeyAccess

    def is_ready() -> None:
        out.write(READY)
        out.flush()

    try:
        serve_read_only(
            at.place,
            shard=at.shard,
            socket_path=at.socket_path,
            root=at.root,
            hosts=at.hosts,
            access=KeyAccess(
                None if at.key_file is None else Path(at.key_file),
                at.kms_region,
                at.kms_endpoint_url,
                at.kms_timeout_ms,
            ),
            safety_age_ms=at.safety_age_ms,
            on_ready=is_ready,
        )
    except ValidationError as error:  # of `BUCKETLOG_CONSOLE_*`
        first = error.errors()[0]
        name = f"BUCKETLOG_CONSOLE_{'_'.join(map(str, first['loc']))}".upper()
        problem = f"{name}: {first['msg']} (docs/console.md#limits)"
    except BucketlogError as error:
        problem = str(error)
    else:
        return 0
    sys.stderr.write(f"bucketlog console: {printable(problem)}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.stdin.buffer, sys.stdout.buffer))
