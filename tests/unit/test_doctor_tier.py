"""The doctor's digest of a bucket does not depend on where batches stand."""

from bucketlog.inspect.doctor.of_bucket import digest_of_bucket
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.memory import MemoryBucket
from tests.rigs.written_log import WrittenLog, some_records
from tests.rigs.written_tier import Batch, WrittenTier, batches_in
from tests.unit.test_verify import IDENTITY


def test_a_tier_does_not_show_and_a_log_start_does() -> None:
    bucket = MemoryBucket()
    assert bucket.create(keys.CLUSTER, [IDENTITY.model_dump_json().encode()])
    log = WrittenLog(bucket)
    log.create_topic("t")
    batches: list[Batch] = []
    for number in range(6):
        log.append("t", 0, some_records(3, tag=str(number)))
        batches += [batch for _, batch in batches_in(log.flush())]
    before = digest_of_bucket(bucket)
    assert before.records == 18
    tier, part = WrittenTier(log), log.partition("t", 0)
    rows = [tier.split(part, [batches[at]], at * 3) for at in range(4)]
    log.flush()
    assert digest_of_bucket(bucket) == before
    tier.merge(part, rows[:2])
    tier.list_in_manifest(part, rows[2:])
    log.flush()
    assert digest_of_bucket(bucket) == before
    tier.begin_at(part, 10)  # inside of a batch that the manifest's last object holds
    log.flush()
    (found,) = digest_of_bucket(bucket).topics["t"].partitions
    assert (found.earliest, found.latest, found.records) == (10, 18, 8)
