"""Duties that work in rounds: one broker at a time. What fails waits for the next round."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from uuid import UUID

from bucketlog.log_format.errors import (
    BucketError,
    CorruptObjectError,
    InvalidDataError,
    SequencerError,
)
from bucketlog.log_format.model import WallClock
from bucketlog.metadata.topic_defaults import TopicDefaults
from bucketlog.stateless_broker.duties.upkeep import UpkeepCounts
from bucketlog.stateless_broker.health import BrokerPart, Health

logger = logging.getLogger(__name__)

CATCH_UP_MS = 10_000
"""The longest time that a round waits for the view to show everything that was visible before."""


@dataclass(frozen=True, slots=True)
class DutyContext:
    """The parts of the broker that every duty uses. `place_in_line` is this broker's place for the
    duty of that name, 0 for the broker whose turn it is. Duties count what they have done in
    `counts`."""

    place_in_line: Callable[[str], int]
    health: Health
    counts: UpkeepCounts
    now_ms: WallClock
    new_uuid: Callable[[], UUID]
    topic_defaults: TopicDefaults


async def run_rounds(
    duty: BrokerPart,
    go_round: Callable[[], Awaitable[object]],
    *,
    interval_ms: int,
    context: DutyContext,
) -> None:
    """Run rounds until the epoch ends, each only if it is this broker's turn. Temporary errors are
    logged. Damage shows in the broker's health until a round succeeds."""
    health = context.health
    health.recover(duty)
    while health.stopped is None:
        await asyncio.sleep(interval_ms / 1000)
        if context.place_in_line(duty):
            continue
        try:
            await go_round()
        except (BucketError, SequencerError) as error:
            logger.warning("no %s now: %s", duty, error)
        except (CorruptObjectError, InvalidDataError) as error:
            health.degrade(duty, str(error))
        else:
            health.recover(duty)
