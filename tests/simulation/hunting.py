"""Hunting mutants: does the simulation catch each of them, and how soon?"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tests.simulation.caught import CAUGHT
from tests.simulation.mutants import MUTANTS
from tests.simulation.seeds import Case, run_cases

EASY_SEED_MAX = 0
EASY_SEEDS = 30


class Catch(NamedTuple):
    """`seed` is the one that caught it, None where none of `tried` did."""

    mutant: str
    seed: int | None
    tried: int
    violation: str


def hunt(name: str, seeds: Sequence[int], *, jobs: int = 1) -> Catch:
    """The first that catches it: where it has second lines, one that is held without them."""
    tried = 0
    for case, outcome in run_cases([Case(seed, name) for seed in seeds], jobs=jobs):
        tried += 1
        if outcome.violation is not None and _holds_without_second_lines(case):
            return Catch(name, case.seed, tried, outcome.violation)
    return Catch(name, None, tried, "")


def _holds_without_second_lines(case: Case) -> bool:
    if not MUTANTS[case.mutant or ""].second_lines:
        return True
    ((_, outcome),) = run_cases([case._replace(second_lines_alone=True)])
    return outcome.violation is None


def table() -> list[str]:
    """For docs/simulation.md."""
    rows = ["| rule | mutant | caught by | first seed |", "|---|---|---|---|"]
    for name, mutant in MUTANTS.items():
        seed, rule = CAUGHT[name]
        rows.append(f"| {mutant.rule} | `{name}` | `{rule}` | {seed} |")
    return rows


def hunt_all(seeds: int, *, jobs: int = 1) -> Iterator[Catch]:
    """First the seeds that caught them before, then all from the first on."""
    yield from _hunt(seeds, list(MUTANTS), jobs=jobs)


def hunt_known(*, jobs: int = 1) -> Iterator[Catch]:
    """Try the seeds that caught the mutants before, and no others."""
    missed = dict.fromkeys(CAUGHT)
    for catch in _caught_again(list(CAUGHT), jobs=jobs):
        del missed[catch.mutant]
        yield catch
    for name in missed:
        yield Catch(name, None, 1, "")


def hunt_easy(*, jobs: int = 1) -> Iterator[Catch]:
    """Hunt the mutants that the first seed caught. A change of the product rarely alters this."""
    easy = [name for name, caught in CAUGHT.items() if caught.seed <= EASY_SEED_MAX]
    yield from _hunt(EASY_SEEDS, easy, jobs=jobs)


def _hunt(seeds: int, names: Sequence[str], *, jobs: int) -> Iterator[Catch]:
    again = set()
    for catch in _caught_again([n for n in names if CAUGHT[n].seed < seeds], jobs=jobs):
        again.add(catch.mutant)
        yield catch
    for name in names:
        if name not in again:
            yield hunt(name, range(seeds), jobs=jobs)


def _caught_again(names: Sequence[str], *, jobs: int) -> Iterator[Catch]:
    """The mutants that their known seeds catch."""
    for case, outcome in run_cases([Case(CAUGHT[name].seed, name) for name in names], jobs=jobs):
        if outcome.violation is not None and case.mutant and _holds_without_second_lines(case):
            yield Catch(case.mutant, case.seed, 1, outcome.violation)
