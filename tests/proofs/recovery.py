"""The claims about what survives the loss of Redis and of brokers; targets of `tests.proofs`."""

from collections.abc import Callable

from tests.proofs.shortfall import Figures, ShortfallError
from tests.scenarios.fault_points import fault_points
from tests.scenarios.split import split
from tests.scenarios.wipe import wipe
from tests.servers.cluster import Store
from tests.servers.mortal_broker import Point

WORKS_AGAIN_P50_S = 1.0
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


def prove_fault_points(short: bool) -> Figures:
    """Brokers die by SIGKILL at each step of the commit path, sealing, epochs and checkpoints."""
    if short:
        return fault_points(Store.FILE, SHORT_POINTS, 1).as_json()
    return fault_points(Store.FILE, list(Point), 1).as_json()


RECOVERY_TARGETS: dict[str, Callable[[bool], Figures]] = {
    "wipe": prove_wipe,
    "split": prove_split,
    "faultpoints": prove_fault_points,
}
