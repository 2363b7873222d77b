"""A log that the process serves: the only log, or the log of a tenant.

Invariant: a log shares nothing that clients could see: node, bucket, health, counts. Requests reach
its node only while the node has begun.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from bucketlog.log_format.wire.frames import MalformedRequestError
from bucketlog.metadata.scram_credentials import ScramMechanism
from bucketlog.metadata.sequencer.producer_rows import ProducerRows
from bucketlog.stateless_broker.assembly.broker_parts import WorkCounts
from bucketlog.stateless_broker.assembly.logins import credentials_of, tokens_of
from bucketlog.stateless_broker.assembly.node import Node
from bucketlog.stateless_broker.assembly.node_environment import NodeEnvironment
from bucketlog.stateless_broker.authentication.scram import ScramCredential
from bucketlog.stateless_broker.authentication.token_login import TokenLogin
from bucketlog.stateless_broker.authentication.verification_keys import VerificationKeys
from bucketlog.stateless_broker.health import Health
from bucketlog.stateless_broker.network.audit import AuditLog
from bucketlog.stateless_broker.network.connection import Connection
from bucketlog.stateless_broker.network.connection_owner import Service
from bucketlog.stateless_broker.network.exchange import Frame, ResponseSlot
from bucketlog.stateless_broker.network.loop_share import LoopShare
from bucketlog.stateless_broker.network.memory_budget import MemoryBudget
from bucketlog.stateless_broker.network.request_figures import RequestFigures
from bucketlog.stateless_broker.network.turns import Turns
from bucketlog.stateless_broker.process.environment import node_environment
from bucketlog.stateless_broker.process.index_page import BrokerName
from bucketlog.stateless_broker.process.log_lines import TENANT
from bucketlog.stateless_broker.process.metrics import (
    BoundedState,
    BrokerFigures,
    FigureSources,
    MemoryBudgets,
)
from bucketlog.stateless_broker.settings.broker import BrokerSettings
from bucketlog.stateless_broker.settings.listener_addresses import ListenerSpec

EXPORTED_LIMITS = (
    "client_quota_tracked_max",
    "cluster_partitions_max",
    "connections_max",
    "coordinated_groups_bytes_max",
    "fetch_session_cache_bytes_max",
    "fetch_session_cache_slots_max",
    "groups_max",
    "http_connections_max",
    "offsets_max",
    "produce_buffer_bytes",
    "producers_max",
    "response_memory_bytes_max",
    "transactional_ids_max",
)
"""Settings that /metrics shows, so that alerts can compare metrics with limits."""


@dataclass(frozen=True, slots=True)
class ProcessParts:
    """The parts that all logs of the process share. `frames` is the memory of received requests,
    `answers` that of responses. `turns` shares the event loop between long requests.
    `certificate_s` and `token_keys` are for the metrics, as in `BoundedState`."""

    frames: MemoryBudget
    answers: MemoryBudget
    turns: Turns
    audit: AuditLog | None
    certificate_s: Callable[[], float | None]
    token_keys: Callable[[], VerificationKeys | None]


class HostedLog:
    """A log of the process. `tenant` is empty for the only log. `listeners` are those of the
    clients."""

    def __init__(
        self,
        tenant: str,
        settings: BrokerSettings,
        listeners: Sequence[ListenerSpec],
        environment: NodeEnvironment,
        *,
        parts: ProcessParts,
        health: Health,
        share: LoopShare | None = None,
    ) -> None:
        self.tenant = tenant
        self.settings = settings
        self.health = health
        self._listeners = listeners
        self._counts = WorkCounts()
        self.has_begun = False
        self.epoch = 0
        self.requests = RequestFigures(slow_request_ms=settings.slow_request_ms)
        self.node = Node(
            settings,
            environment,
            health=health,
            counts=self._counts,
            listeners=listeners,
            answers=parts.answers,
        )
        self.node.dispatcher.audit, self.node.dispatcher.share = parts.audit, share
        handler = self.node.dispatcher.handle if share is None else self._handle
        self.service = Service(handler, self.requests, tenant=tenant, share=share)
        self.figures = self._make_figures(environment, parts)

    @classmethod
    async def open(
        cls,
        tenant: str,
        settings: BrokerSettings,
        listeners: Sequence[ListenerSpec],
        *,
        parts: ProcessParts,
        health: Health,
        share: LoopShare | None = None,
    ) -> "HostedLog":
        """Open a log. Raises `BucketlogError`."""
        environment = replace(await node_environment(settings), turns=parts.turns)
        return cls(
            tenant, settings, listeners, environment, parts=parts, health=health, share=share
        )

    def _make_figures(self, environment: NodeEnvironment, parts: ProcessParts) -> BrokerFigures:
        node, settings = self.node, self.settings
        return BrokerFigures(
            FigureSources(
                bucket=environment.bucket,
                budgets=MemoryBudgets(frames=parts.frames, answers=parts.answers),
                health=self.health,
                work=self._counts,
                requests=self.requests,
                limits={name: getattr(settings, name) for name in EXPORTED_LIMITS},
                state=BoundedState(
                    view=lambda: node.view,
                    producers=lambda: _producer_rows(node),
                    group_bytes=lambda: node.epochs.group_bytes if self.health.started else None,
                    fetch_sessions=lambda: node.parts.log.sessions if self.health.started else None,
                    certificate_s=parts.certificate_s,
                    token_keys=parts.token_keys,
                ),
            )
        )

    def _handle(self, connection: Connection, frame: Frame, answer: ResponseSlot) -> None:
        """Handle a request. Raises `MalformedRequestError`."""
        if not self.has_begun:
            frame.release()
            raise MalformedRequestError("its tenant is not served yet")
        self.node.dispatcher.handle(connection, frame, answer)

    async def begin(self, ports: Mapping[str, int]) -> int:
        """Join the cluster; `ports` are those of all listeners by name. Returns the epoch. Raises
        `BucketlogError`. The calling task, and those that the log starts, are of the tenant."""
        if self.tenant:
            TENANT.set(self.tenant)
        self.epoch = epoch = await self.node.begin([ports[spec.name] for spec in self._listeners])
        self.service.quotas = self.node.parts.log.quotas
        self.has_begun = True
        return epoch

    @property
    def name(self) -> BrokerName | None:
        """The name of this broker in the log's cluster; None before it has joined."""
        if not self.has_begun:
            return None
        membership = self.node.membership
        me = membership.me
        return BrokerName(
            self.tenant,
            me.node_id,
            f"{me.address.host}:{me.address.port}",
            me.address.zone,
            membership.cluster_id,
        )

    def take_over(self, former: "HostedLog") -> None:
        """Serve the clients of a log that could not begin."""
        self.service = former.service
        self.service.handler, self.service.figures = self._handle, self.requests

    async def serve(self) -> None:
        """Have clients sent to this broker from now on."""
        await self.node.serve()

    def find_credential(self, user: str, mechanism: ScramMechanism) -> ScramCredential | None:
        if not self.has_begun:
            return None
        parts = self.node.parts
        return credentials_of(parts.log.view, parts.seal)(user, mechanism)

    async def find_token(self, token_id: str, mechanism: ScramMechanism) -> TokenLogin | None:
        """Return the login by a delegation token. None: the token does not exist, or the node has
        not begun."""
        if not self.has_begun:
            return None
        parts = self.node.parts
        return await tokens_of(parts.log.view, parts.token_secrets)(token_id, mechanism)

    async def hand_over(self) -> None:
        self.health.started = False
        await self.node.hand_over()

    async def drain(self, deadline: float) -> None:
        await self.node.drain(deadline)

    async def close(self) -> None:
        self.has_begun = False
        await self.node.close()


async def for_all(
    logs: Sequence[HostedLog], work: Callable[[HostedLog], Awaitable[object]]
) -> None:
    """Do the work for all logs at once. A log that fails does not keep the others from it; then,
    raises the first failure."""
    done = await asyncio.gather(*map(work, logs), return_exceptions=True)
    for failure in done:
        if isinstance(failure, BaseException):
            raise failure


def _producer_rows(node: Node) -> ProducerRows | None:
    """Return the rows of producers; None while the broker looks for Redis."""
    return None if node.view is None else node.parts.cluster.sequencer.producer_rows
