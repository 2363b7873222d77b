"""Whatever single fault is planted in a good history is found, under the rule that names it."""

from collections.abc import Callable
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from tests.models.good_histories import GROUP, good_history
from tests.models.history import (
    Acknowledged,
    CommittedSeen,
    History,
    Log,
    Read,
    Refused,
    Rule,
    Seen,
    Sent,
    broken_promises,
    check,
)

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

    def lost(self) -> None:
        del self.rows[self.at]

    def duplicated(self) -> None:
        other = self.source.choice(list(self.log.values()))
        other.append((other[-1][0] + self.source.randint(1, 3), self.acknowledged.sent))

    def moved(self) -> None:
        del self.rows[self.at]
        self.rows.append((self.end + self.source.randrange(3), self.acknowledged.sent))

    def given_twice(self) -> None:
        self.rows[self.at] = (self.offset, Sent("another", 0))

    def given_twice_by_answers(self) -> None:
        told = Acknowledged(Sent("another", 0), self.acknowledged.place, AFTER_ALL)
        self.history.acknowledged.insert(0, told)
        self.log[self.partition].append((self.end, told.sent))

    def unseen(self) -> None:
        first = self.source.randrange(self.offset + 1)
        shown = [row for row in self.rows if row[0] >= first and row[0] != self.offset]
        read = Read("r", self.partition, first, shown, self.acknowledged.at + 0.1, to_end=True)
        self.history.reads.append(read)

    def passed_over(self) -> None:
        shown = [*self.rows[: self.at], (self.offset + 1, Sent("another", 0))]
        self.history.reads.append(Read("r", self.partition, 0, shown, self.acknowledged.at))
        self.rows[self.at + 1 :] = [(self.offset + 1, Sent("another", 0))]

    def withdrawn(self) -> None:
        shown = [*self.rows, (self.end + self.source.randrange(3), Sent("another", 0))]
        self.history.reads.append(Read("r", self.partition, 0, shown, 0))

    def aborted(self) -> None:
        self.history.acknowledged.remove(self.acknowledged)
        refused = Refused(self.acknowledged.sent, ErrorCode.not_enough_replicas, 0)
        self.history.refused.append(refused)

    def producer_out_of_order(self) -> None:
        self.rows.append((self.end, Sent("another", 7)))
        self.rows.append((self.end + 1, Sent("another", self.source.randrange(7))))

    def offsets_out_of_order(self) -> None:
        self.rows.append((self.source.randrange(self.end - 1), Sent("another", 0)))
        self.rows.append((self.end, Sent("another", 1)))

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


PLANTS: list[tuple[Rule, Callable[[Planter], None]]] = [
    (Rule.LOST, Planter.lost),
    (Rule.DUPLICATED, Planter.duplicated),
    (Rule.MOVED, Planter.moved),
    (Rule.GIVEN_TWICE, Planter.given_twice),
    (Rule.GIVEN_TWICE, Planter.given_twice_by_answers),
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
]


def test_every_rule_has_a_fault() -> None:
    assert {rule for rule, _ in PLANTS} == set(Rule)


@given(seed=st.integers(0, 1 << 32), records=st.integers(30, 200), plant=st.sampled_from(PLANTS))
def test_a_planted_fault_is_found(
    seed: int, records: int, plant: tuple[Rule, Callable[[Planter], None]]
) -> None:
    history, log = good_history(seed, records)
    check(history, log)
    planter = Planter(history, log, Random(seed))
    rule, make = plant
    make(planter)
    assert rule in {broken.rule for broken in broken_promises(planter.history, planter.log)}
