"""The parts of a broker that outlive its epochs, in named groups."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from uuid import UUID

from bucketlog.log_format.model import WallClock
from bucketlog.metadata.sequencer.client import Sequencer
from bucketlog.metadata.topic_defaults import TopicDefaults
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.assembly.topic_encryption import topic_keys
from bucketlog.stateless_broker.authentication.sealing import CredentialSeal
from bucketlog.stateless_broker.authentication.token_secrets import TokenSecrets
from bucketlog.stateless_broker.authorization.authorizer import Authorizer, AuthorizerRules
from bucketlog.stateless_broker.duties.upkeep import UpkeepCounts
from bucketlog.stateless_broker.encryption.topic_keys import EncryptionCounts, TopicKeys
from bucketlog.stateless_broker.epochs.activation import EpochStarter
from bucketlog.stateless_broker.epochs.committed_log import CommittedLog
from bucketlog.stateless_broker.epochs.epoch_signs import EpochSignReader
from bucketlog.stateless_broker.epochs.servers import Servers
from bucketlog.stateless_broker.fetch.feed import ViewAge
from bucketlog.stateless_broker.fetch.reading import RangeReader, ReadCounts
from bucketlog.stateless_broker.fetch.session_cache import FetchSessions
from bucketlog.stateless_broker.fetch.watching import Watchers
from bucketlog.stateless_broker.handlers.batch_validation import BatchValidation
from bucketlog.stateless_broker.handlers.client_telemetry import ClientMetrics
from bucketlog.stateless_broker.health import Health
from bucketlog.stateless_broker.membership.membership import Membership
from bucketlog.stateless_broker.network.quotas import QuotaRules, Quotas, ThrottleCounts
from bucketlog.stateless_broker.network.turns import Turns
from bucketlog.stateless_broker.produce.intake import Intake
from bucketlog.stateless_broker.produce.step_durations import StepDurations
from bucketlog.stateless_broker.produce.transaction_counts import TransactionCounts
from bucketlog.stateless_broker.settings.broker import BrokerSettings
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
    """The parts of the log that clients use: its view, the incremental fetch sessions, the intake,
    and the authorizer, which decides by the view's ACLs. `authorizer` None: everyone may do
    everything. `quotas` measures what clients use of the view's quotas. `keys` has the keys of
    topics. `topic_defaults` follows the view's defaults of all brokers."""

    view: View
    sessions: FetchSessions
    intake: Intake
    age: ViewAge
    authorizer: Authorizer | None
    quotas: Quotas
    keys: TopicKeys
    topic_defaults: TopicDefaults

    @property
    def watchers(self) -> Watchers:
        """The watches of requests that wait, and of sessions."""
        return self.sessions.watchers

    @classmethod
    def empty(
        cls,
        settings: BrokerSettings,
        health: Health,
        clocks: tuple[WallClock, Callable[[], float]],
        random: Random,
        counts: "WorkCounts | None" = None,
    ) -> "ServedLog":
        """`clocks`: the time of day in milliseconds, and a monotonic clock in seconds."""
        counts, (now_ms, now_s) = counts or WorkCounts(), clocks
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
            durations=counts.commits,
            now_s=now_s,
        )
        rules = QuotaRules(
            settings.client_quota_samples,
            settings.client_quota_sample_ms,
            settings.client_quota_tracked_max,
            settings.client_quota_idle_ms,
        )
        quotas = Quotas(view, rules, now_s, counts.throttles)
        keys = topic_keys(settings, view, intake, counts.encryption, now_ms=now_ms, now_s=now_s)
        defaults = TopicDefaults(settings.topic_defaults.own, lambda: view.resource_configs)
        sessions = FetchSessions.of(settings, view, Watchers(), random, now_s)
        return cls(view, sessions, intake, age, authorizer, quotas, keys, defaults)


@dataclass(frozen=True, slots=True)
class WorkCounts:
    """Counts of the work of a broker's duties and reads, of the steps of its commits, of the
    transactions that it ended, of encrypted batches, and of throttled requests; and the metrics
    that clients have sent."""

    upkeep: UpkeepCounts = field(default_factory=UpkeepCounts)
    reads: ReadCounts = field(default_factory=ReadCounts)
    commits: StepDurations = field(default_factory=StepDurations)
    transactions: TransactionCounts = field(default_factory=TransactionCounts)
    encryption: EncryptionCounts = field(default_factory=EncryptionCounts)
    throttles: ThrottleCounts = field(default_factory=ThrottleCounts)
    telemetry: ClientMetrics = field(default_factory=ClientMetrics)


@dataclass(frozen=True, slots=True)
class BrokerParts:
    """`turns` slices the long responses of all logs of the process."""

    settings: BrokerSettings
    storage: Storage
    cluster: ClusterParts
    log: ServedLog
    validation: BatchValidation
    supervision: Supervision
    now_ms: WallClock
    new_uuid: Callable[[], UUID]
    seal: CredentialSeal | None = None
    token_secrets: TokenSecrets | None = None
    turns: Turns = field(default_factory=Turns)
    counts: WorkCounts = field(default_factory=WorkCounts)
