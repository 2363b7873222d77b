"""How long a broker's threads wait for the interpreter lock while the event loop is busy.

A thread releases the global interpreter lock (GIL) at each system call, and waits for the lock
after the call. While the event loop is busy, each wait takes Python's switch interval. A PUT to a
folder has about ten system calls. With Python's default interval of 5 ms, the PUTs of other clients
took four times as long while the broker answered one client's large request.
"""

import sys

SWITCH_INTERVAL_S = 0.0001


def switch_threads_soon() -> None:
    sys.setswitchinterval(SWITCH_INTERVAL_S)
