"""Is a checkpoint, folded from the bucket, what a view shows, which was fed by the sequencer? Pure.

The view goes on while it is compared. What it shows more than the checkpoint is explained by the
segments after it: whoever compares lists them *after* the last step, so that all that the view
showed in any step is among them. Invariant: what no segment after the checkpoint touches is the
same in both, or named.
"""

from collections.abc import Iterable, Iterator

from bucketlog.log_format.checkpoint import Checkpoint
from bucketlog.log_format.model import SegmentId, SegmentIndex, TopicId, TopicIdPartition
from bucketlog.metadata.acl_bindings import AclBinding
from bucketlog.metadata.checkpoint import restored
from bucketlog.metadata.client_quotas import QuotaName
from bucketlog.metadata.facts import (
    LogStartsMoved,
    OffsetsCommitted,
    OffsetsForgotten,
    ProducerInitialised,
    TiersSwapped,
    TiersSwept,
    TransactionalIdsForgotten,
    TransactionEnded,
    TransactionOffsets,
    decode_fact,
    partition_of,
    topic_id_of,
)
from bucketlog.metadata.partition_log import PartitionLog
from bucketlog.metadata.scram_credentials import CredentialName
from bucketlog.metadata.security_facts import AclFact, ClientQuotasAltered, CredentialFact
from bucketlog.metadata.view import View

SHOWN_MAX = 5
"""So many differences are named."""


class ViewComparison:
    """Go through `steps`, then ask what is `unexplained`. The view has caught up with all that the
    checkpoint covers. To make one takes long and leaves the view alone: a thread may do it."""

    def __init__(self, view: View, checkpoint: Checkpoint) -> None:
        self._view = view
        self._state = restored(checkpoint, keep_producers=False)
        self._logs = {
            partition: PartitionLog.of_checkpoint(
                checkpoint, partition, state.tier, state.batches_from, state.transactions
            )
            for partition, state in self._state.partitions.items()
        }
        self._topics: set[TopicId] = set()
        self._groups: dict[str, set[TopicIdPartition]] = {}
        """Committed offsets that differ, by group."""
        self._partitions: list[TopicIdPartition] = []
        self._tiers: set[TopicIdPartition] = set()
        """Whose tier or log start differs."""
        self._transactions: set[TopicIdPartition] = set()
        """Partitions whose open or aborted transactions differ."""
        self._ids: set[str] = set()
        """Transactional ids whose owner differs."""
        self._pending: set[tuple[str, str]] = set()
        """Transactional ids and groups whose pending offsets differ."""
        self._beyond: dict[SegmentId, TopicIdPartition] = {}
        self._credentials: set[CredentialName] = set()
        self._acls: set[AclBinding] = set()
        self._quotas: set[QuotaName] = set()

    def steps(self) -> Iterator[None]:
        """Little work each; others may have their turn in between."""
        for topic_id in self._state.topics.keys() | {t.topic_id for t in self._view.topics()}:
            if self._view.topic_by_id(topic_id) != self._state.topics.get(topic_id):
                self._topics.add(topic_id)
        yield
        for partition in self._state.partitions:
            yield from self._compare_partition(partition)
        for group in self._state.groups.keys() | set(self._view.groups()):
            shown, expected = self._view.offsets(group), self._state.groups.get(group, {})
            rows = shown.keys() | expected.keys()
            differing = {row for row in rows if shown.get(row) != expected.get(row)}
            if differing:
                self._groups[group] = differing
            yield
        yield from self._compare_ids()
        ours = self._view.scram_credentials.by_name
        theirs = self._state.scram_credentials.by_name
        for name in ours.keys() | theirs.keys():
            if ours.get(name) != theirs.get(name):
                self._credentials.add(name)
        yield
        self._acls.update(self._view.acls.bindings.keys() ^ self._state.acls.bindings.keys())
        yield
        differing_rows = (
            self._view.client_quotas.rows().items() ^ self._state.client_quotas.rows().items()
        )
        self._quotas.update(name for name, _ in differing_rows)

    def _compare_ids(self) -> Iterator[None]:
        ours, theirs = self._view.transactions, self._state.transactions
        for each in ours.ids.keys() | theirs.ids.keys():
            if ours.ids.get(each) != theirs.ids.get(each):
                self._ids.add(each)
            shown, expected = ours.pending.get(each, {}), theirs.pending.get(each, {})
            for group in shown.keys() | expected.keys():
                if shown.get(group) != expected.get(group):
                    self._pending.add((each, group))
            yield

    def _compare_partition(self, partition: TopicIdPartition) -> Iterator[None]:
        shown = self._view.log(partition)
        if shown is None:
            self._topics.add(partition.topic_id)
            yield
            return
        expected = self._logs[partition]
        log_start = self._state.partitions[partition].log_start
        if shown.tier != expected.tier or self._view.log_start(partition) != log_start:
            self._tiers.add(partition)
        if shown.high_watermark < expected.high_watermark:
            self._partitions.append(partition)
        if shown.transactions != expected.transactions:
            self._transactions.add(partition)
        for is_same in shown.compared_with(expected):
            if not is_same:
                self._partitions.append(partition)
                break
            yield
        after = shown.segment_after(expected)
        if after is not None:
            self._beyond[after] = partition
        yield

    def unexplained(self, after: Iterable[SegmentIndex]) -> list[str]:
        """What differs though nothing in the segments after the checkpoint says so."""
        topics: set[TopicId] = set()
        groups: set[str] = set()
        tiers: set[TopicIdPartition] = set()
        ids: set[str] = set()
        written: set[TopicIdPartition] = set()
        pending = self._state.transactions.pending
        segments: set[SegmentId] = set()
        credentials: set[CredentialName] = set()
        acls: set[AclBinding] = set()
        quotas: set[QuotaName] = set()
        for index in after:
            segments.add(index.segment)
            written.update(part.partition for part in index.partitions if part.batches)
            for fact in map(decode_fact, index.facts):
                if isinstance(fact, OffsetsCommitted | OffsetsForgotten):
                    groups.add(fact.group)
                elif isinstance(fact, TiersSwapped | LogStartsMoved):
                    named = fact.swaps if isinstance(fact, TiersSwapped) else fact.partitions
                    tiers.update(map(partition_of, named))
                elif isinstance(fact, TransactionalIdsForgotten):
                    ids.update(fact.ids)
                elif isinstance(fact, ProducerInitialised | TransactionEnded | TransactionOffsets):
                    ids.add(fact.id)
                    groups.update(pending.get(fact.id, ()))
                    if isinstance(fact, TransactionOffsets):
                        groups.add(fact.group)
                elif isinstance(fact, CredentialFact):
                    credentials.add(CredentialName(fact.user, fact.mechanism))
                elif isinstance(fact, AclFact):
                    acls.update(fact.acls)
                elif isinstance(fact, ClientQuotasAltered):
                    quotas.update(QuotaName(each.entity, each.key) for each in fact.changes)
                elif fact is not None and not isinstance(fact, TiersSwept):
                    topics.add(topic_id_of(fact))
        found = [f"topic {topic_id.hex()}" for topic_id in sorted(self._topics - topics)]
        found += [
            f"batches of partition {partition.partition} of topic {partition.topic_id.hex()}"
            for partition in (
                *self._partitions,
                *(where for segment, where in self._beyond.items() if segment not in segments),
            )
        ]
        found += [
            f"the tier of partition {partition.partition} of topic {partition.topic_id.hex()}"
            for partition in sorted(self._tiers - tiers)
            if partition.topic_id not in topics
        ]
        found += [
            f"committed offsets of group {group!r}"
            for group, rows in self._groups.items()
            if group not in groups and any(row.topic_id not in topics for row in rows)
        ]
        found += [
            f"transactions of partition {partition.partition} of topic {partition.topic_id.hex()}"
            for partition in sorted(self._transactions - tiers - written)
            if partition.topic_id not in topics
        ]
        found += [f"the owner of transactional id {each!r}" for each in sorted(self._ids - ids)]
        found += [
            f"pending offsets of group {group!r} in transactions of {each!r}"
            for each, group in sorted(self._pending)
            if each not in ids and group not in groups and not topics
        ]
        found += _named_credentials(self._credentials - credentials)
        found += [f"the ACL {acl}" for acl in sorted(self._acls - acls)]
        found += _named_quotas(self._quotas - quotas)
        more = len(found) - SHOWN_MAX
        return found[:SHOWN_MAX] + ([f"{more} more"] if more > 0 else [])


def _named_credentials(names: set[CredentialName]) -> list[str]:
    return [f"the credential {name.mechanism} of user {name.user!r}" for name in sorted(names)]


def _named_quotas(names: set[QuotaName]) -> list[str]:
    return [f"the quota {name.key} of {name.entity}" for name in sorted(names, key=repr)]
