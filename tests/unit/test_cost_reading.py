"""The load of a log, read again and again: each footer once, whatever stops a reading."""

import threading

import pytest

from bucketlog.console.aged_value import AgedValue, StillReadingError
from bucketlog.console.page_deadline import Deadline
from bucketlog.cost.assumptions import Assumptions
from bucketlog.cost.load import CLUSTER
from bucketlog.cost.of_bucket import LoadReader, usage_of
from bucketlog.log_format.errors import BucketError, BucketlogError
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from bucketlog.tiered_storage.bucket import Body, Span, Suffix
from tests.rigs.checkpoints import write_checkpoint
from tests.rigs.patience import PATIENCE_S, eventually
from tests.rigs.written_log import WrittenLog, some_records
from tests.unit.test_console_times import SteppedClock, console_of
from tests.unit.test_cost import DAY
from tests.unit.test_verify import IDENTITY

GIVEN = Assumptions()


class CountedBucket(MemoryBucket):
    """Counts the reads of log segments. `gone` is deleted at the first read of a log segment, and
    the read number `fails_at` (from 1) fails."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[str] = []
        self.gone = ""
        self.fails_at = 0
        self.opened: threading.Event | None = None

    def get(self, key: str, span: Span | Suffix | None = None) -> Body:
        if key.startswith(keys.LOG):
            if self.opened is not None:
                assert self.opened.wait(PATIENCE_S)
            self.delete([self.gone] if self.gone else [])
            self.read.append(key)
            if len(self.read) == self.fails_at:
                raise BucketError("the bucket is away")
        return super().get(key, span)


def covered_log(bucket: MemoryBucket, segments: int = 5) -> list[str]:
    """Write a log of which a checkpoint covers all. Return the keys of its segments of batches."""
    assert bucket.create(keys.CLUSTER, [IDENTITY.model_dump_json().encode()])
    log = WrittenLog(bucket)
    log.create_topic("t")
    log.flush()
    written = []
    for _ in range(segments):
        log.append("t", 0, some_records(2))
        written.append(log.flush().key)
    write_checkpoint(bucket)
    return written


def test_each_footer_is_read_once() -> None:
    bucket = CountedBucket()
    written = covered_log(bucket)
    bucket.read.clear()
    reader = LoadReader(bucket, GIVEN, footers_at_once=2)
    first = reader.read()
    assert first == usage_of(bucket, GIVEN)
    bucket.read.clear()
    assert reader.read() == first
    assert bucket.read == []
    assert reader.progress == (len(written) + 1, len(written) + 1)


def test_new_segments_are_added_and_deleted_ones_left_out() -> None:
    bucket = CountedBucket()
    written = covered_log(bucket)
    reader = LoadReader(bucket, GIVEN)
    before = reader.read()
    bucket.delete(written[:2])
    bucket.read.clear()
    after = reader.read()
    assert after == usage_of(bucket, GIVEN)
    assert after.load[DAY, "t"].puts == before.load[DAY, "t"].puts - 2
    assert after.load[DAY, CLUSTER] == before.load[DAY, CLUSTER]


def test_a_reading_that_failed_is_continued() -> None:
    bucket = CountedBucket()
    written = covered_log(bucket)
    bucket.read.clear()
    bucket.fails_at = 5
    reader = LoadReader(bucket, GIVEN, footers_at_once=1)
    with pytest.raises(BucketError):
        reader.read()
    assert reader.progress == (4, len(written) + 1)
    assert reader.read() == usage_of(bucket, GIVEN)
    assert len(bucket.read) == len(written) + 2 + (len(written) + 1), "one footer was read twice"


def test_a_segment_that_is_deleted_meanwhile_is_left_out() -> None:
    bucket = CountedBucket()
    written = covered_log(bucket)
    bucket.gone = written[0]
    reader = LoadReader(bucket, GIVEN, footers_at_once=1)
    usage = reader.read()
    assert reader.progress == (len(written), len(written))
    assert usage.load[DAY, "t"].puts == len(written) - 1


def test_a_page_says_how_far_the_reading_is() -> None:
    bucket = CountedBucket()
    covered_log(bucket)
    bucket.opened = threading.Event()
    console = console_of(bucket, SteppedClock(), refresh_wait_ms=0)
    with pytest.raises(StillReadingError):
        console.usage()
    try:
        eventually(lambda: "0 of 6 log segments" in refused(console.usage))
    finally:
        bucket.opened.set()
    eventually(
        lambda: console.usage().usage == usage_of(bucket, GIVEN), despite=(StillReadingError,)
    )


def refused(call: object) -> str:
    try:
        call()  # type: ignore[operator]  # a page's function
    except BucketlogError as error:
        return str(error)
    return ""


def test_work_that_took_too_long_is_continued_at_once() -> None:
    clock, left = SteppedClock(), [3]

    def make(deadline: Deadline) -> int:
        left[0] -= 1
        if left[0]:
            clock.now += 1_000
            deadline.check()
        return 7

    def work() -> Deadline:
        return Deadline(clock.s, 500, "read_ms_max")

    value: AgedValue[int] = AgedValue(60_000, clock.ms, work, is_resumable=True)
    for _ in range(2):
        assert "READ_MS_MAX" in refused(lambda: value.get(make))
    assert value.get(make) == 7
    assert value.get(make) == 7
    assert left == [0], "a value is kept for its age"
