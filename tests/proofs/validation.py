"""The claim about accepted batches; a target of `tests.proofs`."""

import tempfile
from collections.abc import Callable
from pathlib import Path

from bucketlog.embedded.cluster import EmbeddedCluster
from tests.proofs.benchmarks import run_benchmark
from tests.proofs.shortfall import Figures, ShortfallError
from tests.scenarios.validation import validation

CPU_S_PER_GB_MAX = 0.5
"""The limit for the check, with uncompressed records of 1 KB."""


def prove_validation(short: bool) -> Figures:
    """Kafka's clients and replay can read all accepted batches among mutated ones."""
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
