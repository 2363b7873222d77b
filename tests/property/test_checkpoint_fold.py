"""Folding on from a checkpoint gives what folding everything gives, whatever was checkpointed
before it, and after each way through the checkpoint's bytes."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bucketlog.log_format.checkpoint import Checkpoint
from bucketlog.log_format.errors import BucketlogError
from bucketlog.log_format.model import SegmentId, Ticket
from bucketlog.metadata.checkpoint import decode_state, encode_state, extended, restored
from bucketlog.metadata.fold import LogState, fold
from bucketlog.metadata.view import View
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.checkpoint import decode_checkpoint, encode_checkpoint
from tests.models.histories import RandomHistory

SEEDS = range(80)


def through_bytes(checkpoint: Checkpoint) -> Checkpoint:
    read = decode_checkpoint(keys.checkpoint(checkpoint.ticket), encode_checkpoint(checkpoint))
    assert read == checkpoint
    return read


def chained(history: RandomHistory, tickets: list[Ticket]) -> Checkpoint:
    """Each checkpoint made from the one before it, as brokers make them."""
    last: Checkpoint | None = None
    for ticket in tickets:
        lowest = Ticket(0, 0) if last is None else last.ticket
        covered = [index for index in history.segments if lowest <= index.ticket < ticket]
        writers = [row for row in history.covered(ticket) if row.epoch >= lowest.epoch]
        last = through_bytes(extended(last, covered, ticket, writers, created_ms=1))
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
