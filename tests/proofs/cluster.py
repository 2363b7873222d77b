"""The claims about several brokers on one cluster; targets of `tests.proofs`."""

from collections.abc import Callable

from tests.proofs.shortfall import Figures, ShortfallError
from tests.scenarios.across_brokers import across_brokers
from tests.scenarios.failover import failover
from tests.scenarios.idle import idle
from tests.scenarios.leader_shares import leader_shares
from tests.scenarios.order import order
from tests.scenarios.rolling import rolling
from tests.scenarios.zombie import zombie
from tests.servers.cluster import Store

GAP_P99_S = 3.0
UNEVENNESS_MAX = 0.05
CLAIM_LOOK_MS = 5000
"""The default of `claim_look_ms`."""


def prove_across(short: bool) -> Figures:
    """Other people's clients across two brokers, in two zones, on one MinIO and one Valkey."""
    if short:
        return across_brokers(200, tools=False, store=Store.FILE).as_json()
    return across_brokers(20_000, tools=True).as_json()


def prove_leader_shares(short: bool) -> Figures:
    """24 partitions on three brokers: each broker leads 8, and gets a third of the load."""
    figures = leader_shares(*((Store.FILE, 60_000) if short else (Store.MINIO, 2_000_000)))
    if set(figures.partitions.values()) != {8} or figures.unevenness > UNEVENNESS_MAX:
        raise ShortfallError("the brokers do not have equal shares", figures.as_json())
    return figures.as_json()


def prove_failover(short: bool) -> Figures:
    """kill -9 of one of three brokers every 8 s, under an idempotent load."""
    if short:
        figures = failover(Store.FILE, 2, between_s=5)
    else:
        figures = failover(Store.MINIO, 100, between_s=8)
    if figures.gap_p99_s >= GAP_P99_S:
        raise ShortfallError(
            f"visibility gap p99 {figures.gap_p99_s} s, less than {GAP_P99_S} wanted",
            figures.as_json(),
        )
    return figures.as_json()


def prove_zombie(short: bool) -> Figures:
    """SIGSTOP in the middle of a PUT, SIGCONT when others have sealed the chain."""
    return zombie(1 if short else 3, stopped_s=6 if short else 15).as_json()


def prove_order(short: bool) -> Figures:
    """One partition through two brokers, one of which writes 2 s late: nothing appears below."""
    return order(10 if short else 60, delay_s=2).as_json()


def prove_idle(short: bool) -> Figures:
    """While no client sends requests, brokers only look for later claims."""
    figures = idle(Store.FILE, 5) if short else idle(Store.MINIO, 60)
    looks = figures.brokers * (figures.idle_s * 1000 / CLAIM_LOOK_MS + 1)
    if figures.requests_while_idle > looks:
        raise ShortfallError(
            f"{figures.requests_while_idle:g} requests while idle", figures.as_json()
        )
    return figures.as_json()


def prove_rolling(short: bool) -> Figures:
    """Three brokers restarted one by one under 20 MB/s: no client is told of an error."""
    if short:
        return rolling(Store.FILE, 1, bytes_per_s=3e6, steady_s=3, java=False).as_json()
    return rolling(Store.MINIO, 3, bytes_per_s=20e6, steady_s=30, java=True).as_json()


CLUSTER_TARGETS: dict[str, Callable[[bool], Figures]] = {
    "across": prove_across,
    "leader-shares": prove_leader_shares,
    "failover": prove_failover,
    "zombie": prove_zombie,
    "order": prove_order,
    "idle": prove_idle,
    "rolling": prove_rolling,
}
