"""The duty that begins a new epoch when many writers of the current one are closed.

A closed writer leaves a registration and a seal in the bucket, and a row in Redis. Within the
epoch, they have to stay: only the seal prevents a paused broker from writing again. The next
epoch makes them obsolete, and the duty of deletion removes them. Without renewal, they pile up if
brokers come and go while Redis runs for months.
"""

import logging
from collections.abc import Callable

from bucketlog.stateless_broker.duties.rounds import DutyContext, run_rounds
from bucketlog.stateless_broker.health import BrokerPart
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import Bucket, listed

logger = logging.getLogger(__name__)


class EpochRenewal:
    """`live_brokers` counts the members of the cluster. `renew` ends the epoch, for the given
    reason, so that this broker claims the next one."""

    def __init__(
        self,
        *,
        epoch: int,
        bucket: Bucket,
        context: DutyContext,
        live_brokers: Callable[[], int],
        renew: Callable[[str], None],
        closed_writers_max: int,
    ) -> None:
        self._prefix = f"{keys.WRITERS}{keys.number(epoch)}/"
        self._bucket = bucket
        self._context = context
        self._live_brokers = live_brokers
        self._renew = renew
        self._closed_writers_max = closed_writers_max

    async def run(self, interval_ms: int) -> None:
        """Run rounds until the epoch ends, each on the broker whose turn it is."""
        await run_rounds(
            BrokerPart.RENEWAL, self.go_round, interval_ms=interval_ms, context=self._context
        )

    async def go_round(self) -> None:
        """Count the epoch's writers, and end the epoch if too many are closed. Raises
        `BucketError`."""
        registered = len(await listed(self._bucket, self._prefix))
        closed = registered - self._live_brokers()
        if closed > self._closed_writers_max:
            self._renew(
                f"{closed} of its writers are closed, more than "
                f"BUCKETLOG_EPOCH_CLOSED_WRITERS_MAX={self._closed_writers_max}"
            )
