"""A large consumer group: many members join, then one leaves after the other.

At full size, from the repository's root: `make prove WHAT=rebalances`. A rebalance's time is that
from a member's wish to leave until the group, as DescribeGroups shows it, is stable without it;
where the next member leaves before that, it is the time until all of them are out.
"""

import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import confluent_kafka

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.rigs.patience import eventually, let_pass
from tests.rigs.wire_client import WireClient
from tests.scenarios.failover import percentile
from tests.scenarios.group_members import leave
from tests.scenarios.round_trip import create_topic
from tests.servers.cluster import Cluster, running_cluster

TOPIC, GROUP = "rebalances", "large"
HEARTBEAT_MS = 500
SESSION_MS = 10_000
POLL_PAUSE_S = 0.005
DESCRIBE_PAUSE_S = 0.05
LEAVE_PAUSE_S = 1.0
SETTINGS = {"group_initial_rebalance_delay_ms": "0"}


@dataclass(frozen=True, slots=True)
class RebalanceFigures:
    members: int
    partitions: int
    joined_s: float
    """From the first member's start until all had their share."""
    left: int
    stable_after_last_s: float
    """From the last member's wish to leave until all partitions were shared out by the others."""
    rebalance_p50_s: float
    rebalance_p99_s: float
    seconds: float

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


class LargeGroup:
    """Its members, all served by one thread; start it with `with`."""

    def __init__(self, bootstrap: str, members: int) -> None:
        self._members = [
            confluent_kafka.Consumer(
                {
                    "bootstrap.servers": bootstrap,
                    "group.id": GROUP,
                    "client.id": f"member-{number}",
                    "partition.assignment.strategy": "range",
                    "session.timeout.ms": SESSION_MS,
                    "heartbeat.interval.ms": HEARTBEAT_MS,
                    "log_level": 0,
                }
            )
            for number in range(members)
        ]
        self._lock = threading.Lock()
        self._closing: list[threading.Thread] = []
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="members")

    def __enter__(self) -> Self:
        for member in self._members:
            member.subscribe([TOPIC])
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()
        while self._members:
            self.one_leaves()
        for thread in self._closing:
            thread.join()

    def _serve(self) -> None:
        while not self._stopping.wait(POLL_PAUSE_S):
            with self._lock:
                for member in self._members:
                    member.poll(0)

    def one_leaves(self) -> None:
        with self._lock:
            leaver = self._members.pop(0)
        self._closing.append(threading.Thread(target=leave, args=(leaver,)))
        self._closing[-1].start()

    def shares(self) -> list[list[int]]:
        """What each member thinks it has."""
        with self._lock:
            return [[each.partition for each in member.assignment()] for member in self._members]

    def wait_until_shared(self, partitions: int) -> None:
        """Everybody has something, nothing twice, all of it."""
        eventually(
            lambda: _is_shared(self.shares(), partitions),
            lambda: f"not shared: {sorted(map(len, self.shares()))}",
            pause_s=DESCRIBE_PAUSE_S,
        )


def _is_shared(shares: Sequence[Sequence[int]], partitions: int) -> bool:
    flat = sorted(number for share in shares for number in share)
    return all(shares) and flat == list(range(partitions))


class StateWatch:
    """When the group was seen stable, and with how many members. Start it with `with`."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self.stable: list[tuple[float, int]] = []
        """Moment and members."""
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._look, name="watch")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _look(self) -> None:
        with WireClient(self._bootstrap) as client:
            while not self._stopping.wait(DESCRIBE_PAUSE_S):
                (group,) = client.call(
                    ApiKey.DESCRIBE_GROUPS, 5, groups=[GROUP], include_authorized_operations=False
                ).groups
                if group.group_state == "Stable":
                    self.stable.append((time.monotonic(), len(group.members)))

    def stable_since(self, moment: float, members: int) -> float | None:
        """The first moment after it at which the group was stable with at most so many."""
        return next(
            (at for at, count in self.stable if at > moment and count <= members),
            None,
        )


def rebalances(members: int, partitions: int, leavers: int) -> RebalanceFigures:
    """Raises `AssertionError`; nothing is left running."""
    began = time.perf_counter()
    with running_cluster(1, settings=SETTINGS) as cluster:
        bootstrap = cluster.brokers[0].bootstrap
        create_topic(bootstrap, TOPIC, partitions)
        with StateWatch(bootstrap) as watch:
            joined_s, left_at, stable_s = _join_and_leave(cluster, members, partitions, leavers)
    found = [
        watch.stable_since(moment, members - number)
        for number, moment in enumerate(left_at, start=1)
    ]
    times = [at - moment for at, moment in zip(found, left_at, strict=True) if at is not None]
    assert len(times) == len(left_at), "the group was not seen stable at the end"
    return RebalanceFigures(
        members=members,
        partitions=partitions,
        joined_s=round(joined_s, 2),
        left=leavers,
        stable_after_last_s=round(stable_s, 2),
        rebalance_p50_s=round(percentile(times, 0.5), 2),
        rebalance_p99_s=round(percentile(times, 0.99), 2),
        seconds=round(time.perf_counter() - began, 1),
    )


def _join_and_leave(
    cluster: Cluster, members: int, partitions: int, leavers: int
) -> tuple[float, list[float], float]:
    """Seconds until all had joined; when each left; seconds from the last until all was shared."""
    left_at: list[float] = []
    began = time.monotonic()
    with LargeGroup(cluster.bootstrap, members) as group:
        group.wait_until_shared(partitions)
        joined_s = time.monotonic() - began
        for _ in range(leavers):
            if left_at:
                let_pass(left_at[-1] + LEAVE_PAUSE_S - time.monotonic())
            left_at.append(time.monotonic())
            group.one_leaves()
        group.wait_until_shared(partitions)
        stable_s = time.monotonic() - left_at[-1]
        let_pass(DESCRIBE_PAUSE_S * 4)  # so that the watch sees it, too
    return joined_s, left_at, stable_s
