"""The claims about any seed of the simulation; targets of `tests.proofs`."""

from collections.abc import Callable

from tests.proofs.shortfall import Figures, ShortfallError
from tests.simulation.figures import Tally
from tests.simulation.hunting import hunt_all, hunt_easy
from tests.simulation.mutants import MUTANTS
from tests.simulation.seeds import Case, run_cases

JOBS = 3
"""Of two cores: each run waits for its Redis now and then."""
SEEDS = 1_000
SEEDS_SHORT = 40
BATCHES_LEAST = 500
FAULTS_LEAST = 10


def prove_simulation(short: bool) -> Figures:
    """No seed of the simulation loses, moves, repeats or withdraws anything, or comes to rest."""
    tally = Tally()
    cases = [Case(seed) for seed in range(SEEDS_SHORT if short else SEEDS)]
    for _, outcome in run_cases(cases, jobs=JOBS):
        tally.add(outcome)
    figures = tally.as_json()
    if tally.failed:
        raise ShortfallError(f"seeds {tally.failed}: make sim SEED=<one>", figures)
    if min(tally.batches) < BATCHES_LEAST or min(tally.faults) < FAULTS_LEAST:
        raise ShortfallError("a seed has too few batches or faults", figures)
    if tally.missing():
        raise ShortfallError(f"it never happened: {', '.join(tally.missing())}", figures)
    return figures


def prove_mutants(short: bool) -> Figures:
    """Each rule of the protocol, broken, is caught within 1,000 seeds; short: those that the first
    seed catches."""
    catches = hunt_easy(jobs=JOBS) if short else hunt_all(SEEDS, jobs=JOBS)
    found = {catch.mutant: catch for catch in catches}
    figures: Figures = {
        "mutants": len(MUTANTS),
        "caught": {name: catch.seed for name, catch in found.items() if catch.seed is not None},
    }
    missed = sorted(found.keys() - figures["caught"].keys())
    if missed:
        raise ShortfallError(f"nothing catches {', '.join(missed)}", figures)
    return figures


SIMULATION_TARGETS: dict[str, Callable[[bool], Figures]] = {
    "simulation": prove_simulation,
    "mutants": prove_mutants,
}
