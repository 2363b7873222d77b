"""`python -m tests.scenarios.chaos_run`: chaos on real processes, with a picture of the run.

    make chaos MINUTES=10 SEED=7
    make chaos ARGS='--plan plan.jsonl'            the same faults again
    make chaos ARGS='--judge history.jsonl'        judge a recorded history again
    make chaos ARGS='--broken-rule no-seal'        with a rule of the brokers broken

Exits with 1 if a promise is broken.
"""

import argparse
import json
import sys
from pathlib import Path

from tests.models.fault_plan import decode_plan
from tests.models.pauses import table
from tests.models.promises import summary
from tests.scenarios.chaos import ChaosOptions, ChaosResult, chaos, judged
from tests.scenarios.chaos_breaks import plan_of
from tests.scenarios.chaos_picture import draw_chaos
from tests.servers.broken_rules import BROKEN_RULES
from tests.servers.cluster import Store

PICTURE = "run.svg"


def report(found: ChaosResult) -> str:
    lines = [json.dumps(found.as_json() | {"pauses": {}}), table(found.pauses)]
    if found.broken:
        lines.append(summary(found.broken))
    return "\n".join([*lines, *found.problems, "holds" if found.holds else "DOES NOT HOLD"])


def main() -> int:
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--store", type=Store, default=Store.MINIO, choices=list(Store))
    parser.add_argument("--folder", type=Path, default=Path("chaos"), help="for the run's files")
    parser.add_argument("--no-java", action="store_true", help="without Apache Kafka's producer")
    parser.add_argument("--plan", type=Path, help="replay the plan in this file")
    parser.add_argument("--judge", type=Path, help="judge the history in this file")
    parser.add_argument("--broken-rule", choices=BROKEN_RULES)
    args = parser.parse_args()
    plan = decode_plan(args.plan.read_text()) if args.plan else None
    if args.broken_rule and plan is None:
        plan = plan_of(args.broken_rule, broker=0)
    options = ChaosOptions(
        args.folder,
        args.minutes * 60,
        args.seed,
        args.store,
        java=not args.no_java,
        plan=plan,
        broken_rule=args.broken_rule,
    )
    if args.judge:
        found = judged(args.judge, options, [])
        args.folder.mkdir(parents=True, exist_ok=True)
    else:
        found = chaos(options, lambda line: print(line, file=sys.stderr, flush=True))
    draw_chaos(found, args.folder / PICTURE)
    print(report(found))
    return 0 if found.holds else 1


if __name__ == "__main__":
    sys.exit(main())
