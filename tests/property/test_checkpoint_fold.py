"""Folding on from a checkpoint gives what folding everything gives, whatever was checkpointed
before it, and after each way through the checkpoint's bytes."""

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bucketlog.log_format.checkpoint import Checkpoint
from bucketlog.log_format.errors import BucketlogError
from bucketlog.log_format.model import SegmentId, Ticket
from bucketlog.metadata.checkpoint import contradiction, extended, restored
from bucketlog.metadata.checkpoint_state import decode_state, encode_state
from bucketlog.metadata.fold import LogState, fold
from bucketlog.metadata.producers import IdleLimit, ProducedBatch
from bucketlog.metadata.view import View
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.checkpoint import decode_checkpoint, encode_checkpoint
from tests.models.histories import RandomHistory

SEEDS = range(80)


def through_bytes(checkpoint: Checkpoint) -> Checkpoint:
    read = decode_checkpoint(keys.checkpoint(checkpoint.ticket), encode_checkpoint(checkpoint))
    assert read == checkpoint
    return read


def chained(
    history: RandomHistory, tickets: list[Ticket], idle: IdleLimit | None = None
) -> Checkpoint:
    """Each checkpoint made from the one before it, as brokers make them."""
    last: Checkpoint | None = None
    for ticket in tickets:
        lowest = Ticket(0, 0) if last is None else last.ticket
        covered = [index for index in history.segments if lowest <= index.ticket < ticket]
        writers = [row for row in history.covered(ticket) if row.epoch >= lowest.epoch]
        last = through_bytes(extended(last, covered, ticket, writers, created_ms=1, idle=idle))
    assert last is not None
    return last


def some_tickets(history: RandomHistory, seed: int) -> list[Ticket]:
    chance = random.Random(seed)
    chosen = chance.sample(history.segments, chance.randint(1, 4))
    return sorted({Ticket(i.ticket.epoch, i.ticket.number + chance.randint(0, 1)) for i in chosen})


def assert_same(found: LogState, expected: LogState) -> None:
    assert list(found.topics.items()) == list(expected.topics.items())
    assert found.names == expected.names
    assert found.partitions == expected.partitions
    assert found.groups == expected.groups
    assert found.dropped == expected.dropped
    assert found.swept_below == expected.swept_below
    assert found.clock == expected.clock


@pytest.mark.parametrize("seed", SEEDS)
def test_a_checkpoint_and_the_rest_are_everything(seed: int) -> None:
    history = RandomHistory(seed)
    checkpoint = chained(history, some_tickets(history, seed))
    rest = [index for index in history.segments if index.ticket >= checkpoint.ticket]
    assert_same(fold(rest, onto=restored(checkpoint)), fold(history.segments))
    assert checkpoint.segments == len(history.segments) - len(rest)
    sparing = {"keep_producers": False, "keep_groups": False}
    assert_same(
        fold(rest, onto=restored(checkpoint, **sparing)),
        fold(history.segments, onto=LogState(**sparing)),
    )


NOWS_MS = (0, 15_000, 25_000, 38_000, 1 << 50)
"""The times of the checkpointer's clock; the histories end at about 40 s."""


def produced(state: LogState) -> dict[object, list[ProducedBatch]]:
    return {
        (key, producer): rows
        for key, part in state.partitions.items()
        for producer, rows in part.producers.items()
    }


@pytest.mark.parametrize("seed", SEEDS)
def test_a_checkpoint_forgets_idle_producers_and_nothing_else(seed: int) -> None:
    """The model of remembered producers is independent of `same_producers`."""
    history = RandomHistory(seed)
    idle = IdleLimit(random.Random(seed).choice(NOWS_MS), 5_000)
    checkpoint = chained(history, some_tickets(history, seed), idle)
    below = [index for index in history.segments if index.ticket < checkpoint.ticket]
    rest = [index for index in history.segments if index.ticket >= checkpoint.ticket]
    assert contradiction(checkpoint, below) is None
    state, everything = fold(rest, onto=restored(checkpoint)), fold(history.segments)
    since = state.producers_since_ms
    latest = max([0, *(index.created_ms for index in below)])
    assert since == max(0, min(idle.now_ms, latest) - 5_000) or len(below) == 0
    kept, full = produced(state), produced(everything)
    assert kept.keys() <= full.keys()
    for key, rows in full.items():
        young = [row for row in rows if row.appended_ms >= since]
        found = kept.get(key, [])
        assert found == rows[len(rows) - len(found) :]
        assert [row for row in found if row.appended_ms >= since] == young
        assert bool(found) == bool(young)
    for each in (state, everything):
        for part in each.partitions.values():
            part.producers.clear()
    assert_same(state, everything)


def test_the_histories_have_producers_that_go_and_that_come_back() -> None:
    gone = back = there = 0
    for seed in SEEDS:
        history = RandomHistory(seed)
        idle = IdleLimit(random.Random(seed).choice(NOWS_MS), 5_000)
        checkpoint = chained(history, some_tickets(history, seed), idle)
        rest = [index for index in history.segments if index.ticket >= checkpoint.ticket]
        kept = produced(fold(rest, onto=restored(checkpoint)))
        for key, rows in produced(fold(history.segments)).items():
            there += key in kept
            gone += key not in kept
            back += 0 < len(kept.get(key, [])) < len(rows)
    assert min(gone, back, there) > 20


WRONG_STATES = (
    "a young producer is missing",
    "an old producer is there",
    "a batch is another",
    "a time is another",
    "an older batch is missing",
    "the clock is another",
    "the future is forgotten",
)


def spoiled(state: LogState, wrong: str) -> bool:
    """Whether the state allows it."""
    rows = [
        (part.producers, producer, batches)
        for part in state.partitions.values()
        for producer, batches in part.producers.items()
    ]
    since = state.producers_since_ms
    for producers, producer, batches in rows:
        first, last = batches[0], batches[-1]
        match wrong:
            case "a young producer is missing":
                del producers[producer]
            case "an old producer is there":
                if not since:
                    return False
                batches[:] = [first._replace(appended_ms=since - 1)]
            case "a batch is another":
                batches[-1] = last._replace(last_sequence=last.last_sequence + 1)
            case "a time is another":
                batches[-1] = last._replace(appended_ms=last.appended_ms + 1)
            case "an older batch is missing":
                if len(batches) == 1 or first.appended_ms < since:
                    continue
                del batches[0]
            case "the clock is another":
                state.clock = state.clock.after(0)
            case "the future is forgotten":
                state.forget_producers(state.clock.now_ms + 1)
        if producer in producers:
            producers[producer] = batches
        return True
    return False


@pytest.mark.parametrize("wrong", WRONG_STATES)
def test_a_checkpoint_that_is_wrong_about_producers_is_contradicted(wrong: str) -> None:
    found = 0
    for seed in range(20):
        history = RandomHistory(seed)
        checkpoint = chained(history, some_tickets(history, seed), IdleLimit(25_000, 5_000))
        below = [index for index in history.segments if index.ticket < checkpoint.ticket]
        state = restored(checkpoint)
        if spoiled(state, wrong):
            bad = replace(checkpoint, state=encode_state(state))
            assert contradiction(bad, below) is not None
            found += 1
    assert found > 8


def test_a_checkpoint_that_keeps_idle_producers_is_contradicted() -> None:
    found = 0
    for seed in range(20):
        history = RandomHistory(seed)
        checkpoint = chained(history, some_tickets(history, seed), IdleLimit(25_000, 5_000))
        below = [index for index in history.segments if index.ticket < checkpoint.ticket]
        state = restored(checkpoint)
        for key, part in fold(below).partitions.items():
            state.partitions[key].producers = part.producers
        if produced(state).keys() != produced(restored(checkpoint)).keys():
            bad = replace(checkpoint, state=encode_state(state))
            assert "producers from before" in (contradiction(bad, below) or "")
            found += 1
    assert found > 5


def waiting(view: View) -> list[SegmentId]:
    """The segments that still have rows; they come in an order that every partition agrees with."""
    listed = [each.segment for each in view.waiting]
    assert len(set(listed)) == len(listed)
    place = {segment: at for at, segment in enumerate(listed)}
    for log in view.logs().values():
        places = [place[segment] for segment in log.batches.segments]
        assert places == sorted(places)
    used = {segment for log in view.logs().values() for segment in log.batches.segments}
    return [segment for segment in listed if segment in used]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_view_shows_the_same(seed: int) -> None:
    history = RandomHistory(seed)
    checkpoint = chained(history, some_tickets(history, seed))
    rest = [index for index in history.segments if index.ticket >= checkpoint.ticket]
    view, expected = View(), View()
    view.become(View.of(rest, checkpoint))
    expected.become(View.of(history.segments))
    assert view.topics() == expected.topics()
    assert {group: view.offsets(group) for group in view.groups()} == {
        group: expected.offsets(group) for group in expected.groups()
    }
    assert waiting(view) == waiting(expected)
    for key in history.existing():
        log, wanted = view.log(key), expected.log(key)
        assert log is not None
        assert wanted is not None
        assert log.begins_with(wanted)
        assert wanted.begins_with(log)
        assert log.high_watermark == wanted.high_watermark


@pytest.mark.parametrize("seed", SEEDS)
def test_how_often_it_was_checkpointed_does_not_show(seed: int) -> None:
    """But for writers that no batch names: their chains were closed at an earlier checkpoint."""
    history = RandomHistory(seed)
    tickets = some_tickets(history, seed)
    often, once = chained(history, tickets), chained(history, tickets[-1:])
    assert often.ticket == once.ticket
    assert often.segments == once.segments
    assert_same(restored(often), restored(once))
    assert set(often.writers) == set(once.writers)
    assert often.partitions.keys() == once.partitions.keys()
    for key, part in often.partitions.items():
        assert part.high_watermark == once.partitions[key].high_watermark
        assert list(often.batches(key)) == list(once.batches(key))


def test_the_histories_have_what_is_to_be_shown() -> None:
    states = [fold(RandomHistory(seed).segments) for seed in SEEDS]
    assert sum(bool(state.groups) for state in states) > 40
    assert sum(any(p.producers for p in state.partitions.values()) for state in states) > 40
    tiers = [part.tier for state in states for part in state.partitions.values()]
    assert sum(len(tier.rows) > 1 for tier in tiers) > 40
    assert sum(tier.cleaned_to > 0 for tier in tiers) > 20
    assert sum(bool(state.dropped) for state in states) > 40
    assert sum(state.swept_below > Ticket(0, 0) for state in states) > 20
    histories = [RandomHistory(seed) for seed in SEEDS]
    assert sum(len(history.sizes) > len(history.live) for history in histories) > 40
    dropped = 0
    for seed, history in zip(SEEDS, histories, strict=True):
        checkpoint = chained(history, some_tickets(history, seed))
        dropped += len(history.covered(checkpoint.ticket)) > len(checkpoint.writers)
    assert dropped > 5


@given(seed=st.integers(0, 50), data=st.data())
def test_damaged_state_is_refused_or_read_within_its_bounds(seed: int, data: st.DataObject) -> None:
    sound = encode_state(fold(RandomHistory(seed, segments=15).segments))
    at = data.draw(st.integers(0, len(sound) - 1))
    damaged = bytearray(sound)
    damaged[at : at + 4] = data.draw(st.binary(min_size=4, max_size=4))
    cut = data.draw(st.integers(0, len(damaged)))
    for bad in (bytes(damaged), bytes(damaged[:cut])):
        try:
            decode_state(bad)
        except BucketlogError:
            continue
