"""The project's claims, one target each, at the size they are claimed for.

    make prove                     all of them, in order
    make prove WHAT=crash          one
    make prove ARGS=--short        small sizes, as CI runs them
    make prove ARGS="--short --minutes 30"   in an order of this commit's; begins none after that

Each prints its figures last, as one JSON line, and the exit code is 1 where one falls short. What
they say and their latest figures stand in docs/proof.md.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from random import Random

from bucketlog.embedded.cluster import EmbeddedCluster
from bucketlog.tiered_storage.backends.location import open_sync_bucket
from localstack.machine import machine
from tests.proofs.availability import AVAILABILITY_TARGETS
from tests.proofs.benchmarks import FILE_TARGETS, STORE_TARGETS
from tests.proofs.chaos import CHAOS_TARGETS
from tests.proofs.cli import CLI_TARGETS
from tests.proofs.cluster import CLUSTER_TARGETS
from tests.proofs.compat import COMPAT_TARGETS
from tests.proofs.console import CONSOLE_TARGETS
from tests.proofs.copy import COPY_TARGETS
from tests.proofs.deployment import DEPLOYMENT_TARGETS
from tests.proofs.differential import DIFFERENTIAL_TARGETS
from tests.proofs.docs import DOCS_TARGETS
from tests.proofs.encryption import ENCRYPTION_TARGETS
from tests.proofs.front_door import FRONT_DOOR_TARGETS
from tests.proofs.groups import GROUP_TARGETS
from tests.proofs.hostile import HOSTILE_TARGETS
from tests.proofs.lake import LAKE_TARGETS
from tests.proofs.limit import SHORT_FORM_S, time_limit
from tests.proofs.mirror import MIRROR_TARGETS
from tests.proofs.neighbours import NEIGHBOUR_TARGETS
from tests.proofs.newcomer import NEWCOMER_TARGETS
from tests.proofs.own_process import in_own_process
from tests.proofs.progress import tell
from tests.proofs.quotas import QUOTA_TARGETS
from tests.proofs.recovery import RECOVERY_TARGETS
from tests.proofs.sdk import SDK_TARGETS
from tests.proofs.security import SECURITY_TARGETS
from tests.proofs.shortfall import Figures, ShortfallError
from tests.proofs.simulation import SIMULATION_TARGETS
from tests.proofs.spark import SPARK_TARGETS
from tests.proofs.tenants import TENANT_TARGETS
from tests.proofs.tier import TIER_TARGETS
from tests.proofs.transactions import TRANSACTION_TARGETS
from tests.proofs.validation import VALIDATION_TARGETS
from tests.proofs.wheel import WHEEL_TARGETS
from tests.scenarios.clients import CLIENTS
from tests.scenarios.crash import crash
from tests.scenarios.flips import undetected
from tests.scenarios.round_trip import all_trips, make_rows, make_trip, stored_differences
from tests.scenarios.stored import stored_batches

ROOT = Path(__file__).parents[2]
ALL_FLIGHTS = 336_776
EXIT_TERMINATED = 143


def run(command: list[str], *, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    """Its standard output; raises `ShortfallError` where it fails."""
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, cwd=cwd, env=env)
    if done.returncode:
        tail = done.stdout.splitlines()[-20:]
        raise ShortfallError(
            f"{' '.join(command)} ended with {done.returncode}", {"output_tail": tail}
        )
    return done.stdout


def last_json(output: str) -> Figures:
    found: Figures = json.loads(output.strip().splitlines()[-1])
    return found


def bucketlog(*arguments: str) -> list[str]:
    return [str(Path(sys.executable).with_name("bucketlog")), *arguments]


@contextmanager
def temporary_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="bucketlog-prove-") as folder:
        yield Path(folder)


def check_demo(figures: Figures, flights: int) -> Figures:
    counts = [figures.get(word) for word in ("produced", "consumed", "replayed")]
    if counts != [flights] * 3:
        raise ShortfallError(f"produced, consumed, replayed: {counts}, not {flights}", figures)
    return figures


def prove_demo(short: bool) -> Figures:
    """All flights produced, consumed and replayed from the bucket; then every byte verified."""
    flights = 20_000 if short else ALL_FLIGHTS
    with temporary_folder() as folder:
        extra = ["--flights", str(flights)] if short else []
        figures = last_json(run(bucketlog("demo", "--data", str(folder), *extra)))
        check_demo(figures, flights)
        url = f"file://{folder}/bucket"
        figures["verified"] = json.loads(run(bucketlog("segment", "verify", url, "-o", "json")))
    return figures


def prove_damage(short: bool) -> Figures:
    """Every flipped bit in the demo's bucket is found, and its object named."""
    count = 40 if short else 1000
    with temporary_folder() as folder:
        run(bucketlog("demo", "--data", str(folder), "--flights", "20000", "--no-spark"))
        missed = undetected(folder / "bucket", count, seed=3)
    figures = {"flips": count, "missed": len(missed)}
    if missed:
        raise ShortfallError("; ".join(missed[:5]), figures)
    return figures


def prove_clients(short: bool) -> Figures:
    """Four clients, every codec, with and without idempotence; each topic read by all four."""
    count = 2_000 if short else 100_000
    rows = make_rows(count, seed=1)
    problems: list[str] = []
    trips = all_trips()
    with temporary_folder() as folder, EmbeddedCluster(folder) as cluster:
        for trip in trips:
            tell(f"  {trip.topic}")
            problems += make_trip(cluster.bootstrap, trip, rows, list(CLIENTS))
        bucket = open_sync_bucket(cluster.bucket_url)
        stored = stored_batches(bucket)
        bucket.close()
    for trip in trips:
        problems += [
            f"{trip.topic}, stored: {text}"
            for text in stored_differences(trip, stored[trip.topic], count)
        ]
    figures = {
        "records_each": count,
        "topics": len(trips),
        "produced": count * len(trips),
        "consumed": count * len(trips) * len(CLIENTS),
        "stored_batches_checked": sum(len(rows) for rows in stored.values()),
        "problems": len(problems),
        "clients": {client.name: client.version() for client in CLIENTS.values()},
    }
    if problems:
        raise ShortfallError("; ".join(problems[:5]), figures)
    return figures


def prove_crash(short: bool) -> Figures:
    """kill -9 of `bucketlog dev` under an idempotent load: nothing lost, moved, or twice."""
    with temporary_folder() as folder:
        return crash(folder, 2 if short else 10, records_between=2_000).as_json()


def prove_clone(short: bool) -> Figures:
    """`git clone`, `make demo` and `make test` in clean folders, without caches."""
    if short:
        return {"left_out": "the short form leaves this out: CI begins with a clean clone itself"}
    figures: Figures = {}
    for goal in ("demo", "test"):
        with temporary_folder() as folder:
            began = time.perf_counter()
            run(["git", "clone", "--quiet", str(ROOT), str(folder / "clone")])
            keep = ("HOME", "PATH", "LANG")
            environment = {name: os.environ[name] for name in keep if name in os.environ}
            environment |= {"BUCKETLOG_CACHE": str(folder / "cache"), "CI": "true"}
            environment |= {"PIP_NO_CACHE_DIR": "1"}
            output = run(["make", goal], cwd=folder / "clone", env=environment)
            if goal == "demo":
                figures["demo"] = check_demo(last_json(output), ALL_FLIGHTS)
            else:
                figures["test"] = output.strip().splitlines()[-1]
            figures[f"{goal}_seconds"] = round(time.perf_counter() - began)
    return figures


TARGETS: dict[str, Callable[[bool], Figures]] = {
    "demo": prove_demo,
    "damage": prove_damage,
    "clients": prove_clients,
    "crash": prove_crash,
    **CLI_TARGETS,
    **FILE_TARGETS,
    **CLUSTER_TARGETS,
    **AVAILABILITY_TARGETS,
    **CHAOS_TARGETS,
    **DEPLOYMENT_TARGETS,
    **CONSOLE_TARGETS,
    **DOCS_TARGETS,
    **COPY_TARGETS,
    **GROUP_TARGETS,
    **SIMULATION_TARGETS,
    **HOSTILE_TARGETS,
    **SECURITY_TARGETS,
    **QUOTA_TARGETS,
    **DIFFERENTIAL_TARGETS,
    **MIRROR_TARGETS,
    **TENANT_TARGETS,
    **ENCRYPTION_TARGETS,
    **RECOVERY_TARGETS,
    **TRANSACTION_TARGETS,
    **COMPAT_TARGETS,
    **TIER_TARGETS,
    **VALIDATION_TARGETS,
    **SPARK_TARGETS,
    **LAKE_TARGETS,
    **STORE_TARGETS,
    **SDK_TARGETS,
    **NEWCOMER_TARGETS,
    **WHEEL_TARGETS,
    **NEIGHBOUR_TARGETS,
    **FRONT_DOOR_TARGETS,
    "clone": prove_clone,
}


IN_TESTS = {
    "clients": "tests/compat/test_round_trip.py",
    "fuzz": "tests/integration/test_fuzz.py",
    "crash": "tests/integration/test_crash.py",
    "mixed-group": "tests/compat/test_groups.py",
    "coordinator": "tests/integration/test_group_failover.py",
    "retention": "tests/integration/test_retention.py",
    "transactions": "tests/compat/test_transactional_producers.py",
    "streams-eos": "tests/compat/test_exactly_once_streams.py",
    "spark-damage": "tests/unit/test_spark_damage.py",
    "ingest": "tests/spark/test_ingest*.py",
    "dashboard": "tests/infra/test_observability.py",
    "infra": "tests/infra",
}
"""Claims whose short form is a test that runs anyway: `--short` runs them only where named."""
OPEN: dict[str, str] = {}
"""Claims that do not hold yet: `--short` runs them only where named, and says why."""


def _place_of(error: AssertionError) -> str:
    """The last line of an assertion without a text."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(frame.filename).name}:{frame.lineno}: {frame.line}"


def prove(name: str, short: bool) -> Figures:
    tell(f"{name}: {(TARGETS[name].__doc__ or '').splitlines()[0]}")
    began = time.perf_counter()
    result: Figures = {"target": name, "size": "short" if short else "full", "holds": True}
    try:
        with time_limit(SHORT_FORM_S) if short else nullcontext():
            result["figures"] = TARGETS[name](short)
    except ShortfallError as error:
        result |= {"holds": False, "reason": str(error), "figures": error.figures}
    except AssertionError as error:
        result |= {"holds": False, "reason": str(error) or _place_of(error)}
    result["seconds"] = round(time.perf_counter() - began, 1)
    tell(f"{name}: {'holds' if result['holds'] else 'FALLS SHORT: ' + result['reason']}")
    return result


def _proved(name: str, short: bool) -> Figures:
    """Prove a target in a separate process. If this process fails, the claim does not hold."""
    try:
        return in_own_process(lambda: prove(name, short))
    except RuntimeError as error:
        tell(f"{name}: FALLS SHORT: {error}")
        size = "short" if short else "full"
        return {"target": name, "size": size, "holds": False, "reason": str(error)}


def prove_in_time(
    wanted: list[str], *, short: bool, minutes: float | None
) -> tuple[list[Figures], list[str]]:
    """Prove the targets until `minutes` are over, if there is such a bound.

    With a bound, the order is drawn from the commit, so that each target is run for some commits
    on slow machines, too.

    Returns:
        The results, and the names of the targets that were not run.
    """
    if minutes is None:
        return [_proved(name, short) for name in wanted], []
    left = list(wanted)
    Random(run(["git", "rev-parse", "HEAD"], cwd=ROOT)).shuffle(left)
    ends_s = time.monotonic() + 60 * minutes
    results = []
    while left and time.monotonic() < ends_s:
        results.append(_proved(left.pop(), short))
    return results, sorted(left)


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(EXIT_TERMINATED))  # leave no process behind
    parser = argparse.ArgumentParser(prog="make prove", description="Prove the project's claims.")
    parser.add_argument("what", nargs="*", help=f"of {', '.join(TARGETS)}; default: all")
    parser.add_argument("--short", action="store_true", help="small sizes")
    parser.add_argument(
        "--minutes",
        type=float,
        help="begin no target after this time, in minutes (the order depends on the commit)",
    )
    args = parser.parse_args()
    unknown = set(args.what) - set(TARGETS)
    if unknown:
        parser.error(f"unknown target {', '.join(unknown)}; there are {', '.join(TARGETS)}")
    if shutil.which("kcat") is None and {"clients", "across", "logins"} & set(args.what or TARGETS):
        parser.error("kcat is missing: apt-get install kcat, or your system's package")
    wanted = args.what or [
        name for name in TARGETS if not (args.short and name in {**IN_TESTS, **OPEN})
    ]
    if args.short and not args.what:
        for name, reason in OPEN.items():
            tell(f"{name}: left out, does not hold yet: {reason}")
    results, left_out = prove_in_time(wanted, short=args.short, minutes=args.minutes)
    for name in left_out:
        tell(f"{name}: NOT RUN: it would have begun after {args.minutes:g} minutes")
    for result in results:
        print(json.dumps(result | {"machine": machine()}), flush=True)
    return 0 if all(result["holds"] for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
