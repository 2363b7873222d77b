"""The claims about old segments: what it costs to keep and read them; targets of `tests.proofs`."""

from collections.abc import Callable

from tests.proofs.shortfall import Figures, ShortfallError
from tests.scenarios.compaction import CompactionFigures, compaction
from tests.scenarios.compaction_kills import compaction_kills
from tests.scenarios.long_history import long_history
from tests.scenarios.retention import retention

REFERENCED_MAX = 600
BYTES_A_GET = 8 << 20
GETS_BESIDE = 5
START_S = 5.0


def prove_compaction(short: bool) -> Figures:
    """Small batches are compacted: few objects, few GETs, equal records; killed again and again."""
    figures = compaction(300, 20) if short else compaction(20_000, 200)
    kills = compaction_kills(300, 20, 2) if short else compaction_kills(2_000, 50, 10)
    told = {"whole": figures.as_json(), "killed": kills.as_json()}
    _check_cost(figures, told)
    return told


def _check_cost(figures: CompactionFigures, told: Figures) -> None:
    if figures.referenced >= REFERENCED_MAX:
        raise ShortfallError(
            f"{figures.referenced} objects are referenced, less than {REFERENCED_MAX} wanted", told
        )
    most = figures.partition_bytes / BYTES_A_GET + GETS_BESIDE
    for reader, gets in (("broker", figures.fetch_gets), ("bucket", figures.bucket_gets)):
        if gets > most:
            raise ShortfallError(
                f"a partition takes {gets} GETs by the {reader}, at most {most:.1f} wanted", told
            )


def prove_retention(short: bool) -> Figures:
    """Random steps on virtual time: log starts, offsets, what is read and deleted, as computed."""
    return (retention(2, 60) if short else retention(50, 200)).as_json()


def prove_history(short: bool) -> Figures:
    """A broker starts beside 1 TiB of old segments within 5 s, and reads at random old offsets."""
    figures = long_history(64, 8) if short else long_history(8_192, 1_000)
    if figures.start_s >= START_S:
        raise ShortfallError(
            f"it listens after {figures.start_s} s, less than {START_S} wanted", figures.as_json()
        )
    return figures.as_json()


TIER_TARGETS: dict[str, Callable[[bool], Figures]] = {
    "compaction": prove_compaction,
    "retention": prove_retention,
    "history": prove_history,
}
