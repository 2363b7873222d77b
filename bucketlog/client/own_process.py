"""Clients of librdkafka after a fork: its threads exist only in the process that opened it.

In a child process, a call would wait for these threads for ever. So would the end of the child,
when Python frees the client. `OwnProcess` refuses the calls, and keeps the client from being freed.
"""

import ctypes
import os
import weakref

from bucketlog.log_format.errors import ConfigurationError

REMEDY = (
    "open it after the fork, in each worker process: in post_fork of gunicorn, "
    "worker_process_init of Celery, the initializer of a process pool"
)


class OwnProcess:
    """The process that opened a client of librdkafka. `what` names the client in errors."""

    def __init__(self, what: str, client: object) -> None:
        self.client = client
        self._what = what
        self._pid = os.getpid()
        self.is_here = True
        """False in a child of the process that opened the client."""
        _opened.add(self)

    def check(self) -> None:
        """Raise `ConfigurationError` in a child of the process that opened the client."""
        if not self.is_here:
            raise ConfigurationError(
                f"this {self._what} was opened in process {self._pid}, before a fork", remedy=REMEDY
            )


_opened: "weakref.WeakSet[OwnProcess]" = weakref.WeakSet()


def _leave_parent() -> None:
    """In a child: nothing uses or frees the parent's clients, not even the interpreter's end."""
    for each in _opened:
        each.is_here = False
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(each.client))


os.register_at_fork(after_in_child=_leave_parent)
