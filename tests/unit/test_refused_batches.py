"""Which batches were sent behind one that the broker had refused."""

from bucketlog.stateless_broker.produce.refused_batches import (
    IN_FLIGHT_MAX,
    ProducedTo,
    RefusedBatches,
)

HERE = ProducedTo("t", 0, 7, 0)


def test_a_batch_is_excused_if_a_refused_one_is_expected() -> None:
    refused = RefusedBatches()
    refused.note(HERE, 10)
    assert refused.excuses(HERE, 10)
    assert not refused.excuses(HERE, 8)
    assert not refused.excuses(HERE, 12)


def test_others_are_not_excused() -> None:
    refused = RefusedBatches()
    refused.note(HERE, 10)
    for other in (
        HERE._replace(topic_name="u"),
        HERE._replace(partition=1),
        HERE._replace(producer_id=8),
        HERE._replace(producer_epoch=1),
    ):
        assert not refused.excuses(other, 10)


def test_a_refusal_excuses_no_more_than_are_in_flight() -> None:
    """If the refused batch never comes again, the producer gets Kafka's error."""
    refused = RefusedBatches()
    refused.note(HERE, 10)
    excused = [refused.excuses(HERE, 10) for _ in range(IN_FLIGHT_MAX + 1)]
    assert excused == [True] * (IN_FLIGHT_MAX - 1) + [False] * 2
    refused.note(HERE, 10)
    assert refused.excuses(HERE, 10)


def test_an_excused_batch_does_not_renew_the_excuse() -> None:
    refused = RefusedBatches()
    refused.note(HERE, 10)
    excused = 0
    while refused.excuses(HERE, 10):
        refused.note(HERE, 12)  # its refusal is noted, too
        excused += 1
    assert excused == IN_FLIGHT_MAX - 1


def test_refused_batches_of_one_window_are_remembered_in_any_order() -> None:
    refused = RefusedBatches()
    window = (10, 14, 18, 12, 16)
    for first in window:
        refused.note(HERE, first)
    assert all(refused.excuses(HERE, first) for first in window)
    refused.note(HERE, 30)
    kept = {first for first in (*window, 30) if refused.excuses(HERE, first)}
    assert kept == {14, 18, 12, 16, 30}  # the one at 10 was refused longest ago


def test_memory_is_bounded() -> None:
    refused = RefusedBatches(kept=2)
    for number in range(3):
        refused.note(HERE._replace(partition=number), 10)
    kept = [refused.excuses(HERE._replace(partition=number), 10) for number in range(3)]
    assert kept == [False, True, True]
