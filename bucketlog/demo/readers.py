"""The consumer group of the demo: three members, each with a consumer and its own thread.

They join before anything is produced, so that each has its share, and leave when all is read; no
partition changes hands meanwhile, so that each record must come exactly once over the group.
"""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock

from bucketlog.client.group_consumer import GroupConsumer
from bucketlog.client.log import Log
from bucketlog.demo.flights import Flight, flights_topic
from bucketlog.demo.tally import Tally
from bucketlog.log_format.errors import BucketlogError
from bucketlog.terminal import ProgressBar

GROUP = "demo"
MEMBERS = 3
JOIN_TIMEOUT_S = 60.0
STALL_S = 60.0
"""Time without a record until missing records are taken for lost."""
PRODUCE_S_MAX = 3600.0
_POLL_S = 0.05


@dataclass(slots=True)
class Share:
    """What one member read."""

    records: int = 0
    partitions: set[int] = field(default_factory=set)

    @property
    def partitions_in_short(self) -> str:
        return ",".join(map(str, sorted(self.partitions))) or "none"


class Readers:
    """Join, then produce, then consume: `shares` are by member."""

    def __init__(self, log: Log, partitions: int) -> None:
        self.shares = [Share() for _ in range(MEMBERS)]
        self._partitions = partitions
        self._lock = Lock()
        self._last_record_s = 0.0
        self._failed = False
        self._members: list[GroupConsumer[str, Flight]] = [
            log.consumer(
                flights_topic(), group=GROUP, start="earliest", max_poll_interval_s=PRODUCE_S_MAX
            )
            for _ in range(MEMBERS)
        ]

    def join(self) -> None:
        """Until the partitions are shared out evenly. Nothing may have been produced yet."""
        deadline = time.monotonic() + JOIN_TIMEOUT_S
        while not self._is_shared_out():
            if time.monotonic() > deadline:
                raise BucketlogError(
                    f"the group is not shared out after {JOIN_TIMEOUT_S:g} s",
                    remedy="see the broker's log",
                )
            for member in self._members:
                member.poll(1, _POLL_S)

    def consume(self, tally: Tally, bar: ProgressBar) -> None:
        """All that was produced, each record compared on its way; then leave."""
        self._last_record_s = time.monotonic()
        with ThreadPoolExecutor(MEMBERS) as pool:
            running = [
                pool.submit(self._read, member, share, tally, bar)
                for member, share in zip(self._members, self.shares, strict=True)
            ]
        for each in running:
            each.result()

    def _is_shared_out(self) -> bool:
        counts = [len(member.assignment) for member in self._members]
        return sum(counts) == self._partitions and max(counts) - min(counts) <= 1

    def _read(
        self, member: GroupConsumer[str, Flight], share: Share, tally: Tally, bar: ProgressBar
    ) -> None:
        try:
            with member:
                while tally.consumed < tally.produced and self._is_progressing():
                    batch = member.poll(timeout_s=_POLL_S)
                    with self._lock:
                        tally.compare(batch)
                        bar.advance(len(batch))
                        share.records += len(batch)
                        share.partitions |= {record.partition for record in batch}
                        if batch:
                            self._last_record_s = time.monotonic()
        except BaseException:
            self._failed = True  # the others need not wait for what will not come
            raise

    def _is_progressing(self) -> bool:
        return not self._failed and time.monotonic() - self._last_record_s < STALL_S
