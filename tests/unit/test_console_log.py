"""The console's view of a log agrees with the doctor, wherever batches are; bounded searches."""

from collections.abc import Callable
from uuid import UUID

import pytest

from bucketlog.console.bucket_page import bucket
from bucketlog.console.groups import GroupWait, committed_rows, group_rows, group_waits
from bucketlog.console.log_view import ConsoleLog, LogView
from bucketlog.console.message_pages import messages, record
from bucketlog.console.page_query import PageQuery
from bucketlog.console.pages import Console, UnknownNameError, overview, topic
from bucketlog.console.record_rows import RowPreviews
from bucketlog.console.record_search import (
    BatchLimits,
    RecordFilter,
    SearchEnd,
    SearchLimits,
    search,
)
from bucketlog.console.settings import ConsoleSettings
from bucketlog.console.topics import topic_rows
from bucketlog.inspect.doctor.of_bucket import digest_of_bucket
from bucketlog.inspect.garbage import find_garbage
from bucketlog.log_format.batch import CRC_START, HEADER_LENGTH, Codec
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_format.model import TopicIdPartition
from bucketlog.log_format.records import DecodedRecord, encode_batch
from bucketlog.log_reader.batch_scan import scan_batches
from bucketlog.metadata.facts import OffsetRow, OffsetsCommitted
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from bucketlog.tiered_storage.counting import CountingSyncBucket
from bucketlog.tiered_storage.encryption.key_service import KeyAccess
from tests.rigs.checkpoints import write_checkpoint
from tests.rigs.written_log import START_MS, WrittenLog, some_records
from tests.rigs.written_tier import Batch, WrittenTier, batches_in
from tests.unit.test_console_times import SteppedClock
from tests.unit.test_verify import IDENTITY

LIMITS = SearchLimits(
    rows=50,
    records=1_000,
    bytes=1 << 20,
    seconds=60.0,
    batch=BatchLimits(1 << 20, 1_000),
    unreadable=10,
)
PREVIEWS = RowPreviews(100)
NOW_MS = START_MS + 3_600_000


def clock(*times_s: float) -> Callable[[], float]:
    """The last time repeats."""
    ticks = iter(times_s)
    last = [0.0]

    def now_s() -> float:
        last[0] = next(ticks, last[0])
        return last[0]

    return now_s


@pytest.fixture
def log() -> WrittenLog:
    store = MemoryBucket()
    assert store.create(keys.CLUSTER, [IDENTITY.model_dump_json().encode()])
    return WrittenLog(store)


@pytest.fixture
def mixed(log: WrittenLog) -> WrittenLog:
    """Topic t: 12 batches of 3 records, of which 4 stand in objects of the tier, 4 in a manifest's,
    and a group; topic u: a committed and an aborted transaction; an empty topic."""
    log.create_topic("t", 2)
    log.create_topic("u")
    log.create_topic("empty", 3)
    batches: list[Batch] = []
    for number in range(12):
        log.append("t", 0, some_records(3, tag=str(number)), codec=Codec.ZSTD)
        log.append("t", 1, some_records(1, tag=str(number)))
        found = batches_in(log.flush())
        batches += [batch for key, batch in found if key.partition == 0]
    for producer, commit in ((7, True), (8, False)):
        log.append("u", 0, some_records(5), producer_id=producer, transactional=True)
        log.end_transaction(producer, commit=commit)
        log.flush()
    tier, part = WrittenTier(log), log.partition("t", 0)
    rows = [tier.split(part, [batches[at]], at * 3) for at in range(8)]
    tier.list_in_manifest(part, rows[:4])
    topic_id, _ = log.topics["t"]
    log.fact(
        OffsetsCommitted(
            group="g",
            offsets=(OffsetRow(UUID(bytes=topic_id), 0, 30, -1, "meta"),),
            committed_ms=START_MS,
            expires_ms=None,
        )
    )
    log.flush()
    return log


def view_of(log: WrittenLog) -> LogView:
    return ConsoleLog(log.bucket, "b", refresh_ms=0, now_ms=lambda: NOW_MS).look()


def console_of(log: WrittenLog, **settings: int) -> Console:
    return Console(
        log.bucket,
        "memory://b",
        ConsoleSettings.model_validate(settings),
        KeyAccess(),
        1,
        lambda: NOW_MS,
        clock(0.0),
    )


def test_counts_are_the_doctors(mixed: WrittenLog) -> None:
    digest = digest_of_bucket(mixed.bucket)
    view = view_of(mixed)
    console = console_of(mixed)
    assert {row.name for row in topic_rows(view)} == set(digest.topics)
    for name, expected in digest.topics.items():
        shown = topic(console, PageQuery({"name": name}))
        got = [
            (each.figures.earliest, each.figures.latest, each.records)
            for each in shown["partitions"]
        ]
        assert got == [(one.earliest, one.latest, one.records) for one in expected.partitions]


@pytest.mark.parametrize("checkpointed", [False, True])
def test_a_checkpoint_does_not_show(mixed: WrittenLog, checkpointed: bool) -> None:
    before = topic_rows(view_of(mixed))
    if checkpointed:
        write_checkpoint(mixed.bucket)
    assert topic_rows(view_of(mixed)) == before


def test_a_cut_batch_is_not_counted_exactly(mixed: WrittenLog) -> None:
    WrittenTier(mixed).begin_at(mixed.partition("t", 0), 25)  # inside of a batch of a log segment
    mixed.flush()
    (first, second) = topic(console_of(mixed), PageQuery({"name": "t"}))["partitions"]
    assert (first.records, first.figures.offsets) == (None, 11)
    assert second.records == 12
    (row,) = [row for row in topic_rows(view_of(mixed)) if row.name == "t"]
    assert not row.is_exact
    assert row.records >= digest_of_bucket(mixed.bucket).topics["t"].partitions[0].records


def test_indexes_are_read_up_to_the_limit(mixed: WrittenLog) -> None:
    shown = topic(console_of(mixed, index_reads_max=0), PageQuery({"name": "t"}))
    assert [each.records for each in shown["partitions"]] == [None, 12]


def values_from(log: WrittenLog, name: str, number: int, start: int) -> list[tuple[int, str]]:
    view = view_of(log)
    key = log.partition(name, number)
    report = search(
        log.bucket,
        view.parts([key])[key],
        start,
        RecordFilter(),
        LIMITS,
        PREVIEWS,
        seals=None,
        now_s=clock(0),
    )
    assert report.end is SearchEnd.PARTITION
    return [(row.offset, row.value.text) for row in report.rows]


@pytest.mark.parametrize("start", [0, 1, 11, 12, 13, 23, 24, 30, 35, 36, 99])
def test_every_record_is_found_from_any_offset(mixed: WrittenLog, start: int) -> None:
    expected = [(at, "" if at % 3 == 5 else f"{at // 3}-value-{at % 3}") for at in range(start, 36)]
    assert values_from(mixed, "t", 0, start) == expected


def test_aborted_records_and_markers_are_not_shown(mixed: WrittenLog) -> None:
    assert [offset for offset, _ in values_from(mixed, "u", 0, 0)] == [0, 1, 2, 3, 4]


def search_t(
    log: WrittenLog, limits: SearchLimits, wanted: RecordFilter, now_s: Callable[[], float]
) -> tuple[SearchEnd, list[int], int]:
    key = log.partition("t", 0)
    part = view_of(log).parts([key])[key]
    report = search(log.bucket, part, 0, wanted, limits, PREVIEWS, seals=None, now_s=now_s)
    return report.end, [row.offset for row in report.rows], report.next_offset


def test_a_search_ends_at_its_rows_and_continues(mixed: WrittenLog) -> None:
    found = search_t(mixed, LIMITS._replace(rows=4), RecordFilter(), clock(0))
    assert found == (SearchEnd.ROWS, [0, 1, 2, 3], 4)


def test_a_search_ends_at_its_bytes(mixed: WrittenLog) -> None:
    found = search_t(mixed, LIMITS._replace(bytes=1), RecordFilter(), clock(0))
    assert found == (SearchEnd.BYTES, [0, 1, 2], 3)


def test_a_search_ends_after_its_time(mixed: WrittenLog) -> None:
    found = search_t(mixed, LIMITS._replace(seconds=5), RecordFilter(), clock(0, 4, 6))
    assert found == (SearchEnd.TIME, [0, 1, 2, 3, 4, 5], 6)


def test_a_search_filters_by_key_and_value(mixed: WrittenLog) -> None:
    _, by_value, _ = search_t(mixed, LIMITS, RecordFilter(value=b"7-value"), clock(0))
    assert by_value == [21, 22, 23]
    _, both, _ = search_t(mixed, LIMITS, RecordFilter(b"key-1", b"7-value"), clock(0))
    assert both == [22]


def test_a_bad_batch_is_named_and_passed(log: WrittenLog) -> None:
    log.create_topic("t")
    log.append("t", 0, some_records(2))
    key = log.partition("t", 0)
    good = encode_batch([DecodedRecord(2, 0, None, b"x" * 100, ())])
    log.append_batch(key, with_bad_records(good))
    log.next_offset[key] = 3
    log.append("t", 0, some_records(2))
    log.flush()
    shown = messages(console_of(log), PageQuery({"topic": "t", "seek": "oldest"}))
    (bad,) = shown["report"].unreadable
    assert (bad.first, bad.end) == (2, 3)
    assert bad.key.startswith("log/")
    assert [row.offset for row in shown["report"].rows] == [0, 1, 3, 4]


def with_bad_records(batch: bytes) -> bytes:
    """The same batch with records that do not decode, and a CRC that holds."""
    from crc32c import crc32c

    changed = bytearray(batch)
    changed[HEADER_LENGTH] = 0xFF
    changed[17:21] = crc32c(bytes(changed[CRC_START:])).to_bytes(4, "big")
    return bytes(changed)


def test_a_batch_that_grows_too_large_is_not_decompressed(log: WrittenLog) -> None:
    log.create_topic("t")
    log.append("t", 0, [DecodedRecord(0, 0, None, bytes(1 << 20), ())], codec=Codec.ZSTD)
    log.flush()
    shown = messages(
        console_of(log, batch_decompressed_bytes_max=1 << 16),
        PageQuery({"topic": "t", "seek": "oldest"}),
    )
    assert len(shown["report"].unreadable) == 1
    assert shown["report"].rows == []


def test_a_record_has_its_place(mixed: WrittenLog) -> None:
    for offset in (0, 13, 35):
        found = record(console_of(mixed), PageQuery({"topic": "t", "offset": str(offset)}))["found"]
        batch = found.batch
        stored = bytes(mixed.bucket.get(batch.key).data)
        assert stored[batch.position : batch.position + batch.length] == bytes(batch.data)
        assert batch.header.base_offset <= offset < batch.header.next_offset
        assert batch.key.startswith("log/" if offset >= 24 else "segments/")
    with pytest.raises(UnknownNameError, match="no record has offset 5 "):
        record(console_of(mixed), PageQuery({"topic": "u", "offset": "5"}))  # a marker
    with pytest.raises(UnknownNameError):
        record(console_of(mixed), PageQuery({"topic": "t", "offset": "36"}))


def test_a_search_may_begin_at_a_time(mixed: WrittenLog) -> None:
    query = {"topic": "t", "seek": "time", "time": str(START_MS + 2_000)}
    assert messages(console_of(mixed), PageQuery(query))["report"].begin == 2
    query["time"] = str(NOW_MS)
    shown = messages(console_of(mixed), PageQuery(query))
    report = shown["report"]
    assert (shown["is_after_all"], report.begin, report.rows) == (True, 36, [])


def test_scanning_reads_no_more_than_it_is_asked_for(mixed: WrittenLog) -> None:
    key = mixed.partition("t", 1)
    part = view_of(mixed).parts([key])[key]
    counted = CountingSyncBucket(mixed.bucket)
    scan = scan_batches(counted, part, 0)
    next(scan)
    assert counted.snapshot().gets == 1


def test_lag_is_in_records_and_in_time(mixed: WrittenLog) -> None:
    view = view_of(mixed)
    (row,) = group_rows(view)
    assert (row.name, row.partitions, row.lag, row.committed_ms) == ("g", 1, 6, START_MS)
    key = TopicIdPartition(mixed.topics["t"][0], 0)
    (committed,) = committed_rows(view, "g", [key], NOW_MS, stuck_after_ms=1)
    assert (committed.committed, committed.latest, committed.metadata) == (30, 36, "meta")
    assert committed.unread_ms == NOW_MS - (START_MS + 2_000)  # the highest of its batch
    assert group_waits(view, ["g", "unknown"], NOW_MS, stuck_after_ms=1) == {
        "g": GroupWait(committed.unread_ms, 1),
        "unknown": GroupWait(None, 0),
    }


def test_the_bucket_page_agrees_with_the_listing_and_the_garbage(mixed: WrittenLog) -> None:
    mixed.delete_topic("u")
    mixed.flush()
    write_checkpoint(mixed.bucket)
    shown = bucket(console_of(mixed), PageQuery({}))
    listed = {kind.kind: kind.objects for kind in shown["kinds"]}
    assert listed == {kind: len(list(mixed.bucket.list(kind))) for kind in listed}
    garbage = find_garbage(mixed.bucket, safety_age_ms=1)
    assert sum(count for _, _, count, _ in shown["due"]) == len(garbage.garbage) > 0


def test_too_many_objects_are_an_error_that_names_the_setting(mixed: WrittenLog) -> None:
    with pytest.raises(ConfigurationError, match="BUCKETLOG_CONSOLE_OBJECTS_MAX"):
        overview(console_of(mixed, objects_max=3), PageQuery({}))


def test_an_unchanged_log_is_folded_once(mixed: WrittenLog) -> None:
    log = ConsoleLog(mixed.bucket, "b", refresh_ms=0, now_ms=lambda: NOW_MS)
    first = log.look()
    assert log.look().state is first.state
    mixed.append("t", 0, some_records(1))
    mixed.flush()
    assert log.look().state is not first.state


def test_a_view_is_kept_until_it_is_old(mixed: WrittenLog) -> None:
    clock = SteppedClock()
    log = ConsoleLog(mixed.bucket, "b", refresh_ms=1_000, now_ms=clock.ms)
    found = []
    for clock.now in (1_000, 1_999, 2_000):
        found.append(log.look().read_ms)
    assert found == [1_000, 1_000, 2_000]
