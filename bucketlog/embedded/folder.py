"""The lock on the data folder of an embedded cluster: one cluster at a time.

Invariant: the lock is an flock that every process of the cluster inherits, so it is free only when
none of them is left.
"""

import fcntl
import json
import os
import time
from pathlib import Path

from bucketlog.log_format.errors import ClusterInUseError
from bucketlog.log_format.private_files import make_file

LOCK_WAIT_S = 5.0
"""How long a start waits for the processes of a holder that has died to end."""


def lock_folder(data_dir: Path) -> int:
    """The folder's lock, inheritable. Raises `ClusterInUseError`, which names the holder, and
    `OSError`."""
    path = data_dir / "lock"
    lock_fd = make_file(path, os.O_RDWR)
    deadline = time.monotonic() + LOCK_WAIT_S
    while True:
        try:
            fcntl.flock(lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            holder = _holder(path)
            # A holder that was killed leaves children that are about to end: they hold the lock.
            if (holder and is_alive(holder)) or time.monotonic() > deadline:
                os.close(lock_fd)
                raise ClusterInUseError(
                    f"{data_dir} is in use by process {holder or 'unknown'}",
                    remedy="stop it, or give another --data folder",
                ) from None
            time.sleep(0.01)
    os.ftruncate(lock_fd, 0)
    os.pwrite(lock_fd, json.dumps({"pid": os.getpid()}).encode(), 0)
    return lock_fd


def holder_of(data_dir: Path) -> int | None:
    """The process that holds the folder; None: nobody does."""
    path = data_dir / "lock"
    try:
        with path.open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return None
    except FileNotFoundError:
        return None
    except BlockingIOError:
        return _holder(path)


def _holder(path: Path) -> int | None:
    try:
        return int(json.loads(path.read_text())["pid"])
    except (OSError, ValueError, KeyError, TypeError):
        return None  # just being written


def is_alive(pid: int) -> bool:
    """Not a zombie, either."""
    try:
        os.kill(pid, 0)
        # A zombie holds nothing any more, its children may for a moment. (No /proc: not Linux.)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return state != "Z"
