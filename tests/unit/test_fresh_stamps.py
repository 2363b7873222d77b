"""Which broker requests a fresh stamp, and when."""

from bucketlog.log_format.model import TopicId, TopicIdPartition
from bucketlog.stateless_broker.epochs.end import EpochEnd
from bucketlog.stateless_broker.produce.fresh_stamps import PLACES, ROUNDS_APART, FreshStamps

TOPIC = TopicId(bytes(16))
P0, P1 = TopicIdPartition(TOPIC, 0), TopicIdPartition(TOPIC, 1)


class Broker:
    def __init__(self, place: int = 0) -> None:
        self.gaps: dict[TopicIdPartition, int] = {}
        self.in_flight: dict[TopicIdPartition, int] = {}
        self.place = place
        self.asked_for_place = 0
        self.stamps = FreshStamps(
            end=EpochEnd(1),
            gaps=lambda: self.gaps,
            in_flight=lambda: self.in_flight,
            request=lambda _: None,
            place_in_line=self._place_in_line,
            round_ms=1,
        )

    def _place_in_line(self, task: str) -> int:
        self.asked_for_place += 1
        return self.place

    def first_round(self) -> int:
        """The round in which the broker requests stamps, counted from 0."""
        return next(number for number in range(1000) if self.stamps.due())


def test_the_first_in_line_requests_all_stamps_in_the_first_round() -> None:
    broker = Broker()
    assert broker.stamps.due() == []
    broker.gaps = {P1: 5, P0: 9}
    assert broker.stamps.due() == [P1, P0]


def test_others_follow_and_none_waits_for_many_dead_ones() -> None:
    rounds = []
    for place in range(PLACES + 3):
        broker = Broker(place)
        broker.gaps = {P0: 5}
        rounds.append(broker.first_round())
    last = PLACES * ROUNDS_APART
    assert rounds == [0, ROUNDS_APART, last, last, last]


def test_a_stamp_is_requested_again_until_it_is_on_its_way() -> None:
    """A request may be lost with its writer; a stamp in flight may be too low."""
    broker = Broker()
    broker.gaps = {P0: 5}
    assert [broker.stamps.due() for _ in range(2)] == [[P0], [P0]]
    broker.in_flight = {P0: 5}
    assert broker.stamps.due() == []
    broker.in_flight = {P0: 4}
    assert broker.stamps.due() == [P0]


def test_a_gap_that_comes_back_is_waited_for_anew() -> None:
    broker = Broker(1)
    broker.gaps = {P0: 5}
    assert not any(broker.stamps.due() for _ in range(ROUNDS_APART))
    broker.gaps = {}
    broker.stamps.due()
    broker.gaps = {P0: 9, P1: 9}
    assert not any(broker.stamps.due() for _ in range(ROUNDS_APART))
    assert broker.stamps.due() == [P0, P1]


def test_without_gaps_a_round_asks_nobody() -> None:
    broker = Broker()
    for _ in range(3):
        broker.stamps.due()
    assert broker.asked_for_place == 0
