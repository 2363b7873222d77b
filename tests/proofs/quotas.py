"""The claim about client quotas; a target of `tests.proofs`."""

from collections.abc import Callable
from dataclasses import asdict
from tempfile import TemporaryDirectory

from bucketlog.embedded.cluster import EmbeddedCluster
from tests.proofs.progress import tell
from tests.proofs.shortfall import Figures, ShortfallError
from tests.scenarios.limited_producers import limited_producers

DEVIATION_PERCENT_MAX = 5.0
SLOWER_MS_MAX = 200.0
"""How much the p99 of a client without a quota may grow."""


def prove_quotas(short: bool) -> Figures:
    """Three clients at 10 MB/s on two brokers stay within 5 % for a minute; others are not slowed.

    The short form, at 1 MB/s, checks only that no client is faster than its quota: a busy machine
    may slow all of them."""
    with (
        TemporaryDirectory(prefix="bucketlog-prove-") as folder,
        EmbeddedCluster(folder, brokers=2) as cluster,
    ):
        found = limited_producers(
            cluster.bootstrap.split(","),
            clients=3,
            quota_bytes_s=1_000_000 if short else 10_000_000,
            seconds=20 if short else 60,
        )
    tell(found.table())
    figures: Figures = asdict(found) | {"deviation_percent": found.deviation_percent}
    fastest = max(found.rates_mb_s.values())
    if fastest > found.quota_mb_s * (1 + DEVIATION_PERCENT_MAX / 100):
        raise ShortfallError(f"{fastest} MB/s, {found.quota_mb_s} are allowed", figures)
    if found.errors:
        raise ShortfallError(found.errors[0], figures)
    if short:
        return figures
    if found.deviation_percent > DEVIATION_PERCENT_MAX:
        raise ShortfallError(f"{found.deviation_percent} % from the quota", figures)
    slower_ms = found.bystander_p99_ms - found.bystander_p99_before_ms
    if slower_ms > SLOWER_MS_MAX:
        raise ShortfallError(f"a client without a quota is {slower_ms:.0f} ms slower", figures)
    return figures


QUOTA_TARGETS: dict[str, Callable[[bool], Figures]] = {"quotas": prove_quotas}
