"""Who brings entries about tiers into the log: what duties and handlers ask of the intake."""

from typing import Protocol

from metadata.facts import TierFact
from metadata.sequencer.requests import ControlStatus, WantedTierEntry


class TierCommitter(Protocol):
    async def commit_fact(self, fact: TierFact, wanted: WantedTierEntry) -> ControlStatus: ...
