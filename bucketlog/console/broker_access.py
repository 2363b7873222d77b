"""The connection to the brokers of the log that the console shows.

Invariant: the connection reaches the cluster of the bucket. Brokers of another cluster are refused,
so that a page changes only the log that it shows.
"""

import threading
from collections.abc import Callable
from copy import copy
from uuid import UUID

from bucketlog.client.log import Log
from bucketlog.log_format.errors import ConfigurationError, LogError


class BrokerAccess:
    """Connects when a page first needs brokers. Several threads may use one instance.

    `connect` opens the connection, and raises `LogError` if no broker answers. `bootstrap` is the
    address of brokers in the commands that pages show. With `may_change`, pages may change the
    log."""

    def __init__(self, connect: Callable[[], Log], *, bootstrap: str, may_change: bool) -> None:
        self.bootstrap = bootstrap
        self.may_change = may_change
        self._connect = connect
        self._lock = threading.Lock()
        self._log: Log | None = None
        self._failures = 0
        self._failure: LogError | None = None

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
