"""Idempotent producers in the fold: the log's clock, and which producers may be forgotten."""

from dataclasses import replace

import pytest

from bucketlog.metadata.fold import LogState, fold
from bucketlog.metadata.producers import (
    CLOCK_BLOCK_SEGMENTS,
    IdleLimit,
    LogClock,
    ProducedBatch,
    ProducerTable,
    same_producers,
)
from tests.models.indexes import create, partition, row, segment
from tests.rigs.traced_memory import TracedMemory

YEARS_MS = 1 << 40
PRODUCERS, BYTES_EACH_MAX = 10_000, 220


def clock_after(*times: int) -> LogClock:
    clock = LogClock()
    for created_ms in times:
        clock = clock.after(created_ms)
    return clock


def test_the_clock_does_not_go_back_with_a_broker_that_is_behind() -> None:
    assert clock_after(1_000, 5, -YEARS_MS, 990).now_ms == 1_000
    assert clock_after(-5).now_ms == LogClock().now_ms == 0


@pytest.mark.parametrize("at", [0, 1, CLOCK_BLOCK_SEGMENTS - 1, CLOCK_BLOCK_SEGMENTS])
def test_the_effect_of_a_clock_that_was_ahead_ends(at: int) -> None:
    """The effect lasts for at least one block, and at most two."""
    clock = LogClock()
    wrong_until = 0
    for number in range(4 * CLOCK_BLOCK_SEGMENTS):
        clock = clock.after(YEARS_MS if number == at else number)
        if number >= at and clock.now_ms >= YEARS_MS:
            wrong_until = number
        elif number > at:
            assert clock.now_ms == number
    assert CLOCK_BLOCK_SEGMENTS <= wrong_until - at < 2 * CLOCK_BLOCK_SEGMENTS


@pytest.mark.parametrize(
    ("now_ms", "log_ms", "since_ms"),
    [
        (5_000, 5_000, 4_000),
        (YEARS_MS, 5_000, 4_000),
        (5_000, YEARS_MS, 4_000),
        (500, 5_000, 0),
        (0, 0, 0),
    ],
)
def test_one_wrong_clock_expires_nobody(now_ms: int, log_ms: int, since_ms: int) -> None:
    assert IdleLimit(now_ms, 1_000).since_ms(clock_after(log_ms)) == since_ms


def state_of(*segments: tuple[int, list[int]]) -> LogState:
    """For each segment: its creation time, and the producers of its batches."""
    indexes = [segment(0, {}, create(1))]
    for number, (created_ms, producers) in enumerate(segments, 1):
        batches = [
            row(10 * number + at, producer=(producer, 0, number))
            for at, producer in enumerate(producers)
        ]
        made = segment(number, {partition(1): batches})
        indexes.append(replace(made, created_ms=created_ms))
    return fold(indexes)


def producers_of(state: LogState) -> dict[int, list[int]]:
    """By producer: the times of its batches."""
    producers = state.partitions[partition(1)].producers
    return {
        producer: [batch.appended_ms for batch in batches]
        for producer, batches in producers.items()
    }


def test_batches_have_the_time_of_the_log() -> None:
    state = state_of((100, [7]), (50, [7, 8]), (300, [8]))
    assert producers_of(state) == {7: [100, 100], 8: [100, 300]}


def test_a_producer_is_forgotten_whole_or_not_at_all() -> None:
    state = state_of((100, [7, 8, 9]), (200, [7, 8]), (300, [8]))
    state.forget_producers(100)
    assert producers_of(state) == {7: [100, 200], 8: [100, 200, 300], 9: [100]}
    state.forget_producers(201)
    assert producers_of(state) == {8: [100, 200, 300]}
    state.forget_producers(150)
    assert state.producers_since_ms == 201


def test_only_producers_that_wrote_while_a_clock_was_ahead_stay() -> None:
    state = state_of((100, [7]), (YEARS_MS, [8]), (300, [9]))
    state.forget_producers(IdleLimit(1_000, 500).since_ms(state.clock))
    assert producers_of(state) == {8: [YEARS_MS], 9: [YEARS_MS]}


def batches(*times: int) -> dict[int, list[ProducedBatch]]:
    """Batches of producer 7, whose sequences are the times."""
    return {7: [ProducedBatch(0, time, time, time, time) for time in times]}


def test_folds_agree_where_only_idle_producers_were_forgotten() -> None:
    full = batches(1, 2, 3, 9)
    for kept in (full, batches(2, 3, 9), batches(9)):
        assert same_producers(kept, full, since_ms=4)
        assert same_producers(full, kept, since_ms=4)
    assert same_producers({}, batches(1, 3), since_ms=4)
    for wrong in (batches(1, 2, 3), batches(1, 9), batches(1, 2, 3, 8), {}):
        assert not same_producers(wrong, full, since_ms=4)
    assert not same_producers(batches(3, 9), full, since_ms=2)
    assert not same_producers({}, batches(1, 4), since_ms=4)


def test_guessed_times_are_not_compared_and_all_else_is() -> None:
    guessed = {7: [ProducedBatch(0, 5, 5, 5, 100)]}
    true = {7: [ProducedBatch(0, 5, 5, 5, 90)]}
    assert same_producers(guessed, true, since_ms=0, times_from_ms=91)
    assert not same_producers(guessed, true, since_ms=0, times_from_ms=90)
    other = {7: [ProducedBatch(0, 5, 6, 5, 90)]}
    assert not same_producers(guessed, other, since_ms=0, times_from_ms=1_000)


def test_a_table_keeps_the_last_batches_of_each_producer() -> None:
    table = ProducerTable({3: [ProducedBatch(-1, -1, 2**31 - 1, 2**62, 2**62)]})
    for number in range(7):
        table.note(5, ProducedBatch(1, number, number, number, 40))
    assert table == {
        3: [ProducedBatch(-1, -1, 2**31 - 1, 2**62, 2**62)],
        5: [ProducedBatch(1, number, number, number, 40) for number in range(2, 7)],
    }
    assert table.batch_count() == len([*table.packed_batches()]) == 6
    del table[5]
    assert list(table) == [3]


def test_a_producer_takes_few_bytes(traced_memory: TracedMemory) -> None:
    with traced_memory.measured() as found:
        table = ProducerTable()
        for number in range(PRODUCERS):
            table.note(2**40 + number, ProducedBatch(0, 0, 0, 2**40 + number, 2**40))
    assert len(table) == PRODUCERS
    assert found.held < BYTES_EACH_MAX * PRODUCERS
