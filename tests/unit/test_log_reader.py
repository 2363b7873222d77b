"""What a reader of the bucket alone believes: gaps, seals, races between its passes, damage."""

from collections.abc import Callable

import pytest

from bucketlog.log_format.errors import CorruptObjectError, InvalidDataError
from bucketlog.log_format.model import PartitionTier, SegmentId, WriterId
from bucketlog.metadata.fold import fold
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from bucketlog.tiered_storage.bucket import Body, Span, Suffix
from bucketlog.tiered_storage.chains import Chain, read_chains
from bucketlog.tiered_storage.log_cut import LogSnapshot, cut_log, readable, wanted_footers
from bucketlog.tiered_storage.log_cut_reading import read_footers, read_log
from bucketlog.tiered_storage.segment import Seal, encode_seal
from tests.rigs.readable_log import readable_in
from tests.rigs.written_log import WrittenLog, some_records


@pytest.fixture
def log() -> WrittenLog:
    """Topic `t` with two partitions; its fact is in the first segment."""
    log = WrittenLog(MemoryBucket())
    log.create_topic("t", 2)
    log.flush()
    return log


def chains(log: WrittenLog) -> dict[WriterId, Chain]:
    return read_chains(log.bucket.list(keys.LOG))


def cut(
    log: WrittenLog, first: dict[WriterId, Chain], second: dict[WriterId, Chain]
) -> LogSnapshot:
    footers = read_footers(log.bucket, wanted_footers(second))
    return cut_log(first, second, {index.segment: index for index in footers})


def ends(log: WrittenLog, snapshot: LogSnapshot) -> list[tuple[int, int]]:
    """(end offset, batches withheld) of both partitions of `t`."""
    parts = readable_in(snapshot)
    found = [parts.get(log.partition("t", number)) for number in (0, 1)]
    return [(part.end_offset, part.withheld) if part else (0, 0) for part in found]


def test_an_empty_bucket_is_an_empty_log() -> None:
    snapshot = read_log(MemoryBucket())
    assert snapshot.cut is None
    assert snapshot.segments == ()
    assert readable_in(snapshot) == {}


def test_a_log_at_rest_is_read_to_its_end(log: WrittenLog) -> None:
    for size in (3, 4):
        log.append("t", 0, some_records(size))
        log.append("t", 1, some_records(1))
        log.flush()
    snapshot = read_log(log.bucket)
    assert ends(log, snapshot) == [(7, 0), (2, 0)]
    assert [index.ticket.number for index in snapshot.segments] == [0, 1, 2]
    assert fold(snapshot.segments).topics[log.topics["t"][0]].name == "t"
    batches = readable_in(snapshot)[log.partition("t", 0)].batches
    assert [(batch.segment.seq, batch.row.base_offset) for batch in batches] == [(1, 0), (2, 3)]


def test_a_segment_in_flight_stops_reading_until_it_lands(log: WrittenLog) -> None:
    other = log.register()
    log.append("t", 0, some_records(2))
    in_flight = log.reserve(other)
    log.append("t", 0, some_records(3))
    log.append("t", 1, some_records(1))
    log.flush()
    assert ends(log, read_log(log.bucket)) == [(0, 1), (1, 0)]
    log.append("t", 0, some_records(1))
    log.flush()
    assert ends(log, read_log(log.bucket)) == [(0, 2), (1, 0)]
    log.land(in_flight)
    assert ends(log, read_log(log.bucket)) == [(6, 0), (1, 0)]


def test_a_void_reservation_is_crossed_once_a_stamp_lies_beyond_it(log: WrittenLog) -> None:
    other = log.register()
    log.append("t", 0, some_records(2))
    lost = log.reserve(other)
    log.append("t", 0, some_records(3))
    log.flush()
    log.void(lost)
    assert ends(log, read_log(log.bucket)) == [(0, 1), (0, 0)]
    log.stamp("t", 0)
    log.flush()
    assert ends(log, read_log(log.bucket)) == [(5, 0), (0, 0)]


def test_a_stamp_inside_a_gap_does_not_open_it(log: WrittenLog) -> None:
    first, second = log.register(), log.register()
    log.append("t", 0, some_records(2))
    void = log.reserve(first)
    log.void(void)
    log.append("t", 0, some_records(2))
    in_flight = log.reserve(second)
    log.append("t", 0, some_records(1))
    log.flush()
    snapshot = read_log(log.bucket)
    assert snapshot.hw_stamps[log.partition("t", 0)] == 2
    assert ends(log, snapshot) == [(0, 1), (0, 0)]
    log.land(in_flight)
    assert ends(log, read_log(log.bucket)) == [(5, 0), (0, 0)]


def test_stamps_of_segments_that_are_not_committed_count_for_nothing(log: WrittenLog) -> None:
    sealed, other = log.register(), log.register()
    log.append("t", 1, some_records(1))
    void = log.reserve(sealed)
    log.append("t", 0, some_records(2))
    in_flight = log.reserve(other)
    log.append("t", 0, some_records(1))
    log.flush()
    log.open.pop(in_flight.index.segment)  # a sequencer that forgot it, and stamps beyond it
    log.stamp("t", 0)
    late = log.reserve(sealed)
    assert late.index.partitions[0].hw_stamp == 3
    log.void(void)
    log.land(late, publish=False)
    assert ends(log, read_log(log.bucket)) == [(0, 1), (0, 0)]


def test_stamps_that_only_pass_2_saw_count_for_nothing(log: WrittenLog) -> None:
    other = log.register()
    log.append("t", 0, some_records(2))
    in_flight = log.reserve(other)
    log.append("t", 0, some_records(1))
    log.flush()
    first = chains(log)
    early = list(log.bucket.list(keys.LOG))  # pass 2 lists the other writer's chain here
    log.land(in_flight)
    log.stamp("t", 0)
    log.flush()
    late = list(log.bucket.list(keys.chain(log.first_writer)))
    second = read_chains({info.key: info for info in early + late}.values())
    snapshot = cut(log, first, second)
    assert log.partition("t", 0) not in {
        part for part, stamp in snapshot.hw_stamps.items() if stamp > 0
    }
    assert ends(log, snapshot) == [(0, 1), (0, 0)]
    assert ends(log, read_log(log.bucket)) == [(3, 0), (0, 0)]


def test_objects_after_a_seal_are_void(log: WrittenLog) -> None:
    other = log.register()
    log.append("t", 0, some_records(2))
    first = log.reserve(other)
    log.append("t", 0, some_records(2))
    second = log.reserve(other)
    log.void(first)
    log.land(second, publish=False)
    log.append("t", 0, some_records(1))
    log.flush()
    snapshot = read_log(log.bucket)
    assert ends(log, snapshot) == [(5, 0), (0, 0)]
    (batch,) = readable_in(snapshot)[log.partition("t", 0)].batches
    assert batch.row.base_offset == 4


def test_a_segment_that_overtook_another_of_its_chain_waits(log: WrittenLog) -> None:
    log.append("t", 0, some_records(1))
    slow = log.reserve()
    log.append("t", 1, some_records(1))
    fast = log.reserve()
    log.land(fast, publish=False)
    assert ends(log, read_log(log.bucket)) == [(0, 0), (0, 0)]
    log.land(slow)
    assert ends(log, read_log(log.bucket)) == [(1, 0), (1, 0)]


def test_what_pass_2_alone_saw_never_lacks_its_topic(log: WrittenLog) -> None:
    """Pass 2 lists the second writer's chain after its topic was created in the first's."""
    other = log.register()
    first = chains(log)
    early = list(log.bucket.list(keys.chain(log.first_writer)))
    log.create_topic("late")
    log.flush()
    log.append("late", 0, some_records(1))
    log.flush(other)
    late = list(log.bucket.list(keys.chain(other)))
    snapshot = cut(log, first, read_chains(early + late))
    assert {topic.name for topic in fold(snapshot.segments).topics.values()} == {"t"}
    assert {key.topic_id for key in readable_in(snapshot)} == {log.topics["t"][0]}


def test_topics_deleted_grown_and_made_again(log: WrittenLog) -> None:
    log.append("t", 0, some_records(2))
    log.flush()
    log.delete_topic("t")
    log.flush()
    log.create_topic("t", 1)
    log.add_partitions("t", 3)
    log.append("t", 2, some_records(4))
    log.flush()
    snapshot = read_log(log.bucket)
    state = fold(snapshot.segments)
    assert [(topic.name, topic.partitions) for topic in state.topics.values()] == [("t", 3)]
    assert readable_in(snapshot)[log.partition("t", 2)].end_offset == 4


@pytest.mark.parametrize("guess", [1, 16, 100, 1 << 20])
def test_footers_longer_than_the_guess_are_fetched_again(log: WrittenLog, guess: int) -> None:
    for _ in range(50):
        log.append("t", 0, some_records(1))
    log.flush()
    snapshot = read_log(log.bucket, footer_guess_bytes=guess)
    assert ends(log, snapshot) == [(50, 0), (0, 0)]


def test_an_object_that_disappears_between_the_passes_is_named(log: WrittenLog) -> None:
    log.append("t", 0, some_records(1))
    key = log.flush().key
    first = chains(log)
    log.bucket.delete([key])
    with pytest.raises(CorruptObjectError, match=key):
        cut(log, first, chains(log))


def test_a_hole_in_a_chain_that_was_visible_is_named(log: WrittenLog) -> None:
    other = log.register()
    log.append("t", 0, some_records(1))
    key = log.flush(other).key
    log.append("t", 1, some_records(1))
    log.flush(other)
    log.append("t", 1, some_records(1))
    log.flush()
    log.bucket.delete([key])
    with pytest.raises(CorruptObjectError, match="missing") as caught:
        read_log(log.bucket)
    assert caught.value.key == key


def test_a_hole_before_a_seal_is_named(log: WrittenLog) -> None:
    seal = Seal(SegmentId(log.first_writer, 2), 2, 0)
    log.bucket.create(keys.segment(seal.segment), [encode_seal(seal)])
    with pytest.raises(CorruptObjectError, match="missing") as caught:
        read_log(log.bucket)
    assert caught.value.key == keys.segment(SegmentId(log.first_writer, 1))


def test_a_seal_that_lands_during_a_listing_is_no_damage(log: WrittenLog) -> None:
    """A listing passes a key before its object lands, and then sees the seal after it."""
    log.append("t", 0, some_records(1))
    first = chains(log)
    log.flush()
    seal = Seal(SegmentId(log.first_writer, 2), 2, 0)
    log.bucket.create(keys.segment(seal.segment), [encode_seal(seal)])
    seen = [info for info in log.bucket.list(keys.LOG) if not info.key.endswith("1")]
    assert cut(log, first, read_chains(seen)).segments[-1].segment.seq == 0


def test_a_damaged_footer_is_named(log: WrittenLog) -> None:
    reserved = log.reserve()
    data = bytearray(reserved.data)
    data[-30] ^= 1
    log.bucket.create(reserved.key, [data])
    with pytest.raises(CorruptObjectError, match="checksum") as caught:
        read_log(log.bucket)
    assert caught.value.key == reserved.key


def test_a_segment_under_anothers_key_is_named(log: WrittenLog) -> None:
    reserved = log.reserve()
    other = log.register()
    key = keys.segment(SegmentId(other, 0))
    log.bucket.create(key, [reserved.data])
    with pytest.raises(CorruptObjectError, match="its footer says") as caught:
        read_log(log.bucket)
    assert caught.value.key == key


def test_a_chain_without_a_registration_is_refused(log: WrittenLog) -> None:
    log.bucket.delete([keys.writer_registration(1, log.first_writer)])
    with pytest.raises(InvalidDataError, match="never registered"):
        read_log(log.bucket)


def test_two_clusters_in_one_prefix_are_found() -> None:
    bucket = MemoryBucket()
    WrittenLog(bucket).flush()
    second = WrittenLog(bucket, epoch=2)
    second.epoch = 1
    second.flush()
    with pytest.raises(InvalidDataError, match="one ticket"):
        read_log(bucket)


def test_a_tier_that_ends_inside_of_a_batch_is_refused(log: WrittenLog) -> None:
    log.append("t", 0, some_records(4))
    log.flush()
    tiers = {log.partition("t", 0): PartitionTier(0, 2, ())}
    with pytest.raises(InvalidDataError, match="ends at 2, inside of a batch"):
        readable(read_log(log.bucket), tiers)


def test_a_gap_at_the_end_of_a_tier_waits_for_a_stamp(log: WrittenLog) -> None:
    """Gaps below it are void: who made it has seen that."""
    other = log.register()
    log.append("t", 0, some_records(2))
    slow = log.reserve(other)
    log.append("t", 0, some_records(3))
    log.flush()
    part = log.partition("t", 0)

    def shown(tier: PartitionTier) -> tuple[list[int], int, int]:
        found = readable(read_log(log.bucket), {part: tier})[part]
        bases = [batch.row.base_offset for batch in found.batches]
        return bases, found.end_offset, found.withheld

    assert shown(PartitionTier(0, 0, ())) == ([], 0, 1)
    assert shown(PartitionTier(0, 1, ())) == ([], 1, 1)
    assert shown(PartitionTier(0, 2, ())) == ([2], 5, 0)
    assert shown(PartitionTier(2, 0, ())) == ([2], 5, 0)
    assert shown(PartitionTier(3, 0, ())) == ([2], 5, 0)
    assert shown(PartitionTier(0, 5, ())) == ([], 5, 0)
    log.void(slow)


class ChangingBucket(MemoryBucket):
    """`before_get`: by key, what happens just before the first GET of the object."""

    def __init__(self) -> None:
        super().__init__()
        self.before_get: dict[str, Callable[[], None]] = {}

    def get(self, key: str, span: Span | Suffix | None = None) -> Body:
        self.before_get.pop(key, lambda: None)()
        return super().get(key, span)


def test_a_void_segment_that_is_deleted_meanwhile_is_not_damage() -> None:
    """It was listed past a hole, which became a seal. The reading took longer than the age of
    deletions."""
    bucket = ChangingBucket()
    log = WrittenLog(bucket)
    log.create_topic("t", 2)
    log.flush()
    other = log.register()
    log.append("t", 1, some_records(2))
    hole = log.reserve(other)
    log.append("t", 1, some_records(1))
    past_hole = log.reserve(other)
    log.land(past_hole, publish=False)
    log.append("t", 0, some_records(3))
    log.flush()

    def delete_void() -> None:
        log.void(hole)
        bucket.delete([past_hole.key])

    bucket.before_get[past_hole.key] = delete_void
    assert ends(log, read_log(bucket)) == [(3, 0), (0, 0)]
    assert not bucket.before_get


def test_a_committed_segment_that_is_gone_meanwhile_is_damage() -> None:
    bucket = ChangingBucket()
    log = WrittenLog(bucket)
    log.create_topic("t")
    segment = log.flush()
    bucket.before_get[segment.key] = lambda: bucket.delete([segment.key])
    with pytest.raises(CorruptObjectError, match="it was listed and is gone"):
        read_log(bucket)
