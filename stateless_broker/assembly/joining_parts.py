"""Builds the parts with which a broker joins epochs: the choice of the server, the rules of
takeovers, and the joiner."""

from redis.asyncio import Redis

from bucketlog.log_format.backoff import Backoff
from bucketlog.metadata.sequencer.client import Sequencer
from bucketlog.stateless_broker.assembly.broker_parts import BrokerParts
from bucketlog.stateless_broker.epochs.foreign_epochs import ForeignEpochs
from bucketlog.stateless_broker.epochs.joining import Joiner
from bucketlog.stateless_broker.epochs.server_choice import ServerLimits
from bucketlog.stateless_broker.epochs.servers import EmbeddedRedis, Servers, ServerSettings
from bucketlog.stateless_broker.epochs.takeover import QUIET_JITTER, Takeover, TakeoverLimits
from bucketlog.stateless_broker.settings.broker import BrokerSettings


def make_servers(
    settings: BrokerSettings,
    sequencer: Sequencer,
    bucket_mark: str,
    *,
    configured: Redis | None,
    embedded: EmbeddedRedis | None,
) -> Servers:
    """Make the broker's choice of servers. If `sequencer_timeout_ms` is 0, brokers wait for the
    configured Redis."""
    quiet_ms_max = max(settings.takeover_quiet_ms, settings.claim_wait_ms)
    steady_ms_max = max(settings.redis_steady_ms, settings.takeover_quiet_ms_max)
    return Servers(
        sequencer,
        ServerSettings(
            limits=ServerLimits(
                timeout_ms=settings.sequencer_timeout_effective_ms,
                sealed_wait_ms=settings.claim_wait_ms,
                quiet=Backoff(settings.takeover_quiet_ms, quiet_ms_max, jitter=QUIET_JITTER),
                steady=Backoff(settings.redis_steady_ms, steady_ms_max),
            ),
            follows=settings.sequencer_follow,
            probe_timeout_ms=settings.sequencer_probe_timeout_ms,
            bucket_mark=bucket_mark,
        ),
        configured=configured,
        embedded=embedded if settings.sequencer_timeout_effective_ms else None,
    )


def make_joiner(parts: BrokerParts) -> Joiner:
    cluster, settings = parts.cluster, parts.settings
    takeover = Takeover(
        TakeoverLimits.of(
            quiet_ms=settings.takeover_quiet_ms,
            quiet_ms_max=settings.takeover_quiet_ms_max,
            stalled_ms=settings.claim_stalled_ms,
            stalled_ms_max=settings.claim_wait_ms,
        ),
        incarnation=cluster.membership.incarnation,
        random=cluster.random,
    )
    return Joiner(
        sequencer=cluster.sequencer,
        committed=parts.storage.committed,
        starter=cluster.starter,
        membership=cluster.membership,
        foreign=ForeignEpochs(
            signs=cluster.signs,
            takeover=takeover,
            membership=cluster.membership,
            now_ms=parts.now_ms,
        ),
        servers=cluster.servers,
        health=parts.supervision.health,
        claim_wait_ms=settings.claim_wait_ms,
    )
