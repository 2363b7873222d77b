"""The claim about what a broker accepts; a target of `tests.proofs`."""

import tempfile
from collections.abc import Callable
from pathlib import Path

from bucketlog.embedded.cluster import EmbeddedCluster
from tests.proofs.benchmarks import run_benchmark
from tests.proofs.shortfall import Figures, ShortfallError
from tests.scenarios.validation import validation

CPU_S_PER_GB_MAX = 0.5
"""Of the check alone, 1 KB records without compression."""


def prove_validation(short: bool) -> Figures:
    """Mutated batches of every codec: what is accepted, Kafka's clients and replay can read."""
    with (
        tempfile.TemporaryDirectory(prefix="bucketlog-prove-") as folder,
        EmbeddedCluster(Path(folder)) as cluster,
    ):
        found = validation(cluster, 1_000 if short else 100_000, seed=1)
    figures = found.as_json()
    if found.wrong:
        raise ShortfallError("; ".join(found.wrong[:5]), figures)
    flags = ("--seconds", "0.05") if short else ("--broker", "--kafka")
    figures["cost"] = cost = run_benchmark("validation", *flags)
    spent = cost["check_cpu_s_per_gb"]["1000 B"]["none"]
    if not short and spent > CPU_S_PER_GB_MAX:
        raise ShortfallError(f"{spent} CPU s/GB, at most {CPU_S_PER_GB_MAX} wanted", figures)
    return figures


VALIDATION_TARGETS: dict[str, Callable[[bool], Figures]] = {"validation": prove_validation}
