"""The claim about the SDK's own cost; a target of `tests.prove`."""

from collections.abc import Callable

from tests.prove_benchmarks import run_benchmark
from tests.shortfall import Figures, ShortfallError


def prove_sdk(short: bool) -> Figures:
    """100 B records by the SDK beside plain confluent-kafka, and asyncio beside plain calls."""
    size = ("--records", "20000", "--rounds", "1") if short else ("--limits",)
    figures = run_benchmark("sdk", *size)
    if figures["shortfalls"]:
        raise ShortfallError("; ".join(figures["shortfalls"]), figures)
    return figures


SDK_TARGETS: dict[str, Callable[[bool], Figures]] = {"sdk": prove_sdk}
