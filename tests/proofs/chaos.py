"""The claims about chaos and about hours of churn: targets of `tests.proofs`."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.models.flatness import HOUR_S, growing
from tests.models.pauses import Pauses, figures
from tests.proofs.progress import tell
from tests.proofs.shortfall import Figures, ShortfallError
from tests.scenarios.chaos import ChaosOptions, ChaosResult, chaos
from tests.scenarios.chaos_breaks import reported
from tests.scenarios.soak import soak
from tests.servers.broken_rules import BROKEN_RULES
from tests.servers.cluster import Store

SEEDS, MINUTES = range(1, 11), 10.0
SHORT_SECONDS = 40.0
SHORT_BREAK = "stale-end"
SOAK_HOURS = 2.0
SHORT_SOAK_S = 40.0


def prove_chaos(short: bool) -> Figures:
    """Faults of all kinds by a plan, under clients of three libraries: no promise is broken. Five
    rules of the brokers, broken on purpose, are reported. The short form has one seed on a folder
    and one broken rule."""
    seconds, seeds = (SHORT_SECONDS, [1]) if short else (60 * MINUTES, list(SEEDS))
    store = Store.FILE if short else Store.MINIO
    pauses: dict[str, list[Pauses]] = {}
    runs: list[Figures] = []
    with TemporaryDirectory(prefix="bucketlog-chaos-") as folder:
        for seed in seeds:
            where = Path(folder) / f"seed-{seed}"
            found = chaos(ChaosOptions(where, seconds, seed, store, java=not short), tell)
            runs.append(found.as_json() | {"pauses": {}})
            for name, mine in found.pauses.items():
                pauses.setdefault(name, []).extend(mine)
            _check(found, runs)
        breaks = {
            name: sorted(reported(name, Path(folder), tell))
            for name in BROKEN_RULES
            if not short or name == SHORT_BREAK
        }
    by_fault = {name: figures(mine) for name, mine in sorted(pauses.items())}
    return {"runs": runs, "reported_breaks": breaks, "pauses": by_fault}


def _check(found: ChaosResult, runs: list[Figures]) -> None:
    if not found.holds:
        texts = [*map(str, found.broken[:5]), *found.problems]
        raise ShortfallError("; ".join(texts), {"runs": runs})


def prove_soak(short: bool) -> Figures:
    """Two hours in which producers, groups, topics, connections and a broker come and go: memory,
    descriptors, threads, objects and Redis' keys do not grow. The short form only counts."""
    found = soak(SHORT_SOAK_S if short else SOAK_HOURS * HOUR_S, lambda line: None)
    problems = growing(found.samples.growth())
    if problems and not short:
        raise ShortfallError("; ".join(problems), found.as_json())
    return found.as_json()


CHAOS_TARGETS: dict[str, Callable[[bool], Figures]] = {"chaos": prove_chaos, "soak": prove_soak}
