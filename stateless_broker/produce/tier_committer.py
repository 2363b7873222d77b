"""Who brings entries about tiers into the log: what duties and handlers ask of the intake."""

from typing import Protocol

from bucketlog.metadata.facts import TierFact
from bucketlog.metadata.sequencer.requests import FactStatus, WantedTierEntry


class TierCommitter(Protocol):
    async def commit_fact(self, fact: TierFact, wanted: WantedTierEntry) -> FactStatus: ...
