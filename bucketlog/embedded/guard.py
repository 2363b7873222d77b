"""The guard of an embedded cluster: starts Valkey and brokers, and ends with its parent.

Run by `bucketlog.embedded.cluster` as a script of the standard library alone (it is up in 20 ms):
`python -I -S guard.py` with one line of JSON on stdin. Invariants: when its stdin closes,
however the parent ended, it ends its children, brokers first; a broker that ends by itself is
reported, and the others continue; the end of the last one, or of Valkey, ends all; if the guard
itself is killed, the kernel ends the children (PR_SET_PDEATHSIG, sound here because the guard has
one thread). The data folder's lock is inherited by all of them, so it is free only when none is
left.

stdin:  {"valkey": path | null, "command": [argv], "brokers": {name: {variable: text}},
         "environment": {..}, "log": path, "lock_fd": n, "stop_timeout_s": n}
stdout: {"event": "children", "guard": pid, "valkey": pid | null, "brokers": {name: pid}}
        then the brokers' own lines; {"event": "ended", "child": name, "code": n} when one ended
"""

import ctypes
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

VALKEY_START_TIMEOUT_S = 10.0
PR_SET_PDEATHSIG = 1
_POLL_S = 0.002


_GUARD_PID = os.getpid()


def _die_with_guard() -> None:
    """In the child, between fork and exec."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != _GUARD_PID:  # it died before the call
            os._exit(1)


def _send_event(**event: object) -> None:
    os.write(1, json.dumps(event).encode() + b"\n")


def _socket_folder(lock_fd: int) -> str:
    """A unix socket's path has at most 107 bytes: not under the data folder, which may be deep.

    Named after the lock, which this guard holds: what is there was left by one that was killed.
    """
    parent = "/tmp" if os.path.isdir("/tmp") else tempfile.gettempdir()
    lock = os.fstat(lock_fd)
    folder = os.path.join(parent, f"bucketlog-{os.getuid()}-{lock.st_dev:x}-{lock.st_ino:x}")
    shutil.rmtree(folder, ignore_errors=True)
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:  # somebody else's
        return tempfile.mkdtemp(prefix="bucketlog-", dir=parent)
    return folder


def _start_valkey(binary: str, folder: str, log: int, lock_fd: int) -> "subprocess.Popen[bytes]":
    path = os.path.join(folder, "valkey.sock")
    settings = {
        "port": "0",
        "unixsocket": path,
        "unixsocketperm": "700",
        "save": "",
        "appendonly": "no",
        "maxmemory-policy": "noeviction",
        "dir": folder,
        "daemonize": "no",
    }
    argv = [binary, *(word for name, value in settings.items() for word in (f"--{name}", value))]
    child = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        pass_fds=(lock_fd,),
        preexec_fn=_die_with_guard,  # noqa: PLW1509 - the guard has one thread
    )
    deadline = time.monotonic() + VALKEY_START_TIMEOUT_S
    while child.poll() is None and time.monotonic() < deadline:
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(path)
                probe.sendall(b"PING\r\n")
                if probe.recv(16).startswith(b"+PONG"):
                    break
            except OSError:
                pass
        time.sleep(_POLL_S)
    return child


def _stop(children: "list[subprocess.Popen[bytes]]", timeout_s: float) -> None:
    """All at once; whoever takes longer is killed."""
    left = [child for child in children if child.poll() is None]
    for child in left:
        child.terminate()
    deadline = time.monotonic() + timeout_s
    for child in left:
        try:
            child.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def _watch(
    valkey: "subprocess.Popen[bytes] | None", brokers: "dict[str, subprocess.Popen[bytes]]"
) -> None:
    """Until stdin closes, Valkey or the last broker ends, or SIGTERM comes."""
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    running = dict(brokers)
    while True:
        for name, child in list(running.items()):
            if child.poll() is not None:
                del running[name]
                _send_event(event="ended", child=name, code=child.returncode)
        if valkey is not None and valkey.poll() is not None:
            _send_event(event="ended", child="valkey", code=valkey.returncode)
            return
        if not running:
            return
        ready, _, _ = select.select([0, wake_read], [], [])
        if wake_read in ready and signal.SIGTERM in os.read(wake_read, 4096):
            return
        if 0 in ready and not os.read(0, 4096):
            return


def main() -> int:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    orders = json.loads(sys.stdin.buffer.readline())
    lock_fd, stop_timeout_s = orders["lock_fd"], orders["stop_timeout_s"]
    log = os.open(orders["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    folder = _socket_folder(lock_fd)
    environment = dict(orders["environment"])
    valkey: subprocess.Popen[bytes] | None = None
    brokers: dict[str, subprocess.Popen[bytes]] = {}
    try:
        if orders["valkey"]:
            valkey = _start_valkey(orders["valkey"], folder, log, lock_fd)
            environment["BUCKETLOG_REDIS_URL"] = f"unix://{folder}/valkey.sock"
        for name, own in orders["brokers"].items():
            brokers[name] = subprocess.Popen(
                orders["command"],
                stdin=subprocess.DEVNULL,
                stderr=log,
                env={**environment, **own},
                pass_fds=(lock_fd,),
                preexec_fn=_die_with_guard,  # noqa: PLW1509 - the guard has one thread
            )
        _send_event(
            event="children",
            guard=os.getpid(),
            valkey=valkey.pid if valkey is not None else None,
            brokers={name: broker.pid for name, broker in brokers.items()},
        )
        _watch(valkey, brokers)
    except BrokenPipeError:
        pass  # the parent is gone: stop the children
    finally:
        _stop(list(brokers.values()), stop_timeout_s)
        _stop([valkey] if valkey is not None else [], stop_timeout_s)
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
