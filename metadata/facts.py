"""The facts of the log: what control entries say, and how they are written.

A fact is a small pydantic model; its payload is that model as UTF-8 JSON, so that anyone with
bucket access can read it. Unknown fields are kept out (a newer writer raises `version`); an
unknown kind stops the fold unless its skip bit is set.
"""

from collections.abc import Mapping
from typing import Annotated, Literal, NamedTuple, TypeAlias
from uuid import UUID

from pydantic import FailFast, Field, PlainSerializer, ValidationError

from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_format.model import (
    MAX_OFFSET,
    TOPIC_PARTITIONS_MAX,
    FactEntry,
    TopicId,
    TopicIdPartition,
)
from bucketlog.metadata.config_facts import ConfigsAltered
from bucketlog.metadata.encryption_facts import DataKeyCreated
from bucketlog.metadata.fact_model import (
    AttributedFact,
    Count,
    FactKind,
    FactModel,
    Milliseconds,
    Offset,
    PartitionNumber,
)
from bucketlog.metadata.security_facts import (
    AclsCreated,
    AclsDeleted,
    ClientQuotasAltered,
    ScramCredentialDeleted,
    ScramCredentialSet,
    SecurityFact,
)
from bucketlog.metadata.share_facts import (
    SHARE_KINDS,
    ShareFact,
    ShareOffsetsForgotten,
    ShareOffsetsSet,
    SharePartitionsTaken,
    ShareStateWritten,
)
from bucketlog.metadata.token_facts import (
    DelegationTokenCreated,
    DelegationTokenRenewed,
    DelegationTokensForgotten,
    TokenFact,
)

SKIP_BIT = 0x8000
ERROR_PLACE_CHARS = 100
VERSION = 1
KEPT_VERSION = 2
"""The version of fact 10 (`TransactionKept`) for an init that keeps a transaction."""
ATTRIBUTED_VERSION = 2
"""The version of an `AttributedFact` that says who asked for it."""


GROUP_KINDS = frozenset(
    {FactKind.OFFSETS_COMMITTED, FactKind.OFFSETS_FORGOTTEN, FactKind.TRANSACTION_OFFSETS}
    | SHARE_KINDS
)
"""Kinds of facts that matter only to answers about consumer groups."""


Int32 = Annotated[int, Field(ge=-(2**31), lt=2**31)]
Int64 = Annotated[int, Field(ge=-(2**63), lt=2**63)]
PartitionCount = Annotated[int, Field(ge=1, le=TOPIC_PARTITIONS_MAX)]
Place = tuple[Count, Count]
"""Epoch and ticket."""


class TopicCreated(AttributedFact):
    """`configs` holds only what was set at creation, as text, by Kafka's names."""

    kind: Literal[FactKind.TOPIC_CREATED] = Field(FactKind.TOPIC_CREATED, exclude=True)
    topic_id: UUID
    name: str
    partitions: PartitionCount
    configs: dict[str, str] = Field(default_factory=dict)


class TopicDeleted(AttributedFact):
    kind: Literal[FactKind.TOPIC_DELETED] = Field(FactKind.TOPIC_DELETED, exclude=True)
    topic_id: UUID
    name: str


class PartitionsAdded(AttributedFact):
    """`partitions` is the new total."""

    kind: Literal[FactKind.PARTITIONS_ADDED] = Field(FactKind.PARTITIONS_ADDED, exclude=True)
    topic_id: UUID
    name: str
    partitions: PartitionCount


class TopicConfigured(AttributedFact):
    """Configs that are set from now on; a value of None removes a config. With `replaces_all`, no
    other config stays set. Brokers that change different names do not undo each other's changes."""

    kind: Literal[FactKind.TOPIC_CONFIGURED] = Field(FactKind.TOPIC_CONFIGURED, exclude=True)
    topic_id: UUID
    name: str
    configs: dict[str, str | None]
    replaces_all: bool = False

    def applied_to(self, configs: Mapping[str, str]) -> dict[str, str]:
        """Return the configs that are set after the fact."""
        before = {} if self.replaces_all else configs
        after = {**before, **self.configs}
        return {name: value for name, value in after.items() if value is not None}


class OffsetRow(NamedTuple):
    """A committed offset. `leader_epoch` is -1 if the consumer named none; `metadata` is its own
    text."""

    topic_id: UUID
    partition: PartitionNumber
    offset: Int64
    leader_epoch: Int32
    metadata: str


OffsetRows = Annotated[tuple[OffsetRow, ...], FailFast()]


class PartitionRow(NamedTuple):
    topic_id: UUID
    partition: PartitionNumber


class OffsetsCommitted(FactModel):
    """An accepted OffsetCommit of a group. The committing client has seen the topics, so their
    creation comes before; a deletion may come between. `expires_ms`: time from which the rows may
    be forgotten, if the client chose it (OffsetCommit 2 to 4)."""

    kind: Literal[FactKind.OFFSETS_COMMITTED] = Field(FactKind.OFFSETS_COMMITTED, exclude=True)
    group: str
    committed_ms: Int64
    expires_ms: Int64 | None = None
    offsets: OffsetRows


class OffsetsForgotten(AttributedFact):
    """Committed offsets of a group that expired or were deleted; without `partitions` all."""

    kind: Literal[FactKind.OFFSETS_FORGOTTEN] = Field(FactKind.OFFSETS_FORGOTTEN, exclude=True)
    group: str
    partitions: Annotated[tuple[PartitionRow, ...] | None, FailFast()] = None


class TierRowPayload(NamedTuple):
    """An object of a partition: `TierRow`, in its order."""

    start: Offset
    end: Offset
    name: str
    manifest: bool
    size_bytes: Count
    batch_bytes: Count
    max_timestamp_ms: Int64
    segments: Annotated[int, Field(ge=1, lt=2**31)]


class SwapPayload(NamedTuple):
    """A partition's part of a job: the tier's objects from now on (`metadata.tier.Swap`). `removed`
    are segments, by start and name, which a replaced manifest listed and nothing lists any more."""

    topic_id: UUID
    partition: PartitionNumber
    start: Offset
    end: Offset
    replaced: Annotated[tuple[str, ...], FailFast()]
    added: Annotated[tuple[TierRowPayload, ...], FailFast()]
    removed: Annotated[tuple[tuple[Offset, str], ...], FailFast()] = ()
    cleaned_to: Annotated[int, Field(ge=-1, le=MAX_OFFSET + 1)] = -1


class LogStartPayload(NamedTuple):
    topic_id: UUID
    partition: PartitionNumber
    log_start: Offset


def partition_of(row: OffsetRow | PartitionRow | SwapPayload | LogStartPayload) -> TopicIdPartition:
    return TopicIdPartition(TopicId(row.topic_id.bytes), row.partition)


class TiersSwapped(FactModel):
    """The end of a job: compaction of log segments, merging, key compaction, manifests. `planned`
    is the highest epoch and ticket that was visible when the job was planned; its objects' names
    have it. Each partition's part counts separately, if the tier still has what it was planned on
    (`metadata.tier`). If a part does not count, no tier has its objects."""

    kind: Literal[FactKind.TIERS_SWAPPED] = Field(FactKind.TIERS_SWAPPED, exclude=True)
    planned: Place
    swaps: Annotated[tuple[SwapPayload, ...], FailFast()]


class LogStartsMoved(AttributedFact):
    """New log starts by retention or DeleteRecords. A log start never goes back, nor beyond what
    was visible to the broker that moved it."""

    kind: Literal[FactKind.LOG_STARTS_MOVED] = Field(FactKind.LOG_STARTS_MOVED, exclude=True)
    partitions: Annotated[tuple[LogStartPayload, ...], FailFast()]


class TiersSwept(FactModel):
    """Objects that left a tier below that epoch and ticket are deleted; jobs that were planned
    below it are over: none of their swaps counts from now on."""

    kind: Literal[FactKind.TIERS_SWEPT] = Field(FactKind.TIERS_SWEPT, exclude=True)
    below: Place


ProducerId = Annotated[
    int, Field(ge=-1, lt=2**63), PlainSerializer(str, return_type=str, when_used="json")
]
"""Text in JSON, because producer ids exceed 2^53; -1 for none."""
ProducerEpoch = Annotated[int, Field(ge=-1, lt=2**15)]
TransactionVersion = Literal[1, 2]
"""The version of transactions. In version 2, each end raises the producer's epoch (KIP-890)."""
EndedBy = Literal["client", "server", "init"]


class ProducerInitialised(FactModel):
    """InitProducerId of a transactional id: the pair that owns it from now on. The `last` pair is
    the previous one if its owner may still send requests with it, else -1. `two_phase`: the
    transaction has no timeout (KIP-939)."""

    kind: Literal[FactKind.PRODUCER_INITIALISED] = Field(
        FactKind.PRODUCER_INITIALISED, exclude=True
    )
    id: str
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    last_producer_id: ProducerId = -1
    last_producer_epoch: ProducerEpoch = -1
    timeout_ms: Annotated[int, Field(ge=0, lt=2**31)]
    version: TransactionVersion
    two_phase: bool = False
    at_ms: Milliseconds


class TransactionKept(ProducerInitialised):
    """An InitProducerId that keeps the open transaction (KIP-939): version 2 of fact 10. The `txn`
    pair began the transaction. The markers and the end of the transaction carry this pair, although
    another pair owns the transactional id."""

    txn_producer_id: ProducerId
    txn_producer_epoch: ProducerEpoch


class TransactionEnded(FactModel):
    """The end of a transaction; its markers are in the same segment. `producer_id` and
    `producer_epoch` are the pair that began the transaction. `next_producer_id` and `next_epoch`
    own the transactional id from now on."""

    kind: Literal[FactKind.TRANSACTION_ENDED] = Field(FactKind.TRANSACTION_ENDED, exclude=True)
    id: str
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    committed: bool
    next_producer_id: ProducerId
    next_epoch: ProducerEpoch
    by: EndedBy
    version: TransactionVersion
    at_ms: Milliseconds


class TransactionOffsets(FactModel):
    """An accepted TxnOffsetCommit. The rows become committed offsets of the group if the
    transaction is committed, and are dropped if it is aborted."""

    kind: Literal[FactKind.TRANSACTION_OFFSETS] = Field(FactKind.TRANSACTION_OFFSETS, exclude=True)
    id: str
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    group: str
    offsets: OffsetRows
    at_ms: Milliseconds


class TransactionalIdsForgotten(FactModel):
    """Transactional ids that have been idle for `transactional.id.expiration.ms`."""

    kind: Literal[FactKind.TRANSACTIONAL_IDS_FORGOTTEN] = Field(
        FactKind.TRANSACTIONAL_IDS_FORGOTTEN, exclude=True
    )
    ids: Annotated[tuple[str, ...], FailFast()]


TopicFact: TypeAlias = TopicCreated | TopicDeleted | PartitionsAdded | TopicConfigured
GroupFact: TypeAlias = OffsetsCommitted | OffsetsForgotten
TierFact: TypeAlias = TiersSwapped | LogStartsMoved | TiersSwept
TransactionFact: TypeAlias = (
    ProducerInitialised | TransactionEnded | TransactionOffsets | TransactionalIdsForgotten
)
Fact: TypeAlias = (
    TopicFact
    | GroupFact
    | TierFact
    | TransactionFact
    | SecurityFact
    | DataKeyCreated
    | TokenFact
    | ShareFact
    | ConfigsAltered
)

_MODELS: dict[int, type[Fact]] = {
    FactKind.TOPIC_CREATED: TopicCreated,
    FactKind.TOPIC_DELETED: TopicDeleted,
    FactKind.PARTITIONS_ADDED: PartitionsAdded,
    FactKind.OFFSETS_COMMITTED: OffsetsCommitted,
    FactKind.OFFSETS_FORGOTTEN: OffsetsForgotten,
    FactKind.TOPIC_CONFIGURED: TopicConfigured,
    FactKind.TIERS_SWAPPED: TiersSwapped,
    FactKind.LOG_STARTS_MOVED: LogStartsMoved,
    FactKind.TIERS_SWEPT: TiersSwept,
    FactKind.PRODUCER_INITIALISED: ProducerInitialised,
    FactKind.TRANSACTION_ENDED: TransactionEnded,
    FactKind.TRANSACTION_OFFSETS: TransactionOffsets,
    FactKind.TRANSACTIONAL_IDS_FORGOTTEN: TransactionalIdsForgotten,
    FactKind.SCRAM_CREDENTIAL_SET: ScramCredentialSet,
    FactKind.SCRAM_CREDENTIAL_DELETED: ScramCredentialDeleted,
    FactKind.ACLS_CREATED: AclsCreated,
    FactKind.ACLS_DELETED: AclsDeleted,
    FactKind.CLIENT_QUOTAS_ALTERED: ClientQuotasAltered,
    FactKind.DATA_KEY_CREATED: DataKeyCreated,
    FactKind.SHARE_PARTITIONS_TAKEN: SharePartitionsTaken,
    FactKind.SHARE_STATE_WRITTEN: ShareStateWritten,
    FactKind.SHARE_OFFSETS_SET: ShareOffsetsSet,
    FactKind.SHARE_OFFSETS_FORGOTTEN: ShareOffsetsForgotten,
    FactKind.CONFIGS_ALTERED: ConfigsAltered,
    FactKind.DELEGATION_TOKEN_CREATED: DelegationTokenCreated,
    FactKind.DELEGATION_TOKEN_RENEWED: DelegationTokenRenewed,
    FactKind.DELEGATION_TOKENS_FORGOTTEN: DelegationTokensForgotten,
}
_MODELS_2: dict[int, type[Fact]] = {FactKind.PRODUCER_INITIALISED: TransactionKept}
_MODELS_2.update(
    (kind, model) for kind, model in _MODELS.items() if issubclass(model, AttributedFact)
)
_BY_VERSION: Mapping[int, Mapping[int, type[Fact]]] = {VERSION: _MODELS, 2: _MODELS_2}


def encode_fact(fact: Fact) -> FactEntry:
    version, left_out = VERSION, set[str]()
    if isinstance(fact, TransactionKept):
        version = KEPT_VERSION
    elif isinstance(fact, AttributedFact) and fact.by is not None:
        version = ATTRIBUTED_VERSION
    elif isinstance(fact, AttributedFact):
        left_out = {"by"}
    return FactEntry(fact.kind, version, fact.model_dump_json(exclude=left_out).encode())


def decode_fact(entry: FactEntry) -> Fact | None:
    """Decode a fact. Returns None for a kind that may be skipped. Raises `InvalidDataError`."""
    if entry.kind & SKIP_BIT:
        return None
    model = _BY_VERSION.get(entry.version, {}).get(entry.kind)
    if model is None:
        raise InvalidDataError(
            f"the log holds a fact of kind {entry.kind} version {entry.version}",
            remedy="a newer bucketlog wrote it: upgrade this one",
        )
    try:
        fact = model.model_validate_json(entry.payload)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))[:ERROR_PLACE_CHARS]
        raise InvalidDataError(
            f"a fact {model.__name__} does not decode: {where}: {first['msg']}"
        ) from None
    if isinstance(fact, AttributedFact):
        _check_author(fact, entry.version)
    return fact


def _check_author(fact: AttributedFact, version: int) -> None:
    has_author = "by" in fact.model_fields_set
    if has_author != (version == ATTRIBUTED_VERSION) or (has_author and fact.by is None):
        text = "has" if has_author else "lacks"
        raise InvalidDataError(
            f"a fact {type(fact).__name__} of version {version} {text} the field by"
        )


def topic_id_of(fact: TopicFact) -> TopicId:
    return TopicId(fact.topic_id.bytes)
