"""The claims about what survives the loss of Redis and of brokers; targets of `tests.proofs`."""

from collections.abc import Callable

from tests.proofs.shortfall import Figures, ShortfallError
from tests.scenarios.fault_points import fault_points
from tests.scenarios.hidden_records import hidden_records
from tests.scenarios.split import split
from tests.scenarios.wipe import wipe
from tests.scenarios.zone_split import zone_split
from tests.servers.cluster import Store
from tests.servers.mortal_broker import Point

WORKS_AGAIN_P50_S = 1.0
MAJORITY_SHARE = 0.95
LOST_S_MAX = 5
"""Minimum of the allowed lost seconds: a short split includes the failover, too."""
TOGETHER_S = 10.0
HIDDEN_S_MAX = 2.0
SHORT_POINTS = (Point.RESERVED, Point.IN_PUT, Point.PUBLISHED, Point.SEALED, Point.CLAIMED)


def prove_wipe(short: bool) -> Figures:
    """The only Redis is emptied, and killed and started empty, under librdkafka, Java, aiokafka."""
    if short:
        return wipe(Store.FILE, 2, 2, segments=300, java=False).as_json()
    figures = wipe(Store.FILE, 10, 10, segments=2_000, java=True)
    slowest = max(figures.wipe_p50_s, figures.kill_p50_s)
    if slowest >= WORKS_AGAIN_P50_S:
        raise ShortfallError(
            f"producing works again after {slowest} s (p50), less than {WORKS_AGAIN_P50_S} wanted",
            figures.as_json(),
        )
    return figures.as_json()


def prove_split(short: bool) -> Figures:
    """Failover to a replica that lags, the old primary still there for one broker; and back."""
    if short:
        return split(Store.FILE, lag_s=1, left_behind_s=4, java=False).as_json()
    return split(Store.MINIO, lag_s=2, left_behind_s=20, java=True).as_json()


def prove_zone_split(short: bool) -> Figures:
    """One broker of three stays with the old Redis primary, and the others keep acknowledging."""
    store, split_s = (Store.FILE, 20) if short else (Store.MINIO, 300)
    figures = zone_split(store, split_s=split_s)
    lost_s_max = max(LOST_S_MAX, figures.split_s * (1 - MAJORITY_SHARE))
    if figures.lost_s > lost_s_max:
        raise ShortfallError(
            f"the majority acknowledged nothing in {figures.lost_s} of {figures.split_s} s; the "
            f"limit is {lost_s_max:g} s",
            figures.as_json(),
        )
    if figures.minority_acknowledged or "another Redis" not in figures.minority_reason:
        raise ShortfallError(
            "the minority acknowledged records, or does not say on /readyz why not",
            figures.as_json(),
        )
    if figures.together_s > TOGETHER_S:
        raise ShortfallError(
            f"all are in one epoch {figures.together_s} s after the split; the limit is "
            f"{TOGETHER_S} s",
            figures.as_json(),
        )
    return figures.as_json()


def prove_fault_points(short: bool) -> Figures:
    """Brokers die by SIGKILL at each step of the commit path, sealing, epochs and checkpoints."""
    if short:
        return fault_points(Store.FILE, SHORT_POINTS, 1).as_json()
    return fault_points(Store.FILE, list(Point), 1).as_json()


def prove_bucket_readers(short: bool) -> Figures:
    """Void reservations hide acknowledged records from readers of the bucket only for a moment."""
    figures = hidden_records(Store.FILE, 3) if short else hidden_records(Store.MINIO, 100)
    if figures.hidden_max_s > HIDDEN_S_MAX:
        raise ShortfallError(
            f"a record was hidden for {figures.hidden_max_s} s; the limit is {HIDDEN_S_MAX} s",
            figures.as_json(),
        )
    if not figures.hidden:
        raise ShortfallError("no record was hidden, so the proof shows nothing", figures.as_json())
    return figures.as_json()


RECOVERY_TARGETS: dict[str, Callable[[bool], Figures]] = {
    "wipe": prove_wipe,
    "split": prove_split,
    "zone-split": prove_zone_split,
    "faultpoints": prove_fault_points,
    "bucket-readers": prove_bucket_readers,
}
