"""Mutants hunted: for each the first seed that catches it."""

import argparse
import json
import time

from tests.simulation.mutants import MUTANTS
from tests.simulation.seeds import run_seeds


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args()
    for name in args.names or MUTANTS:
        began = time.perf_counter()
        found = None
        tried = 0
        for outcome in run_seeds(range(args.seeds), jobs=args.jobs, mutant=MUTANTS[name]):
            tried += 1
            if outcome.violation is not None:
                found = outcome
                break
        row = {"mutant": name, "tried": tried, "s": round(time.perf_counter() - began)}
        if found is not None:
            row |= {"seed": found.seed, "violation": (found.violation or "")[:150]}
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
