"""The parts of a broker that outlive its epochs, in named groups."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from uuid import UUID

from bucketlog.log_format.model import WallClock
from bucketlog.metadata.sequencer.client import Sequencer
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.authentication.sealing import CredentialSeal
from bucketlog.stateless_broker.authorization.authorizer import Authorizer, AuthorizerRules
from bucketlog.stateless_broker.duties.upkeep import UpkeepCounts
from bucketlog.stateless_broker.epochs.activation import EpochStarter
from bucketlog.stateless_broker.epochs.committed_log import CommittedLog
from bucketlog.stateless_broker.epochs.epoch_signs import EpochSignReader
from bucketlog.stateless_broker.epochs.servers import Servers
from bucketlog.stateless_broker.fetch.feed import ViewAge, Watchers
from bucketlog.stateless_broker.fetch.reading import RangeReader, ReadCounts
from bucketlog.stateless_broker.handlers.batch_validation import BatchValidation
from bucketlog.stateless_broker.health import Health
from bucketlog.stateless_broker.membership import Membership
from bucketlog.stateless_broker.network.quotas import QuotaRules, Quotas, ThrottleCounts
from bucketlog.stateless_broker.network.turns import Turns
from bucketlog.stateless_broker.produce.intake import Intake
from bucketlog.stateless_broker.produce.transaction_counts import TransactionCounts
from bucketlog.stateless_broker.settings import BrokerSettings
from bucketlog.stateless_broker.supervision import Supervision
from bucketlog.tiered_storage.bucket import Bucket


@dataclass(frozen=True, slots=True)
class Storage:
    """Ways to the bucket. `bucket` retries reads and small writes; `write_bucket` does not, because
    the commit path does. `reader` reads ranges for fetches, `committed` reads committed segments
    when an epoch begins."""

    bucket: Bucket
    write_bucket: Bucket
    committed: CommittedLog
    reader: RangeReader


@dataclass(frozen=True, slots=True)
class ClusterParts:
    """The sequencer with its servers, this broker's membership, the reader of an epoch's signs in
    the bucket, and the starter of the next epoch. `random` spreads the actions of several
    brokers."""

    sequencer: Sequencer
    servers: Servers
    membership: Membership
    signs: EpochSignReader
    starter: EpochStarter
    random: Random


@dataclass(frozen=True, slots=True)
class ServedLog:
    """What clients use of the log: its view, the watchers waiting for more, the intake, and the
    authorizer, which decides by the view's ACLs. `authorizer` None: everyone may do everything.
    `quotas` measures what clients use of the view's quotas."""

    view: View
    watchers: Watchers
    intake: Intake
    age: ViewAge
    authorizer: Authorizer | None
    quotas: Quotas

    @classmethod
    def empty(
        cls,
        settings: BrokerSettings,
        health: Health,
        *,
        now_s: Callable[[], float],
        throttles: ThrottleCounts | None = None,
    ) -> "ServedLog":
        view, age, authorizer = View(), ViewAge(now_s), None
        if settings.authorization:
            acl_rules = AuthorizerRules(
                settings.super_user_names,
                settings.allow_everyone_if_no_acl_found,
                settings.authorization_decisions_max,
            )
            stale_s = settings.authorization_staleness_ms_max / 1000
            authorizer = Authorizer(
                acl_rules, acls=lambda: view.acls, is_stale=lambda: age.is_over(stale_s)
            )
        intake = Intake(
            health,
            flush_bytes=settings.flush_bytes,
            flush_batches_max=settings.flush_batches_max,
        )
        rules = QuotaRules(
            settings.client_quota_samples,
            settings.client_quota_sample_ms,
            settings.client_quota_tracked_max,
            settings.client_quota_idle_ms,
        )
        quotas = Quotas(view, rules, now_s, throttles or ThrottleCounts())
        return cls(view, Watchers(), intake, age, authorizer, quotas)


@dataclass(frozen=True, slots=True)
class WorkCounts:
    """Counts of the work of a broker's duties and reads, of the transactions that it ended, and of
    throttled requests."""

    upkeep: UpkeepCounts = field(default_factory=UpkeepCounts)
    reads: ReadCounts = field(default_factory=ReadCounts)
    transactions: TransactionCounts = field(default_factory=TransactionCounts)
    throttles: ThrottleCounts = field(default_factory=ThrottleCounts)


@dataclass(frozen=True, slots=True)
class BrokerParts:
    """`turns` slices long responses."""

    settings: BrokerSettings
    storage: Storage
    cluster: ClusterParts
    log: ServedLog
    validation: BatchValidation
    supervision: Supervision
    now_ms: WallClock
    new_uuid: Callable[[], UUID]
    seal: CredentialSeal | None = None
    turns: Turns = field(default_factory=Turns)
    counts: WorkCounts = field(default_factory=WorkCounts)
