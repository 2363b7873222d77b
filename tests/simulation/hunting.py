"""Hunting mutants: does the simulation catch each of them, and how soon?"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tests.simulation.mutants import MUTANTS
from tests.simulation.seeds import run_seeds


class Catch(NamedTuple):
    """`seed` is the one that caught it, None where none of `tried` did."""

    mutant: str
    seed: int | None
    tried: int
    violation: str


def hunt(name: str, seeds: Sequence[int], *, jobs: int = 1) -> Catch:
    """The first catch, by seed where they run one after the other."""
    tried = 0
    for outcome in run_seeds(seeds, jobs=jobs, mutant=MUTANTS[name]):
        tried += 1
        if outcome.violation is not None:
            return Catch(name, outcome.seed, tried, outcome.violation)
    return Catch(name, None, tried, "")


def hunt_all(seeds: int, *, jobs: int = 1, known_only: bool = False) -> Iterator[Catch]:
    """All mutants that are to be caught; with `known_only` by the seed alone that is known to."""
    for name, mutant in MUTANTS.items():
        if known_only and mutant.seed is not None:
            yield hunt(name, [mutant.seed])
        elif not known_only:
            yield hunt(name, range(seeds), jobs=jobs)
