"""What many runs come to, as figures."""

import time
from collections import Counter
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from tests.simulation.run import Outcome

FAULT = "fault: "
EXPECTED = (
    "tier: split",
    "tier: split that did not count",
    "tier: merge",
    "tier: manifest",
    "tier: trim",
    "tier: keys compacted",
    "tier: log starts moved",
    "tier: swept",
    "tier: object deleted",
    "tier: orphan deleted",
    "tier: a fault in the middle of a job",
    "log start: a consumer was below it",
)
"""Events without which the checks of tiers and log starts would check nothing."""


@dataclass
class Tally:
    began: float = field(default_factory=time.perf_counter)
    events: Counter[str] = field(default_factory=Counter)
    digests: dict[int, str] = field(default_factory=dict)
    failed: dict[int, str] = field(default_factory=dict)
    batches: list[int] = field(default_factory=list)
    faults: list[int] = field(default_factory=list)
    cpu_s: float = 0.0

    def add(self, outcome: Outcome) -> None:
        self.events.update(outcome.events)
        self.digests[outcome.seed] = outcome.digest
        self.cpu_s += outcome.cpu_s
        self.batches.append(outcome.batches)
        self.faults.append(
            sum(count for event, count in outcome.events.items() if event.startswith(FAULT))
        )
        if outcome.violation is not None:
            self.failed[outcome.seed] = outcome.violation

    def missing(self) -> list[str]:
        """The events that have not happened, although many seeds should have them."""
        missing = [event for event in EXPECTED if not self.events[event]]
        if not 0 < self.events["keys: records left"] < self.events["keys: records written"]:
            missing.append("keys: records left")
        return missing

    def as_json(self) -> dict[str, Any]:
        """Faults by kind, and what else happened."""
        seeds = len(self.digests)
        kinds = {e.removeprefix(FAULT): n for e, n in self.events.items() if e.startswith(FAULT)}
        others = {e: n for e, n in self.events.items() if not e.startswith(FAULT)}
        return {
            "seeds": seeds,
            "failed": sorted(self.failed),
            "batches": sum(self.batches),
            "batches_least": min(self.batches, default=0),
            "faults": sum(self.faults),
            "faults_least": min(self.faults, default=0),
            "faults_by_kind": dict(sorted(kinds.items())),
            "events": dict(sorted(others.items())),
            "cpu_s_per_seed": round(self.cpu_s / max(1, seeds), 2),
            "seconds": round(time.perf_counter() - self.began, 1),
            "digest": self._digest(),
            "digests": {str(seed): text for seed, text in sorted(self.digests.items())},
        }

    def _digest(self) -> str:
        """Of one run what its trace comes to; of many what their digests do, by seed."""
        if len(self.digests) == 1:
            return next(iter(self.digests.values()))
        told = "".join(f"{seed}:{digest} " for seed, digest in sorted(self.digests.items()))
        return blake2b(told.encode(), digest_size=16).hexdigest()
