"""Metrics of brokers for the page Brokers: memory and other limits, slow requests, and clients.

The operator gives the addresses of the brokers' metrics pages. If a broker does not answer, its
state says why.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from operator import itemgetter
from typing import NamedTuple

from bucketlog.console.aged_value import AgedValue
from bucketlog.console.page_deadline import Deadline
from bucketlog.cost.of_brokers import Figures, metrics_address, metrics_of
from bucketlog.log_format.errors import BucketlogError, ConfigurationError
from bucketlog.log_format.model import WallClock

PAGES_MAX = 100
READERS = 8
LIMITS = (
    ("received requests", "bucketlog_frame_bytes", "produce_buffer_bytes"),
    ("responses", "bucketlog_answer_bytes", "response_memory_bytes_max"),
    ("groups", "bucketlog_coordinated_groups_bytes", "coordinated_groups_bytes_max"),
    ("connections", "bucketlog_connections", "connections_max"),
    ("producers", "bucketlog_producers", "producers_max"),
)
"""Limited resources, each with its metric and the setting of its limit."""


class UsedLimit(NamedTuple):
    """The use of a resource of a broker, and its limit. Both are in bytes if the name of
    `setting` contains `bytes`. A limit of 0 means that the broker does not report the limit."""

    name: str
    setting: str
    used: int
    limit: int

    @property
    def percent(self) -> int:
        return 100 * self.used // self.limit if self.limit else 0

    @property
    def is_bytes(self) -> bool:
        return "bytes" in self.setting


class BrokerState(NamedTuple):
    """The state of a broker, as its metrics page shows it. `problem` says why the page cannot be
    read; the other fields are then empty. `degraded` lists the parts that do not work. `slow`
    counts slow requests by API, and `software` counts handshakes of clients by their software. Both
    count since the broker started, and have the largest number first."""

    address: str
    problem: str = ""
    is_ready: bool = False
    degraded: Sequence[str] = ()
    limits: Sequence[UsedLimit] = ()
    slow: Sequence[tuple[str, int]] = ()
    software: Sequence[tuple[str, int]] = ()


def state_of(address: str, figures: Figures) -> BrokerState:
    """Return the state of a broker from the figures of its metrics page."""

    def of(name: str, label: str = "") -> int:
        return int(figures.get((name, label), 0))

    return BrokerState(
        address,
        is_ready=bool(of("bucketlog_ready")),
        degraded=[label for (name, label), value in figures.items() if name == _DEGRADED and value],
        limits=[
            UsedLimit(name, setting, of(metric), of("bucketlog_limit", setting))
            for name, metric, setting in LIMITS
        ],
        slow=_counts(figures, "bucketlog_slow_requests_total"),
        software=_counts(figures, "bucketlog_client_handshakes_total"),
    )


_DEGRADED = "bucketlog_degraded"


def _counts(figures: Figures, wanted: str) -> list[tuple[str, int]]:
    found = [(label, int(value)) for (name, label), value in figures.items() if name == wanted]
    return sorted(found, key=itemgetter(1), reverse=True)


class BrokerMetrics:
    """Reads the metrics pages at `urls`, once for all pages of the console. Raises
    `ConfigurationError` for a wrong address, and for more than `PAGES_MAX` addresses."""

    def __init__(
        self,
        urls: Sequence[str],
        *,
        refresh_ms: int,
        now_ms: WallClock,
        patience_ms: float,
        read: Callable[[str], Figures] = metrics_of,
    ) -> None:
        if len(urls) > PAGES_MAX:
            raise ConfigurationError(
                f"--metrics is given {len(urls)} times", remedy=f"name at most {PAGES_MAX} brokers"
            )
        self._addresses = [metrics_address(url) for url in urls]
        self._read = read
        self._states: AgedValue[Sequence[BrokerState]] = AgedValue(
            refresh_ms, now_ms, patience_ms=patience_ms
        )

    def states(self, waiting: Deadline) -> Sequence[BrokerState]:
        """Return the states of all brokers. Raises `StillReadingError` and `PageTimeoutError`."""
        return self._states.get(self._all, waiting)

    def _all(self, _: Deadline) -> Sequence[BrokerState]:
        with ThreadPoolExecutor(READERS, thread_name_prefix="console-metrics") as pool:
            return list(pool.map(self._one, self._addresses))

    def _one(self, address: str) -> BrokerState:
        try:
            return state_of(address, self._read(address))
        except BucketlogError as error:
            return BrokerState(address, problem=error.message)
