"""Batches of idempotent producers that were refused with an error after which clients send them
again. Pure.

An idempotent producer has up to five batches of a partition in flight. If the broker refuses one of
them, for example because it has withdrawn, the batches behind it are still on their way. They leave
a gap in the sequences if the broker takes them. Clients must not get OUT_OF_ORDER_SEQUENCE_NUMBER
for this gap. librdkafka would raise its producer epoch, and send all batches again whose outcome it
does not know, in other partitions, too (`rd_kafka_handle_idempotent_Produce_error`). A new producer
epoch begins with sequence 0, so no broker recognises a batch that is in the log already. So the
batches behind a refused one are refused with an error that clients retry, and all come again.

Invariant: each refusal excuses only as many batches as a client may have in flight. If the refused
batch does not come again, the batches behind it get Kafka's error.
"""

from collections import OrderedDict
from typing import NamedTuple

IN_FLIGHT_MAX = 5
"""Limit of refusals for each producer and partition. Kafka recognises this number of batches as
duplicates."""
KEPT = 10_000
"""Limit of the remembered producers, counted per partition. The oldest refusals are forgotten
first."""


class ProducedTo(NamedTuple):
    """An epoch of an idempotent producer, in one partition. The topic may not exist (yet)."""

    topic_name: str
    partition: int
    producer_id: int
    producer_epoch: int


class RefusedBatches:
    def __init__(self, *, kept: int = KEPT) -> None:
        self._kept = kept
        self._excuses: OrderedDict[ProducedTo, dict[int, int]] = OrderedDict()
        """For each producer and first sequence of a refused batch, the number of batches behind it
        that may be excused."""

    def note(self, where: ProducedTo, first_sequence: int) -> None:
        """Note a batch that was refused, or whose outcome is unknown: the client sends it again."""
        excuses = self._excuses.setdefault(where, {})
        self._excuses.move_to_end(where)
        excuses.pop(first_sequence, None)
        excuses[first_sequence] = IN_FLIGHT_MAX - 1
        if len(excuses) > IN_FLIGHT_MAX:
            del excuses[next(iter(excuses))]
        if len(self._excuses) > self._kept:
            self._excuses.popitem(last=False)

    def excuses(self, where: ProducedTo, expected_sequence: int) -> bool:
        """Return whether the client may have sent a batch before it knew that the expected batch
        was refused. Uses up an excuse."""
        found = self._excuses.get(where, {})
        left = found.get(expected_sequence, 0)
        if left:
            found[expected_sequence] = left - 1
        return left > 0
