"""A log with a topic of four partitions, and with commits of groups at the times of a test."""

from uuid import UUID

from bucketlog.log_format.model import WallClock
from bucketlog.log_format.records import DecodedRecord
from bucketlog.metadata.facts import OffsetRow, OffsetsCommitted
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import SyncBucket
from bucketlog.tiered_storage.identity import FORMAT_VERSION, ClusterIdentity
from tests.rigs.written_log import WrittenLog, some_records

IDENTITY = ClusterIdentity(cluster_id=UUID(int=1), format_version=FORMAT_VERSION, created_ms=1)


class GroupLog:
    """A log in a bucket that was empty before. The topic is `t`."""

    def __init__(self, bucket: SyncBucket, now_ms: WallClock) -> None:
        assert bucket.create(keys.CLUSTER, [IDENTITY.model_dump_json().encode()])
        self.bucket = bucket
        self._log = WrittenLog(bucket)
        self._log.create_topic("t", 4)
        self._now_ms = now_ms

    def append(self, partition: int, count: int = 3) -> None:
        self._log.append("t", partition, some_records(count))
        self._log.flush()

    def append_without_time(self, partition: int) -> None:
        """Append a record that has no timestamp."""
        self._log.append("t", partition, [DecodedRecord(0, -1, None, b"v", ())])
        self._log.flush()

    def commit(self, name: str, **offsets: int) -> None:
        """Commit offsets of the group now. `p0` is the offset of partition 0."""
        topic_id, _ = self._log.topics["t"]
        self._log.fact(
            OffsetsCommitted(
                group=name,
                offsets=tuple(
                    OffsetRow(UUID(bytes=topic_id), int(partition[1:]), offset, -1, "")
                    for partition, offset in offsets.items()
                ),
                committed_ms=self._now_ms(),
                expires_ms=None,
            )
        )
        self._log.flush()
