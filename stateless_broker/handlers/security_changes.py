"""Changes of users, rights, tokens and configs: their entries in the log, and refusals.

Invariant: a change is answered once this broker's view shows it.
"""

import asyncio
from typing import NamedTuple, Protocol

from kio.schema.errors import ErrorCode

from bucketlog.log_format.errors import SequencerError
from bucketlog.log_format.wire.error_codes import ApiFamily, kafka_code
from bucketlog.metadata.config_facts import ConfigsAltered
from bucketlog.metadata.security_facts import SecurityFact
from bucketlog.metadata.sequencer.requests import FactStatus, WantedSecurityEntry
from bucketlog.metadata.token_facts import TokenFact


class Refusal(NamedTuple):
    error: ErrorCode
    message: str | None


DONE = Refusal(ErrorCode.none, None)
"""The value that a response has instead of a refusal if the change succeeded."""


class SecurityCommitter(Protocol):
    async def commit_fact(
        self, fact: SecurityFact | TokenFact | ConfigsAltered, wanted: WantedSecurityEntry
    ) -> FactStatus: ...


class SecurityChanges:
    """`change_ms_max` bounds the time of each change."""

    def __init__(self, committer: SecurityCommitter, *, change_ms_max: int) -> None:
        self._committer = committer
        self._change_ms_max = change_ms_max

    async def commit(self, fact: SecurityFact | TokenFact | ConfigsAltered) -> Refusal | None:
        """Commit the change. Returns None when the change is in the view, or why it failed."""
        try:
            async with asyncio.timeout(self._change_ms_max / 1000):
                await self._committer.commit_fact(fact, WantedSecurityEntry())
        except (SequencerError, TimeoutError) as error:
            return Refusal(kafka_code(error, ApiFamily.TOPICS), "It may be done later.")
        return None
