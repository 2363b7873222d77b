"""The claim about encrypted topics; a target of `tests.proofs`."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.proofs.progress import tell
from tests.proofs.shortfall import Figures, ShortfallError
from tests.scenarios.encryption import encryption


def prove_encryption(short: bool) -> Figures:
    """Replay, Spark and consumers read an encrypted topic with its key, and not without it."""
    tell("| reader | result |")
    with TemporaryDirectory(prefix="bucketlog-encryption-") as folder:
        found = encryption(
            5_000 if short else 1_000_000,
            lambda reader, result: tell(f"| {reader} | {result} |"),
            Path(folder),
        )
    figures: Figures = asdict(found)
    if found.problems:
        raise ShortfallError("; ".join(found.problems), figures)
    return figures


ENCRYPTION_TARGETS: dict[str, Callable[[bool], Figures]] = {"encryption": prove_encryption}
