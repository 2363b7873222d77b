"""Hunting mutants: does the simulation catch each of them, and how soon?"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tests.simulation.mutants import MUTANTS
from tests.simulation.seeds import Case, run_cases


class Catch(NamedTuple):
    """`seed` is the one that caught it, None where none of `tried` did."""

    mutant: str
    seed: int | None
    tried: int
    violation: str


def hunt(name: str, seeds: Sequence[int], *, jobs: int = 1) -> Catch:
    """The first that catches it."""
    tried = 0
    for case, outcome in run_cases([Case(seed, name) for seed in seeds], jobs=jobs):
        tried += 1
        if outcome.violation is not None:
            return Catch(name, case.seed, tried, outcome.violation)
    return Catch(name, None, tried, "")


def hunt_all(seeds: int, *, jobs: int = 1) -> Iterator[Catch]:
    for name in MUTANTS:
        yield hunt(name, range(seeds), jobs=jobs)


def hunt_known(*, jobs: int = 1) -> Iterator[Catch]:
    """Each by the seed alone that is known to catch it."""
    cases = [Case(mutant.seed, name) for name, mutant in MUTANTS.items() if mutant.seed is not None]
    for case, outcome in run_cases(cases, jobs=jobs):
        assert case.mutant is not None
        seed = case.seed if outcome.violation is not None else None
        yield Catch(case.mutant, seed, 1, outcome.violation or "")
