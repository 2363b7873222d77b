"""The claims about whole deployments on one machine; targets of `tests.proofs`."""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from bucketlog.embedded.folder import is_alive
from localstack.keeper import FILE, STORES, Deployment
from localstack.up import down, up
from tests.proofs.shortfall import Figures, ShortfallError
from tests.scenarios.observed import WITHOUT_DATA, observed

FLIGHTS = 336_776
ROOT = Path(__file__).parents[2]
INSTALL = ROOT / "scripts/install.sh"


def prove_up(short: bool) -> Figures:
    """The main job on a deployment on each store; then nothing of it is left running."""
    found: Figures = {}
    for store in STORES:
        if short and store == FILE:
            continue  # tests do
        with tempfile.TemporaryDirectory(prefix="bucketlog-up-") as folder:
            data = Path(folder)
            deployment = up(store, data, 0)
            try:
                found[store] = _main_job(deployment, 5_000 if short else FLIGHTS, spark=not short)
            finally:
                down(data)
            left = [name for name, pid in deployment.pids.items() if is_alive(pid)]
        if left:
            raise ShortfallError(f"on {store}, these are left running: {left}", found)
    return found


def _main_job(deployment: Deployment, flights: int, *, spark: bool) -> Figures:
    done = subprocess.run(
        [
            *(str(Path(sys.executable).with_name("bucketlog")), "demo"),
            *("--bootstrap", deployment.bootstrap, "--bucket", deployment.bucket_url),
            *("--flights", str(flights), "--spark" if spark else "--no-spark"),
        ],
        env={**os.environ, **deployment.environment},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        raise ShortfallError(f"the demo ended with {done.returncode}", {"output_tail": lines[-20:]})
    figures: Figures = json.loads(lines[-1])
    counts = [figures["produced"], figures["consumed"], figures["replayed"] if spark else flights]
    if counts != [flights] * 3 or figures["mismatches"]:
        raise ShortfallError(f"produced, consumed, replayed: {counts}, not {flights}", figures)
    return figures


def prove_dashboard(short: bool) -> Figures:
    """Every query of the dashboard and of each alert gives data, of brokers at work."""
    asked = subprocess.run(
        [str(INSTALL), "--where", "prometheus"], stdout=subprocess.PIPE, text=True, check=False
    )
    if asked.returncode:
        raise ShortfallError("prometheus is missing: scripts/install.sh prometheus", {})
    with tempfile.TemporaryDirectory(prefix="bucketlog-observed-") as folder:
        program = Path(asked.stdout.strip())
        found = observed(program, Path(folder), seconds=6 if short else 60)
    figures = {
        "queries": len(found),
        "empty": [name for name, rows in found.items() if not rows and name not in WITHOUT_DATA],
    }
    if figures["empty"]:
        raise ShortfallError(f"these give nothing: {figures['empty']}", figures)
    return figures


def prove_infra(short: bool) -> Figures:
    """Terraform plans and applies every module; a broker needs no right but those that it is given.

    And the Helm chart fits Kubernetes' schemas; planted faults are found. One size."""
    files = sorted((ROOT / "tests/infra").glob("test_*.py"))
    mine = [str(file) for file in files if file.name != "test_observability.py"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *mine],
        env={**os.environ, "CI": "true"},  # nothing may be missing
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    lines = done.stdout.splitlines()
    used = dict(line.split(": ", 1) for line in lines if re.fullmatch(r"[\w' ]+: \S.*", line))
    counted = re.findall(r"(\d+) passed", lines[-1] if lines else "")
    figures: Figures = {"passed": int(counted[0]) if counted else 0, "by": used}
    if done.returncode or not figures["passed"]:
        raise ShortfallError("tests/infra fails", figures | {"output_tail": lines[-20:]})
    return figures


DEPLOYMENT_TARGETS: dict[str, Callable[[bool], Figures]] = {
    "up": prove_up,
    "dashboard": prove_dashboard,
    "infra": prove_infra,
}
