"""Duties that go in rounds: one broker at a time, and what goes wrong waits for the next round."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from bucketlog.errors import BucketError, CorruptObjectError, InvalidDataError, SequencerError
from stateless_broker.health import Health

logger = logging.getLogger(__name__)

CATCH_UP_MS = 10_000
"""How long a round waits for the view to show all that was visible before."""


async def run_rounds(
    duty: str,
    go_round: Callable[[], Awaitable[object]],
    *,
    interval_ms: int,
    place_in_line: Callable[[str], int],
    health: Health,
) -> None:
    """For the epoch's life, where it is this broker's turn. What may pass is logged; damage shows
    in the broker's health until a round goes well."""
    health.recover(duty)
    while health.stopped is None:
        await asyncio.sleep(interval_ms / 1000)
        if place_in_line(duty):
            continue
        try:
            await go_round()
        except (BucketError, SequencerError) as error:
            logger.warning("no %s now: %s", duty, error)
        except (CorruptObjectError, InvalidDataError) as error:
            health.degrade(duty, str(error))
        else:
            health.recover(duty)
