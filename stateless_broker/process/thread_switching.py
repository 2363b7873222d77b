"""How soon a broker's threads take turns with its event loop.

A thread gives up the interpreter lock at each call of the system, and asks for the lock after the
call. While the event loop is busy, the thread waits for the whole switch interval of Python. A PUT
to a folder has about ten such calls. With Python's default of 5 ms, the PUTs of other clients took
four times as long while one client's large request was answered.
"""

import sys

SWITCH_INTERVAL_S = 0.0001


def switch_threads_soon() -> None:
    sys.setswitchinterval(SWITCH_INTERVAL_S)
