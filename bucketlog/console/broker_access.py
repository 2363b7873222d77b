"""The connection to the brokers of the log that the console shows.

Invariants: the connection reaches the cluster of the bucket. Brokers of another cluster are
refused, so that a page changes only the log that it shows. Brokers that do not answer cost few
threads of pages: at most `ASKING_MAX` pages ask at a time, and others share a recent failure.
"""

import threading
from collections.abc import Callable
from copy import copy
from typing import NamedTuple, TypeVar
from uuid import UUID

from bucketlog.client.log import Log
from bucketlog.log_format.errors import BucketlogError, ConfigurationError, LogError

T = TypeVar("T")
ASKING_MAX = 2
ASKING_WAIT_S = 0.5


class BrokersBusyError(BucketlogError):
    """Other pages are waiting for answers of brokers."""

    code = "BROKERS_BUSY"
    retriable = True


class _Failure(NamedTuple):
    """An error of brokers, and the monotonic time at which the error was raised."""

    at_s: float
    error: LogError


class BrokerAccess:
    """Connects when a page first needs brokers. Several threads may use one instance.

    `connect` opens the connection, and raises `LogError` if no broker answers. `bootstrap` is the
    address of brokers in the commands that pages show. With `may_change`, pages may change the
    log. Pages do not ask for `retry_s` after a failure; `now_s` is the monotonic clock."""

    def __init__(
        self,
        connect: Callable[[], Log],
        *,
        bootstrap: str,
        may_change: bool,
        retry_s: float,
        now_s: Callable[[], float],
    ) -> None:
        self.bootstrap = bootstrap
        self.may_change = may_change
        self._connect = connect
        self._lock = threading.Lock()
        self._log: Log | None = None
        self._failures = 0
        self._failure: LogError | None = None
        self._retry_s = retry_s
        self._now_s = now_s
        self._asking = threading.BoundedSemaphore(ASKING_MAX)
        self._recent: _Failure | None = None

    def ask(self, cluster_id: UUID, question: Callable[[Log], T]) -> T:
        """Return the answer of the brokers to a page. Raises the errors of `log` and of the
        question, and `BrokersBusyError` if other pages ask. A failure that may pass is raised again
        for `retry_s`, without a request."""
        failure = self._recent
        if failure is not None and self._now_s() - failure.at_s < self._retry_s:
            raise copy(failure.error) from failure.error
        if not self._asking.acquire(timeout=ASKING_WAIT_S):
            raise BrokersBusyError("other pages are asking the brokers", remedy="try again")
        try:
            return question(self.log(cluster_id))
        except LogError as error:
            if error.retriable:
                self._recent = _Failure(self._now_s(), error)
            raise
        finally:
            self._asking.release()

    def log(self, cluster_id: UUID) -> Log:
        """Return the connection to the cluster. Raises `ConfigurationError` if the brokers belong
        to another cluster, and `LogError` if no broker answers. Pages that wait for one attempt to
        connect share its failure."""
        failures = self._failures
        with self._lock:
            if self._log is None:
                if self._failure is not None and self._failures > failures:
                    raise copy(self._failure) from self._failure
                try:
                    self._log = self._opened(cluster_id)
                except LogError as error:
                    self._failure = error
                    self._failures += 1
                    raise
            return self._log

    def log_to_change(self, cluster_id: UUID) -> Log:
        """Return the connection like `log`, and ask the brokers for their cluster again. Other
        brokers may serve at the same address by now."""
        found = self.log(cluster_id)
        try:
            self._check(found, cluster_id)
        except ConfigurationError:
            with self._lock:
                if self._log is found:
                    self._log = None
            found.close()
            raise
        return found

    def _opened(self, cluster_id: UUID) -> Log:
        opened = self._connect()
        try:
            self._check(opened, cluster_id)
        except BaseException:
            opened.close()
            raise
        return opened

    def _check(self, log: Log, cluster_id: UUID) -> None:
        found = log.cluster_id()
        if found != str(cluster_id):
            raise ConfigurationError(
                f"the brokers at {self.bootstrap} belong to the cluster {found}, "
                f"and the bucket to {cluster_id}",
                remedy="give --bootstrap a broker of this bucket",
            )

    def close(self) -> None:
        with self._lock:
            if self._log is not None:
                self._log.close()
                self._log = None
