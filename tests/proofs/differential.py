"""The claim that answers are those of Apache Kafka; a target of `tests.proofs`."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.proofs.progress import tell
from tests.proofs.shortfall import Figures, ShortfallError
from tests.scenarios.differential import differential

SEQUENCES = 100_000
SHORT_S = 30.0
"""With the start of both brokers, the short form takes about a minute."""
SHORT_SEQUENCES = 200
FINDINGS_MAX = 20
FIRST_SEED = 1
SEEDS = "DIFFERENTIAL_SEEDS"
"""An environment variable with the first and the last seed of the full form, such as 1-30000."""


def prove_differential(short: bool) -> Figures:
    """The same random requests to Apache Kafka and to bucketlog get the same answers."""
    with TemporaryDirectory(prefix="bucketlog-prove-") as name:
        outcome = differential(Path(name), _seeds(short), lambda one: tell(str(one)), FINDINGS_MAX)
    found = outcome.found
    figures: Figures = {
        "sequences": outcome.sequences,
        "requests": outcome.steps,
        "explained": outcome.explained,
        "unexplained": [one.seed for one in found],
    }
    if found:
        raise ShortfallError(f"answers differ without a reason: {found[0]}", figures)
    return figures


def _seeds(short: bool) -> Iterator[int]:
    """The short form ends by the clock, too."""
    if not short:
        first, last = os.environ.get(SEEDS, f"{FIRST_SEED}-{SEQUENCES}").split("-")
        yield from range(int(first), int(last) + 1)
        return
    end_s = time.monotonic() + SHORT_S
    for seed in range(FIRST_SEED, FIRST_SEED + SHORT_SEQUENCES):
        if seed > FIRST_SEED and time.monotonic() > end_s:
            return
        yield seed


DIFFERENTIAL_TARGETS: dict[str, Callable[[bool], Figures]] = {"differential": prove_differential}
