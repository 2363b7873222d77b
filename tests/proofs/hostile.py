"""The claims about hostile clients; targets of `tests.proofs`.

`python -m tests.proofs.hostile NAME ...` measures the named attacks.
"""

import json
import sys
from collections.abc import Callable, Sequence

from tests.fuzz.judge import FuzzFailureError
from tests.fuzz.run import MEMORY_GROWN_MIB_MAX, fuzz, fuzz_cluster
from tests.proofs.shortfall import Figures, ShortfallError
from tests.scenarios.attack import Row, run_row
from tests.scenarios.attack_connections import CONNECTION_ROWS
from tests.scenarios.attack_requests import REQUEST_ROWS
from tests.scenarios.attack_state import STATE_ROWS

SEED = 7
ATTACK_ROWS = (*REQUEST_ROWS, *CONNECTION_ROWS, *STATE_ROWS)
SHORT_ROWS = ("unreadable-records", "latest-timestamp", "12-announced-frames")


def prove_fuzz(short: bool) -> Figures:
    """1,000,000 requests of all APIs, valid and mutated: they are answered or refused, and other
    clients are served."""
    with fuzz_cluster() as cluster:
        try:
            figures = fuzz(cluster, 20_000 if short else 1_000_000, seed=SEED)
        except FuzzFailureError as error:
            raise ShortfallError(str(error), {}) from error
    if figures.memory_grown_mib > MEMORY_GROWN_MIB_MAX:
        grown = f"memory grew by {figures.memory_grown_mib:.0f} MiB"
        raise ShortfallError(f"{grown}, at most {MEMORY_GROWN_MIB_MAX} wanted", figures.as_json())
    return figures.as_json()


def attack(rows: Sequence[Row], *, short: bool = False) -> Figures:
    """Run the rows and print the figures of each. Raises `ShortfallError` if a row has problems."""
    found: list[Figures] = []
    for row in rows:
        try:
            figures = run_row(row, short=short)
        except AssertionError as error:
            figures = {"row": row.name, "problems": [str(error)[:500]]}
        found.append(figures)
        print(json.dumps(figures), file=sys.stderr, flush=True)
    figures = {each.pop("row"): each for each in found}
    bad = {name: each["problems"] for name, each in figures.items() if each["problems"]}
    if bad:
        raise ShortfallError("; ".join(f"{name}: {text}" for name, text in bad.items()), figures)
    return figures


def prove_attack(short: bool) -> Figures:
    """Hostile clients: others are served, memory is bounded, brokers keep their roles."""
    rows = [row for row in ATTACK_ROWS if not short or row.name in SHORT_ROWS]
    return attack(rows, short=short)


HOSTILE_TARGETS: dict[str, Callable[[bool], Figures]] = {
    "attack": prove_attack,
    "fuzz": prove_fuzz,
}


def main() -> int:
    known = {row.name: row for row in ATTACK_ROWS}
    if not sys.argv[1:] or not set(sys.argv[1:]) <= known.keys():
        print(f"name rows of: {', '.join(known)}", file=sys.stderr)
        return 2
    try:
        attack([known[name] for name in sys.argv[1:]])
    except ShortfallError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
