"""`make sim SEED=7`, `make sim SEEDS=1000`: runs of the simulation, and their figures as JSON."""

import argparse
import json
import sys
import time
from collections import Counter
from dataclasses import replace

from tests.simulation.run import Outcome
from tests.simulation.seeds import run_seeds
from tests.simulation.world import Sizes

TAIL_LINES = 60


def tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def report(outcome: Outcome, *, lines: int) -> None:
    if outcome.violation is not None:
        tell("\n".join(outcome.tail[-lines:]))
        tell(f"seed {outcome.seed}: {outcome.violation}")
        tell(f"again: make sim SEED={outcome.seed}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="make sim", description=__doc__)
    parser.add_argument("--seed", type=int, help="this one alone")
    parser.add_argument("--seeds", type=int, default=100, help="so many")
    parser.add_argument("--first", type=int, default=0, help="from this one on")
    parser.add_argument("--jobs", type=int, default=1, help="so many at once")
    parser.add_argument("--batches", type=int, help="so many of each producer")
    parser.add_argument("--everything", action="store_true", help="print the whole trace")
    args = parser.parse_args()
    seeds = [args.seed] if args.seed is not None else range(args.first, args.first + args.seeds)
    sizes = Sizes() if args.batches is None else replace(Sizes(), batches_each=args.batches)
    began, events, failed, cpu_s, digests = time.perf_counter(), Counter[str](), [], 0.0, {}
    batches = 0
    for outcome in run_seeds(seeds, jobs=args.jobs, sizes=sizes, everything=args.everything):
        events.update(outcome.events)
        cpu_s += outcome.cpu_s
        batches += outcome.batches
        digests[outcome.seed] = outcome.digest
        if outcome.violation is not None:
            failed.append(outcome.seed)
        if args.everything:
            print("\n".join(outcome.tail))
        report(outcome, lines=TAIL_LINES)
    figures = {
        "seeds": len(digests),
        "failed": sorted(failed),
        "batches": batches,
        "faults": sum(count for event, count in events.items() if event.startswith("fault: ")),
        "events": dict(sorted(events.items())),
        "cpu_s_per_seed": round(cpu_s / len(digests), 2),
        "seconds": round(time.perf_counter() - began, 1),
    }
    if args.seed is not None:
        figures["digest"] = digests[args.seed]
    print(json.dumps(figures))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
