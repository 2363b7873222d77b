"""The claim about moving from Apache Kafka; a target of `tests.proofs`."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.proofs.progress import tell
from tests.proofs.shortfall import Figures
from tests.scenarios.mirror_move import MoveSizes, mirror_move

SHORT = MoveSizes(topics=3, groups=3, records_before=2000, load_s=3, kill_every_s=1.5, pause_s=0.02)
FULL = MoveSizes(
    topics=20,
    groups=20,
    records_before=5_000_000,
    load_s=600,
    kill_every_s=20,
    pause_s=0.0,
    step_s=3600,
)


def prove_mirror(short: bool) -> Figures:
    """Topics, live producers and groups move to bucketlog, while the mirror is killed: no record is
    lost, moved or doubled, and groups continue."""
    with TemporaryDirectory(prefix="bucketlog-prove-") as folder:
        figures = mirror_move(Path(folder), SHORT if short else FULL, tell)
    tell(figures.said)
    return asdict(figures)


MIRROR_TARGETS: dict[str, Callable[[bool], Figures]] = {"mirror": prove_mirror}
