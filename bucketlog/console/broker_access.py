"""The connection to the brokers of the log that the console shows.

Invariant: the connection reaches the cluster of the bucket. Brokers of another cluster are refused,
so that a page changes only the log that it shows.
"""

import threading
from collections.abc import Callable
from uuid import UUID

from bucketlog.client.log import Log
from bucketlog.log_format.errors import ConfigurationError


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

    def log(self, cluster_id: UUID) -> Log:
        """Return the connection to the cluster. Raises `ConfigurationError` if the brokers belong
        to another cluster, and `LogError` if no broker answers."""
        with self._lock:
            if self._log is None:
                opened = self._connect()
                found = opened.cluster_id()
                if found != str(cluster_id):
                    opened.close()
                    raise ConfigurationError(
                        f"the brokers at {self.bootstrap} belong to the cluster {found}, "
                        f"and the bucket to {cluster_id}",
                        remedy="give --bootstrap a broker of this bucket",
                    )
                self._log = opened
            return self._log

    def close(self) -> None:
        with self._lock:
            if self._log is not None:
                self._log.close()
                self._log = None
