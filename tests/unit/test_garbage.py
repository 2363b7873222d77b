"""What `segment gc --dry-run` says of jobs that are under way, and of damage."""

import pytest

from bucketlog.inspect.garbage import find_garbage
from bucketlog.log_format.errors import CorruptObjectError
from bucketlog.log_format.model import Ticket
from bucketlog.metadata.facts import TiersSwept
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.deletion import GarbageKind
from tests.models.indexes import swap, swapped
from tests.rigs.checkpoints import write_checkpoint
from tests.unit.test_verify_tier import Tiered

AGE_MS = 24 * 3_600_000


def later(tiered: Tiered) -> dict[str, GarbageKind]:
    """Of the tier."""
    found = find_garbage(tiered.bucket, safety_age_ms=AGE_MS).garbage
    garbage = [one for one in found if one.key.startswith((keys.SEGMENTS, keys.MANIFESTS))]
    assert all(one.due == "later" for one in garbage)
    return {one.key: one.kind for one in garbage}


def covered(tiered: Tiered, name: str) -> Ticket:
    """By a checkpoint: all but one more segment."""
    tiered.log.create_topic(name)
    tiered.log.flush()
    return write_checkpoint(tiered.bucket).ticket


def test_what_a_job_named_after_the_checkpoint_stays() -> None:
    tiered = Tiered()
    end = tiered.batches[0].next_offset
    row = tiered.tier.write(tiered.part, 0, end, tiered.batches[:1])
    tiered.log.create_topic("more")
    tiered.log.flush()
    planned = keys.planned_below(row.name, row.name)
    assert planned < covered(tiered, "and more")
    assert later(tiered) == {tiered.key(row): GarbageKind.ORPHANS}, "a job that may be over"
    tiered.log.fact(
        swapped(swap(tiered.part, 0, end, row), planned=(planned.epoch, planned.number))
    )
    tiered.log.flush()
    assert later(tiered) == {}


def test_a_manifest_that_is_dropped_is_listed_with_what_it_lists() -> None:
    tiered = Tiered()
    rows = tiered.split(tiered.batches[:1], 0), tiered.split(tiered.batches[1:2], 2)
    manifest = tiered.tier.list_in_manifest(tiered.part, rows)
    tiered.log.flush()
    swept = tiered.log.epoch, tiered.log.ticket
    tiered.log.fact(TiersSwept(below=swept))  # of the rows themselves nothing is said any more
    tiered.log.flush()
    covered(tiered, "a")
    assert later(tiered) == {}
    tiered.tier.begin_at(tiered.part, tiered.batches[1].next_offset)
    tiered.log.flush()
    covered(tiered, "b")
    dropped = {tiered.key(row): GarbageKind.TIER_OBJECTS for row in (*rows, manifest)}
    assert {key: kind for key, kind in later(tiered).items() if key in dropped} == dropped
    covered(tiered, "twice")
    tiered.bucket.delete([tiered.key(rows[0])])  # a round that ended in the middle
    assert tiered.key(rows[0]) not in later(tiered)
    tiered.bucket.delete([tiered.key(manifest), tiered.key(rows[1])])
    assert not dropped.keys() & later(tiered).keys()


def test_a_manifest_that_a_tier_names_must_be_there() -> None:
    tiered = Tiered()
    rows = [tiered.split(tiered.batches[:1], 0)]
    manifest = tiered.tier.list_in_manifest(tiered.part, rows)
    tiered.log.flush()
    covered(tiered, "c")
    data = bytearray(tiered.bucket.get(tiered.key(manifest)).data)
    data[-1] ^= 1
    tiered.bucket.delete([tiered.key(manifest)])
    assert tiered.bucket.create(tiered.key(manifest), [bytes(data)])
    with pytest.raises(CorruptObjectError):
        later(tiered)


def test_every_kind_has_a_reason() -> None:
    assert all(kind.reason.isalpha() for kind in GarbageKind)
