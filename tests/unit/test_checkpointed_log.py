"""The log from a checkpoint on: which requests are made, what is passed over, which gaps are
crossed."""

import logging
from collections.abc import Sequence

import pytest

from bucketlog.log_format.checkpoint import Checkpoint
from bucketlog.log_format.errors import CorruptObjectError, InvalidDataError, ObjectNotFoundError
from bucketlog.log_format.model import SegmentIndex
from bucketlog.metadata.checkpoint import restored
from bucketlog.metadata.fold import fold
from bucketlog.metadata.view import View
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from bucketlog.tiered_storage.bucket import Body, Span, Suffix
from bucketlog.tiered_storage.checkpoint_cut import cut_prefix
from bucketlog.tiered_storage.log_cut_reading import read_checkpoint, read_log, read_tails
from bucketlog.tiered_storage.segment import SEAL_LENGTH
from tests.rigs.checkpoints import indexes_of, write_checkpoint
from tests.rigs.readable_log import readable_in
from tests.rigs.written_log import WrittenLog, some_records


class WatchedBucket(MemoryBucket):
    """Knows the keys that were read; `gone` is listed, and deleted before it is read."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[str] = []
        self.gone = ""

    def get(self, key: str, span: Span | Suffix | None = None) -> Body:
        self.read.append(key)
        if key == self.gone:
            raise ObjectNotFoundError(key)
        return super().get(key, span)


@pytest.fixture
def bucket() -> WatchedBucket:
    return WatchedBucket()


@pytest.fixture
def log(bucket: WatchedBucket) -> WrittenLog:
    """Topic t, four segments with a batch each; the last one's low ticket is its own."""
    written = WrittenLog(bucket)
    written.create_topic("t")
    for _ in range(4):
        written.append("t", 0, some_records(2))
        written.flush()
    return written


def spoil(bucket: MemoryBucket, key: str) -> None:
    data = bytearray(bucket.get(key).data)
    data[-1] ^= 1
    bucket.delete([key])
    assert bucket.create(key, [bytes(data)])


def ends(bucket: MemoryBucket) -> list[tuple[int, int]]:
    """Ends of the partitions that have batches and how many of these are withheld."""
    parts = readable_in(read_log(bucket)).values()
    return [(part.end_offset, part.withheld) for part in parts if part.end_offset]


def gaps(segments: Sequence[SegmentIndex], checkpoint: Checkpoint | None = None) -> list[int]:
    """The ends of the unproven gaps in the view of a broker."""
    ordered = sorted(segments, key=lambda index: index.ticket)
    return list(View.of(ordered, checkpoint).gaps.ends.values())


def test_only_what_is_after_the_checkpoint_is_read(bucket: WatchedBucket, log: WrittenLog) -> None:
    made = write_checkpoint(bucket)
    assert (made.ticket.number, made.segments) == (3, 3)
    before = ends(bucket)
    bucket.read.clear()
    log.append("t", 0, some_records(1))
    added = log.flush()
    assert ends(bucket) == [(before[0][0] + 1, 0)]
    last_covered = keys.segment(added.index.segment._replace(seq=3))
    assert sorted(bucket.read) == sorted([keys.checkpoint(made.ticket), last_covered, added.key])


def test_a_checkpoint_alone_is_a_log(bucket: WatchedBucket, log: WrittenLog) -> None:
    log.void(log.reserve())
    made = write_checkpoint(bucket, active_epoch=2)
    assert (tuple(made.ticket), made.segments) == ((2, 0), 4)
    snapshot = read_log(bucket)
    assert (snapshot.cut, snapshot.is_empty) == (None, False)
    assert ends(bucket) == [(8, 0)]


def test_a_damaged_one_is_passed_over_and_named(
    bucket: WatchedBucket, log: WrittenLog, caplog: pytest.LogCaptureFixture
) -> None:
    older = write_checkpoint(bucket)
    log.append("t", 0, some_records(1))
    log.flush()
    newer = write_checkpoint(bucket)
    expected = ends(bucket)
    spoil(bucket, keys.checkpoint(newer.ticket))
    with caplog.at_level(logging.ERROR):
        assert read_checkpoint(bucket) == older
    assert keys.checkpoint(newer.ticket) in caplog.text
    assert "damaged" in caplog.text
    assert ends(bucket) == expected
    spoil(bucket, keys.checkpoint(older.ticket))
    assert read_checkpoint(bucket) is None
    assert ends(bucket) == expected


def test_one_that_goes_while_it_is_read_makes_room_for_the_next(
    bucket: WatchedBucket, log: WrittenLog
) -> None:
    older = write_checkpoint(bucket)
    log.append("t", 0, some_records(1))
    log.flush()
    gone = keys.checkpoint(write_checkpoint(bucket).ticket)
    bucket.gone = gone
    assert read_checkpoint(bucket) == older
    assert bucket.read[-2:] == [gone, keys.checkpoint(older.ticket)]


def test_its_high_watermark_crosses_a_gap_that_no_stamp_reaches(
    bucket: WatchedBucket, log: WrittenLog
) -> None:
    """A void reservation, and a batch reserved while that was open; the partition is idle since."""
    other = log.register()
    log.append("t", 0, some_records(3))
    lost = log.reserve(other)
    log.append("t", 0, some_records(1))
    log.flush()
    log.void(lost)
    log.create_topic("u")
    log.flush()
    log.create_topic("v")
    log.flush()
    assert ends(bucket) == [(8, 1)]
    tails = read_tails(bucket, None)
    everything = indexes_of(bucket, tails)
    assert gaps(everything) == [11]
    made = write_checkpoint(bucket)
    assert made.segments == 6
    assert ends(bucket) == [(12, 0)]
    rest = [index for index in everything if index.ticket >= made.ticket]
    assert gaps(rest, made) == []
    assert fold(rest, onto=restored(made)).partitions == fold(everything).partitions


def test_a_gap_after_it_waits_for_a_stamp(bucket: WatchedBucket, log: WrittenLog) -> None:
    made = write_checkpoint(bucket)
    other = log.register()
    log.append("t", 0, some_records(3))
    late = log.reserve(other)
    log.append("t", 0, some_records(1))
    log.flush()
    assert ends(bucket) == [(8, 1)]
    tail = indexes_of(bucket, read_tails(bucket, made))
    assert gaps(tail, made) == [11]
    log.land(late)
    assert ends(bucket) == [(12, 0)]


def test_closed_chains_are_not_listed_again(bucket: WatchedBucket, log: WrittenLog) -> None:
    """Nor those of earlier epochs."""
    other = log.register()
    log.append("t", 0, some_records(1))
    log.void(log.reserve(other))
    log.append("t", 0, some_records(1))
    log.flush()
    made = write_checkpoint(bucket)
    assert read_tails(bucket, made).keys() == {log.first_writer}
    log.void(log.reserve())
    later = WrittenLog(bucket, epoch=2)
    made = write_checkpoint(bucket, active_epoch=2)
    assert {row.writer for row in made.writers} == {log.first_writer}
    assert all(row.closed for row in made.writers)
    assert read_tails(bucket, made).keys() == {later.first_writer}


def test_a_chain_that_an_epoch_began_with_has_a_seal(
    bucket: WatchedBucket, log: WrittenLog
) -> None:
    with pytest.raises(CorruptObjectError, match="the seal is missing that epoch 2 began with"):
        write_checkpoint(bucket, active_epoch=2)


def test_tickets_that_do_not_ascend_are_refused(bucket: WatchedBucket, log: WrittenLog) -> None:
    tails = read_tails(bucket, None)
    indexes = indexes_of(bucket, tails)
    names = [index.segment for index in indexes]
    wrong = dict(zip(names, reversed(indexes), strict=True))
    with pytest.raises(CorruptObjectError, match="do not ascend"):
        cut_prefix(indexes[-1].ticket, tails, wrong)


def test_a_hole_after_a_checkpoint_that_covers_what_follows_is_a_loss(
    bucket: WatchedBucket, log: WrittenLog
) -> None:
    write_checkpoint(bucket)
    log.append("t", 0, some_records(1))
    hole = log.reserve()
    log.append("t", 0, some_records(1))
    log.flush()
    assert ends(bucket)
    log.open.clear()
    other = log.register()
    log.append("t", 0, some_records(1))
    log.flush(other)
    with pytest.raises(CorruptObjectError, match="it is missing") as caught:
        read_log(bucket)
    assert caught.value.key == hole.key


def test_a_foreign_key_among_the_checkpoints_is_named(
    bucket: WatchedBucket, log: WrittenLog
) -> None:
    assert bucket.create("checkpoints/latest", [bytes(SEAL_LENGTH)])
    with pytest.raises(InvalidDataError, match="unexpected key"):
        read_log(bucket)
