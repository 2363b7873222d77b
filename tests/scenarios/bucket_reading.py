"""The log's records as a reader of the bucket alone sees them: no broker, no Redis."""

from bucketlog.log_format.batch import read_header
from bucketlog.log_format.model import Buffer
from bucketlog.log_format.records import decode_records
from bucketlog.metadata.checkpoint import restored
from bucketlog.metadata.fold import fold
from bucketlog.metadata.partition_tiers import partition_tiers
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import Span, SyncBucket
from bucketlog.tiered_storage.log_cut import readable
from bucketlog.tiered_storage.log_cut_reading import read_log
from bucketlog.tiered_storage.segment import check_batch
from bucketlog.tiered_storage.tier_reader import read_batches, read_rows
from tests.models.history import Log, Sent
from tests.scenarios.load import sent_of


def records_in_bucket(bucket: SyncBucket, topic: str) -> Log:
    """Raises `AssertionError` where a batch is withheld: nothing is in flight at the end of a
    scenario, so that a reader must reach the end of each partition."""
    snapshot = read_log(bucket)
    state = fold(snapshot.segments, onto=restored(snapshot.checkpoint))
    topic_id = state.names[topic]
    rows: dict[int, list[tuple[int, Sent]]] = {}
    for partition, part in readable(snapshot, partition_tiers(state)).items():
        if partition.topic_id != topic_id:
            continue
        assert not part.withheld, f"{part.withheld} batches of {partition} are behind a gap"
        stored: list[Buffer] = []
        for tier_row in read_rows(bucket, {partition: part.rows})[partition]:
            for walked in read_batches(bucket, partition, tier_row):
                stored += [batch for _, batch in walked.batches()]
        for segment, _, row in part.batches:
            key = keys.segment(segment)
            batch = bucket.get(key, Span(row.position, row.length)).data
            check_batch(key, batch, row)
            stored.append(batch)
        found = [
            (record.offset, sent_of(record.value))
            for batch in stored
            for record in decode_records(batch, read_header(batch))
            if record.offset >= part.log_start
        ]
        if found:
            rows[partition.partition] = found
    return rows
