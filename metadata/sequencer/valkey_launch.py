"""Becomes a Valkey server that ends with the broker that started it.

`valkey_process` runs it as a script that needs only the standard library: `python -I -S
valkey_launch.py BINARY BROKER_PID`, with Valkey's configuration on stdin. Invariant: on Linux, the
kernel kills the server when the thread that started it ends (PR_SET_PDEATHSIG, which survives the
exec). This is the broker's main thread, which lives as long as the broker.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    binary, broker_pid = sys.argv[1], int(sys.argv[2])
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != broker_pid:  # the broker died before the call
            os._exit(1)
    for number in (signal.SIGINT, signal.SIGHUP):  # Ctrl-C is the broker's, which then stops it
        signal.signal(number, signal.SIG_IGN)
    os.execv(binary, [binary, "-"])


if __name__ == "__main__":
    main()
