"""A single anomaly that is planted in a good history is reported by the rule that names it, and by
no other."""

from collections.abc import Callable
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from tests.models.good_histories import GROUP, good_history
from tests.models.history import (
    Acknowledged,
    CommittedSeen,
    EndSeen,
    History,
    Log,
    Place,
    Read,
    Refused,
    Seen,
    Sent,
)
from tests.models.promises import Rule, broken_promises, check

AFTER_ALL = 1e9
Rows = list[tuple[int, Sent]]


class Planter:
    """A history and its log, with a place in them that `source` chose: partition, row and its
    acknowledgement."""

    def __init__(self, history: History, log: Log, source: Random) -> None:
        self.history = history
        self.log: dict[int, Rows] = {partition: list(rows) for partition, rows in log.items()}
        self.source = source
        self.acknowledged = source.choice(history.acknowledged)
        self.partition, self.offset = self.acknowledged.place
        self.rows = self.log[self.partition]
        self.at = [offset for offset, _ in self.rows].index(self.offset)
        self.end = self.rows[-1][0] + 1

    def forget_observers(self) -> None:
        """Else what they saw contradicts a changed log, too."""
        self.history.reads.clear()
        self.history.high_watermarks.clear()

    def lost(self) -> None:
        self.forget_observers()
        del self.rows[self.at]

    def duplicated(self) -> None:
        other = self.source.choice(list(self.log.values()))
        other.append((other[-1][0] + 1, Sent("another", 0)))
        other.append((other[-1][0] + 1, Sent("another", 0)))

    def moved(self) -> None:
        self.acknowledge("another", 0, self.end)
        self.rows.append((self.end + 1, Sent("another", 0)))

    def given_twice(self) -> None:
        """Two readers, two records, and neither was acknowledged."""
        self.rows.append((self.end, Sent("another", 0)))
        shown = [(self.end, Sent("another", 1))]
        self.history.reads.append(Read("r", self.partition, self.end, shown, AFTER_ALL))

    def given_twice_in_the_log(self) -> None:
        self.rows += [(self.end, Sent("another", 0)), (self.end, Sent("another", 1))]

    def acknowledge(self, producer: str, number: int, offset: int) -> None:
        place = Place(self.partition, offset)
        self.history.acknowledged.append(Acknowledged(Sent(producer, number), place, AFTER_ALL))

    def unseen(self) -> None:
        first = self.source.randrange(self.offset + 1)
        shown = [row for row in self.rows if row[0] >= first and row[0] != self.offset]
        read = Read("r", self.partition, first, shown, self.acknowledged.at + 0.1, to_end=True)
        self.history.reads.append(read)

    def passed_over(self) -> None:
        """A reader went from the record before to one after it, and then it appeared."""
        self.rows += [(self.end, Sent("another", 0)), (self.end + 1, Sent("another", 1))]
        shown = [*self.rows[:-2], self.rows[-1]]
        self.history.reads.append(Read("r", self.partition, 0, shown, AFTER_ALL))

    def withdrawn(self) -> None:
        shown = [*self.rows, (self.end, Sent("another", 0))]
        self.history.reads.append(Read("r", self.partition, 0, shown, 0))

    def aborted(self) -> None:
        self.history.acknowledged.remove(self.acknowledged)
        refused = Refused(self.acknowledged.sent, ErrorCode.not_enough_replicas, 0)
        self.history.refused.append(refused)

    def producer_out_of_order(self) -> None:
        self.rows.append((self.end, Sent("another", 7)))
        self.rows.append((self.end + 1, Sent("another", self.source.randrange(7))))

    def offsets_out_of_order(self) -> None:
        self.rows.append((self.end + 1, Sent("another", 0)))
        self.rows.append((self.end, Sent("other", 0)))

    def high_watermark_back(self) -> None:
        self.history.high_watermarks.append(Seen("watch", self.partition, self.end - 1))

    def high_watermark_beyond(self) -> None:
        self.history.high_watermarks.append(Seen("w", self.partition, self.end + 1))

    def position_back(self) -> None:
        self.history.positions.append(Seen("reader", self.partition, self.end - 1))

    def reset(self) -> None:
        self.history.resets.append("reader")

    def committed_back(self) -> None:
        offset = self.source.randrange(-1, self.end - 1)
        seen = CommittedSeen(GROUP, self.partition, offset, AFTER_ALL, AFTER_ALL)
        self.history.committed_seen.append(seen)

    def end_stale(self) -> None:
        stale = self.source.randrange(self.offset + 1)
        self.history.ends.append(EndSeen("watch", self.partition, stale, AFTER_ALL))

    def never_sent(self) -> None:
        producer = self.acknowledged.sent.producer
        sent = Sent(producer, len(self.history.invoked[producer]))
        self.rows.append((self.end, sent))

    def gap(self) -> None:
        self.history.seals = []
        self.rows.append((self.end + self.source.randint(1, 3), Sent("another", 0)))


PLANTS: list[tuple[Rule, Callable[[Planter], None]]] = [
    (Rule.LOST, Planter.lost),
    (Rule.DUPLICATED, Planter.duplicated),
    (Rule.MOVED, Planter.moved),
    (Rule.GIVEN_TWICE, Planter.given_twice),
    (Rule.GIVEN_TWICE, Planter.given_twice_in_the_log),
    (Rule.UNSEEN, Planter.unseen),
    (Rule.PASSED_OVER, Planter.passed_over),
    (Rule.WITHDRAWN, Planter.withdrawn),
    (Rule.ABORTED_THEN_SEEN, Planter.aborted),
    (Rule.OUT_OF_ORDER, Planter.producer_out_of_order),
    (Rule.OUT_OF_ORDER, Planter.offsets_out_of_order),
    (Rule.HIGH_WATERMARK_BACK, Planter.high_watermark_back),
    (Rule.HIGH_WATERMARK_BEYOND, Planter.high_watermark_beyond),
    (Rule.POSITION_BACK, Planter.position_back),
    (Rule.RESET, Planter.reset),
    (Rule.COMMITTED_BACK, Planter.committed_back),
    (Rule.END_STALE, Planter.end_stale),
    (Rule.NEVER_SENT, Planter.never_sent),
    (Rule.GAP, Planter.gap),
]


def test_every_rule_has_a_fault() -> None:
    assert {rule for rule, _ in PLANTS} == set(Rule)


@given(seed=st.integers(0, 1 << 32), records=st.integers(30, 200), plant=st.sampled_from(PLANTS))
def test_a_planted_fault_is_found_alone(
    seed: int, records: int, plant: tuple[Rule, Callable[[Planter], None]]
) -> None:
    history, log = good_history(seed, records)
    check(history, log)
    planter = Planter(history, log, Random(seed))
    rule, make = plant
    make(planter)
    assert {broken.rule for broken in broken_promises(planter.history, planter.log)} == {rule}
