"""The claim about `make test`: it passes ten times, in any order, on a quiet or a busy machine. A
target of `tests.proofs`.

The clone is inside a folder with foreign packages that are named like our folders. Each round
prints its result when it ends, because all rounds together take hours.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.models.repository import ROOMS, ROOT
from tests.proofs.shortfall import Figures, ShortfallError

ROUNDS_EACH = 5
BUSY_PROCESSES = 8
SPIN = "while True: pass"


def prove_front_door(short: bool) -> Figures:
    """`make test` five times in random order, five times beside eight CPU-bound processes."""
    if short:
        return {"left_out": "the short form leaves this out: CI runs `make test` itself"}
    with tempfile.TemporaryDirectory(prefix="bucketlog-front-door-") as name:
        folder = Path(name)
        clone = clone_among_strangers(folder)
        rounds = [run_round(clone, folder, "random order", seed) for seed in range(ROUNDS_EACH)]
        with cpu_bound(BUSY_PROCESSES):
            rounds += [run_round(clone, folder, "busy", None) for _ in range(ROUNDS_EACH)]
        began = time.monotonic()
        ci = make(["bash", ".ci/run"], clone, folder)
        figures: Figures = {
            "rounds": rounds,
            "ci_run_s": round(time.monotonic() - began),
            "ci_run_exit_code": ci.returncode,
            "temporary_mib_left": megabytes(folder / "tmp"),
        }
    red = [one for one in rounds if one["exit_code"]]
    if red or ci.returncode:
        raise ShortfallError(f"{len(red)} of {len(rounds)} rounds failed", figures)
    return figures


def clone_among_strangers(folder: Path) -> Path:
    """A clone of the newest commit, in a folder whose packages must never be imported."""
    for name in ROOMS:
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text("raise RuntimeError('not ours')\n")
    (folder / "tmp").mkdir()
    clone = folder / "bucketlog"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    return clone


def run_round(clone: Path, folder: Path, kind: str, seed: int | None) -> Figures:
    """One `make test`; `seconds` counts the installation in the first round."""
    order = "" if seed is None else f"--random-order --random-order-seed={seed}"
    began = time.monotonic()
    done = make(["make", "test", f"ARGS={order}"], clone, folder)
    lines = [line for line in done.stdout.splitlines() if line.strip()]
    found: Figures = {
        "kind": kind,
        "seed": seed,
        "exit_code": done.returncode,
        "seconds": round(time.monotonic() - began),
        "said": lines[-1] if lines else "",
        "failed": [line for line in lines if line.startswith(("FAILED", "ERROR"))],
    }
    print(found, file=sys.stderr, flush=True)
    return found


def make(command: list[str], clone: Path, folder: Path) -> "subprocess.CompletedProcess[str]":
    environment = os.environ | {"CI": "true", "TMPDIR": str(folder / "tmp")}
    return subprocess.run(
        command, cwd=clone, env=environment, stdout=subprocess.PIPE, text=True, check=False
    )


@contextmanager
def cpu_bound(count: int) -> Iterator[None]:
    """Processes that do nothing but use a core."""
    running = [subprocess.Popen([sys.executable, "-c", SPIN]) for _ in range(count)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def megabytes(folder: Path) -> float:
    sizes = (path.lstat().st_size for path in folder.rglob("*") if path.is_file())
    return round(sum(sizes) / 1_000_000, 1)


FRONT_DOOR_TARGETS: dict[str, Callable[[bool], Figures]] = {"front-door": prove_front_door}
