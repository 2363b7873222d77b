"""`verify_log` on logs with tiers: sound ones pass; what is damaged, gone or another is named."""

from collections.abc import Sequence

import pytest

from bucketlog.inspect.verify import verify_log
from bucketlog.inspect.verify_report import VerifyReport
from bucketlog.log_format.model import TierObject, TierRow, TopicIdPartition
from bucketlog.log_format.records import DecodedRecord, encode_batch
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from bucketlog.tiered_storage.floors import Floor, encode_floor
from tests.models.indexes import swap, swapped
from tests.rigs.checkpoints import write_checkpoint
from tests.rigs.written_log import WrittenLog
from tests.rigs.written_tier import Batch, WrittenTier, batch_of, batches_in
from tests.unit.test_verify import IDENTITY, found, record, replace


class Tiered:
    """Partition 0 of `t`: three batches of two records, of which the tier gets the first two."""

    def __init__(self) -> None:
        self.bucket = MemoryBucket()
        assert self.bucket.create(keys.CLUSTER, [IDENTITY.model_dump_json().encode()])
        self.log = WrittenLog(self.bucket)
        self.log.create_topic("t", 1)
        self.part: TopicIdPartition = self.log.partition("t", 0)
        self.batches: list[Batch] = []
        for text in "abc":
            self.log.append("t", 0, [record(text), record(text * 2)])
            self.batches += [batch for _, batch in batches_in(self.log.flush())]
        self.tier = WrittenTier(self.log)

    def split(self, batches: Sequence[Batch], start: int) -> TierRow:
        row = self.tier.split(self.part, batches, start)
        self.log.flush()
        return row

    def key(self, row: TierRow) -> str:
        return keys.tier_object(TierObject.of(self.part, row))

    def verify(self) -> VerifyReport:
        return verify_log(self.bucket, requests_in_flight=1)


@pytest.fixture
def tiered() -> Tiered:
    return Tiered()


@pytest.fixture
def two(tiered: Tiered) -> tuple[TierRow, TierRow]:
    return tiered.split(tiered.batches[:1], 0), tiered.split(tiered.batches[1:2], 2)


def test_a_sound_tier(tiered: Tiered, two: tuple[TierRow, TierRow]) -> None:
    report = tiered.verify()
    assert report.damage == []
    assert (report.partition_segments, report.manifests, report.unreferenced) == (2, 0, 0)
    tiered.tier.list_in_manifest(tiered.part, two)
    tiered.log.flush()
    report = tiered.verify()
    assert report.damage == []
    assert (report.partition_segments, report.manifests, report.unreferenced) == (2, 1, 0)


def test_what_no_tier_names_is_counted(tiered: Tiered, two: tuple[TierRow, TierRow]) -> None:
    tiered.tier.merge(tiered.part, two)
    tiered.split(tiered.batches[:1], 0)  # late: it does not count
    report = tiered.verify()
    assert report.damage == []
    assert (report.partition_segments, report.unreferenced) == (1, 3)


def test_a_flipped_byte_is_named(tiered: Tiered, two: tuple[TierRow, TierRow]) -> None:
    manifest = tiered.tier.list_in_manifest(tiered.part, two)
    tiered.log.flush()
    for key in (tiered.key(two[0]), tiered.key(manifest)):
        sound = bytes(tiered.bucket.get(key).data)
        for position in range(0, len(sound), 3):
            damaged = bytearray(sound)
            damaged[position] ^= 1
            replace(tiered.bucket, key, bytes(damaged))
            assert [damage.key for damage in tiered.verify().damage] == [key], position
        replace(tiered.bucket, key, sound)


def test_a_missing_object_is_named(tiered: Tiered, two: tuple[TierRow, TierRow]) -> None:
    tiered.bucket.delete([tiered.key(two[1])])
    reason = "it is missing, and its tier names it"
    assert found(tiered.verify()) == [(tiered.key(two[1]), reason)]


def test_a_missing_manifest_is_named(tiered: Tiered, two: tuple[TierRow, TierRow]) -> None:
    manifest = tiered.tier.list_in_manifest(tiered.part, two)
    tiered.log.flush()
    tiered.bucket.delete([tiered.key(manifest)])
    reason = "it is missing, and its tier names it"
    assert found(tiered.verify()) == [(tiered.key(manifest), reason)]


def test_batches_that_are_not_those_of_the_log_are_named(tiered: Tiered) -> None:
    records = [DecodedRecord(at, 1_700_000_000_000, None, b"x", ()) for at in (0, 1)]
    row = tiered.split([batch_of(encode_batch(records))], 0)
    ((key, reason),) = found(tiered.verify())
    assert key == tiered.key(row)
    assert "the batch at offset 0 is not that of 'log/" in reason


def test_a_batch_that_was_left_out_is_named(tiered: Tiered) -> None:
    row = tiered.split([tiered.batches[0], tiered.batches[2]], 0)
    ((key, reason),) = found(tiered.verify())
    assert (key, "offset 2 is not that" in reason) == (tiered.key(row), True)


def test_a_batch_that_no_object_reaches_is_named(tiered: Tiered) -> None:
    tiered.log.fact(swapped(swap(tiered.part, 0, 2)))
    tiered.log.flush()
    ((key, reason),) = found(tiered.verify())
    assert key.startswith("log/")
    assert reason == "the batch at offset 0 is in no object of its tier"


def test_an_object_that_is_not_what_its_row_says(tiered: Tiered) -> None:
    row = tiered.tier.write(tiered.part, 0, 2, tiered.batches[:1])
    tiered.log.fact(swapped(swap(tiered.part, 0, 4, row._replace(end=4))))
    tiered.log.flush()
    assert (tiered.key(row), "it is not what its row in the tier says") in found(tiered.verify())


def test_what_was_compacted_by_key_or_begun_later_may_differ(tiered: Tiered) -> None:
    row = tiered.split(tiered.batches[:2], 0)
    cleaned = tiered.tier.write(tiered.part, 2, 4, tiered.batches[1:2])
    fact = swap(tiered.part, 0, 4, cleaned, replaced=[row.name], cleaned_to=2)
    tiered.log.fact(swapped(fact))
    tiered.log.flush()
    assert tiered.verify().damage == []
    tiered.tier.begin_at(tiered.part, 4)
    tiered.log.flush()
    report = tiered.verify()
    assert (report.damage, report.partition_segments, report.unreferenced) == ([], 0, 2)


def test_below_a_floor_the_tier_alone_has_them(
    tiered: Tiered, two: tuple[TierRow, TierRow]
) -> None:
    tiered.log.flush()
    older = write_checkpoint(tiered.bucket)
    tiered.log.flush()
    tiered.log.flush()
    newer = write_checkpoint(tiered.bucket)
    floor = Floor.of(older, newer)
    assert tiered.bucket.create(keys.floor(floor.ticket), [encode_floor(floor)])
    first = next(iter(sorted(info.key for info in tiered.bucket.list(keys.LOG))))
    tiered.bucket.delete([first])
    report = tiered.verify()
    assert (report.damage, report.partition_segments) == ([], 2)
    tiered.bucket.delete([tiered.key(two[0])])
    assert [damage.key for damage in tiered.verify().damage] == [tiered.key(two[0])]


def test_a_strange_object(tiered: Tiered, two: tuple[TierRow, TierRow]) -> None:
    assert tiered.bucket.create("segments/x", [b"x"])
    assert [damage.key for damage in tiered.verify().damage] == ["segments/x"]
