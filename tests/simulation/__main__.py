"""`make sim SEED=7`, `make sim SEEDS=1000`: runs of the simulation, and their figures as JSON."""

import argparse
import json
import os
import sys
from dataclasses import replace

from tests.simulation.figures import Tally
from tests.simulation.hunting import hunt_all, hunt_known
from tests.simulation.mutants import MUTANTS
from tests.simulation.run import Outcome
from tests.simulation.seeds import Case, run_cases
from tests.simulation.world import Sizes

TAIL_LINES = 60
JOBS = (os.cpu_count() or 1) + 1
"""Each waits for its Redis now and then."""


def tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def report(outcome: Outcome, mutant: str | None) -> None:
    tell("\n".join(outcome.tail[-TAIL_LINES:]))
    tell(f"seed {outcome.seed}: {outcome.violation}")
    extra = f" ARGS='--mutant {mutant}'" if mutant is not None else ""
    tell(f"again: make sim SEED={outcome.seed}{extra}; all of it with --everything in ARGS")


def hunted(args: argparse.Namespace) -> int:
    missed = []
    again = args.mutants == "again"
    catches = hunt_known(jobs=args.jobs) if again else hunt_all(args.seeds, jobs=args.jobs)
    for catch in catches:
        print(json.dumps(catch._asdict()), flush=True)
        if catch.seed is None:
            missed.append(catch.mutant)
    print(json.dumps({"missed": missed}))
    return 1 if missed else 0


def simulated(args: argparse.Namespace) -> int:
    seeds = [args.seed] if args.seed is not None else range(args.first, args.first + args.seeds)
    sizes = replace(Sizes(), prepared_jobs=args.prepared)
    if args.batches is not None:
        sizes = replace(sizes, batches_each=args.batches)
    cases = [Case(seed, args.mutant) for seed in seeds]
    tally = Tally()
    for _, outcome in run_cases(cases, jobs=args.jobs, sizes=sizes, everything=args.everything):
        tally.add(outcome)
        if args.everything:
            print("\n".join(outcome.tail))
        if outcome.violation is not None:
            report(outcome, args.mutant)
    print(json.dumps(tally.as_json()))
    return 1 if tally.failed else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="make sim", description=__doc__)
    parser.add_argument("--seed", type=int, help="this one alone")
    parser.add_argument("--seeds", type=int, default=100, help="so many")
    parser.add_argument("--first", type=int, default=0, help="from this one on")
    parser.add_argument("--jobs", type=int, default=JOBS, help="so many at once")
    parser.add_argument("--batches", type=int, help="so many of each producer")
    parser.add_argument("--prepared", type=int, default=0, help="copy jobs with two-phase commit")
    parser.add_argument("--everything", action="store_true", help="print the whole trace")
    parser.add_argument("--mutant", choices=MUTANTS, metavar="RULE", help="with this rule broken")
    parser.add_argument(
        "--mutants",
        choices=("all", "again"),
        help="hunt all, or see whether the same seeds catch them",
    )
    args = parser.parse_args()
    return hunted(args) if args.mutants is not None else simulated(args)


if __name__ == "__main__":
    sys.exit(main())
