"""Comparison of a checkpoint, folded from the bucket, with a view that the sequencer fed. Pure.

The view continues while it is compared. The segments after the checkpoint explain what the view
shows beyond the checkpoint. The caller must list these segments *after* the last step, so that they
include everything that the view showed in any step. Invariant: what no segment after the checkpoint
touches is the same in both, or is named.
"""

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field

from bucketlog.log_format.checkpoint import Checkpoint
from bucketlog.log_format.model import SegmentId, SegmentIndex, TopicId, TopicIdPartition
from bucketlog.metadata.acl_bindings import AclBinding
from bucketlog.metadata.checkpoint import restored
from bucketlog.metadata.client_quotas import QuotaName
from bucketlog.metadata.config_facts import ConfigsAltered
from bucketlog.metadata.encryption_facts import DataKeyCreated
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
from bucketlog.metadata.resource_configs import ResourceName
from bucketlog.metadata.scram_credentials import CredentialName
from bucketlog.metadata.security_facts import (
    AclFact,
    ClientQuotasAltered,
    CredentialFact,
    SecurityFact,
)
from bucketlog.metadata.share_facts import ShareFact
from bucketlog.metadata.token_facts import DelegationTokensForgotten, TokenFact
from bucketlog.metadata.view import View

SHOWN_MAX = 5
"""Number of differences that are named."""


class ViewComparison:
    """A comparison: go through `steps`, then ask for what is `unexplained`. The view must have
    caught up with everything that the checkpoint covers. Creating a comparison takes long and does
    not touch the view: a thread may do it."""

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
        """Partitions whose tier or log start differs."""
        self._transactions: set[TopicIdPartition] = set()
        """Partitions whose open or aborted transactions differ."""
        self._ids: set[str] = set()
        """Transactional ids whose owner differs."""
        self._pending: set[tuple[str, str]] = set()
        """Transactional ids and groups whose pending offsets differ."""
        self._beyond: dict[SegmentId, TopicIdPartition] = {}
        self._security = _SecurityNames()
        self._shares: set[str] = set()
        """Share groups whose share-partitions differ."""

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
        yield from self._compare_shares()
        ours = self._view.scram_credentials.by_name
        theirs = self._state.scram_credentials.by_name
        for name in ours.keys() | theirs.keys():
            if ours.get(name) != theirs.get(name):
                self._security.credentials.add(name)
        yield
        self._security.acls.update(
            self._view.acls.bindings.keys() ^ self._state.acls.bindings.keys()
        )
        yield
        differing_rows = (
            self._view.client_quotas.rows().items() ^ self._state.client_quotas.rows().items()
        )
        self._security.quotas.update(name for name, _ in differing_rows)
        yield
        differing_keys = set(self._view.data_keys) ^ set(self._state.data_keys)
        self._security.data_keys.update((key.topic_id, key.key_id) for key in differing_keys)
        yield
        differing_tokens = (
            self._view.delegation_tokens.by_id.items() ^ self._state.delegation_tokens.by_id.items()
        )
        self._security.tokens.update(token_id for token_id, _ in differing_tokens)
        yield
        differing_configs = set(self._view.resource_configs.items()) ^ set(
            self._state.resource_configs.items()
        )
        self._security.configured.update(resource for resource, _, _ in differing_configs)

    def _compare_shares(self) -> Iterator[None]:
        ours, theirs = self._view.share_groups.by_group, self._state.share_groups.by_group
        for group in ours.keys() | theirs.keys():
            if ours.get(group) != theirs.get(group):
                self._shares.add(group)
            yield

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
        """Return the differences that no segment after the checkpoint explains."""
        topics: set[TopicId] = set()
        groups: set[str] = set()
        tiers: set[TopicIdPartition] = set()
        ids: set[str] = set()
        written: set[TopicIdPartition] = set()
        pending = self._state.transactions.pending
        segments: set[SegmentId] = set()
        security = _SecurityNames()
        shares: set[str] = set()
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
                elif isinstance(fact, SecurityFact | DataKeyCreated | TokenFact | ConfigsAltered):
                    security.note(fact)
                elif isinstance(fact, ShareFact):
                    shares.add(fact.group)
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
        found += self._security.named_without(security, topics)
        if not topics:
            found += [f"the share group {group!r}" for group in sorted(self._shares - shares)]
        more = len(found) - SHOWN_MAX
        return found[:SHOWN_MAX] + ([f"{more} more"] if more > 0 else [])


@dataclass(slots=True)
class _SecurityNames:
    """Credentials, ACLs, quotas, data keys, delegation tokens, and resources with configs."""

    credentials: set[CredentialName] = field(default_factory=set)
    acls: set[AclBinding] = field(default_factory=set)
    quotas: set[QuotaName] = field(default_factory=set)
    data_keys: set[tuple[TopicId, bytes]] = field(default_factory=set)
    tokens: set[str] = field(default_factory=set)
    configured: set[ResourceName] = field(default_factory=set)

    def note(self, fact: SecurityFact | DataKeyCreated | TokenFact | ConfigsAltered) -> None:
        """Note the names that the fact may have changed."""
        if isinstance(fact, CredentialFact):
            self.credentials.add(CredentialName(fact.user, fact.mechanism))
        elif isinstance(fact, AclFact):
            self.acls.update(fact.acls)
        elif isinstance(fact, ClientQuotasAltered):
            self.quotas.update(QuotaName(each.entity, each.key) for each in fact.changes)
        elif isinstance(fact, ConfigsAltered):
            self.configured.add(ResourceName(fact.resource_type, fact.name))
        elif isinstance(fact, DelegationTokensForgotten):
            self.tokens.update(fact.token_ids)
        elif isinstance(fact, TokenFact):
            self.tokens.add(fact.token_id)
        else:
            self.data_keys.add((TopicId(fact.topic_id.bytes), fact.key_id))

    def named_without(self, others: "_SecurityNames", topics: Container[TopicId]) -> Iterator[str]:
        """Return the names that are not among `others`, without data keys of `topics`."""
        for name in sorted(self.credentials - others.credentials):
            yield f"the credential {name.mechanism} of user {name.user!r}"
        for acl in sorted(self.acls - others.acls):
            yield f"the ACL {acl}"
        for quota in sorted(self.quotas - others.quotas, key=repr):
            yield f"the quota {quota.key} of {quota.entity}"
        for resource in sorted(self.configured - others.configured):
            yield f"the configs of {resource}"
        for token_id in sorted(self.tokens - others.tokens):
            yield f"the delegation token {token_id}"
        for topic_id, key_id in sorted(self.data_keys - others.data_keys):
            if topic_id not in topics:
                yield f"the data key {key_id.hex()} of topic {topic_id.hex()}"
