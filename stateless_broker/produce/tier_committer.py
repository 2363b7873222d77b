"""The committer of entries about tiers: the part of the intake that duties and handlers use."""

from typing import Protocol

from bucketlog.metadata.facts import TierFact
from bucketlog.metadata.sequencer.requests import FactStatus, WantedTierEntry


class TierCommitter(Protocol):
    async def commit_fact(self, fact: TierFact, wanted: WantedTierEntry) -> FactStatus: ...
