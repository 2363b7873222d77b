"""The Redis that a broker's sequencer uses: the configured one, the Valkey that a claim names, or a
Valkey that this broker starts.

Invariants: the server is chosen only between two epochs, by the one task that joins them. A broker
runs at most one Valkey, and stops it when the broker is in an epoch on another server. The login of
the configured Redis is sent only to the configured Redis. `server_choice` has the rules.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Protocol

from redis.asyncio import Redis

from bucketlog.log_format.errors import (
    ConfigurationError,
    SequencerError,
    SequencerUnavailableError,
)
from bucketlog.metadata.sequencer.client import Sequencer
from bucketlog.metadata.sequencer.endpoint import Endpoint
from bucketlog.stateless_broker.epochs.activation import Claim
from bucketlog.stateless_broker.epochs.server_choice import (
    Mandate,
    Reach,
    ServerLimits,
    Sight,
    Steadiness,
    Step,
    Wish,
    next_step,
)

logger = logging.getLogger(__name__)

Judge = Callable[[bool], Awaitable[str | None]]
"""Returns why the claimed epoch may not be taken from its brokers yet; None if it may. The argument
says whether the epoch's server is gone."""


class StartedRedis(Protocol):
    """A Valkey that this broker started. It ends with the broker's process."""

    @property
    def endpoint(self) -> Endpoint: ...

    @property
    def is_running(self) -> bool: ...

    async def stop(self) -> str:
        """Stop the server. Returns its last log lines."""
        ...


class EmbeddedRedis(Protocol):
    """Starts Valkeys, and connects to the Valkeys of other brokers."""

    async def start(self) -> StartedRedis:
        """Start a Valkey. Raises `SequencerUnavailableError` and `ConfigurationError`."""
        ...

    def connect(self, endpoint: Endpoint) -> Redis: ...

    async def is_refused(self, endpoint: Endpoint) -> bool:
        """Whether the machine refuses the connection, so that nothing listens there."""
        ...


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """`follows`: whether the broker uses the server that a claim names. `probe_timeout_ms` bounds
    each check of a server that is not in use. `bucket_mark`: claims with another mark are not
    followed, because a copy of a bucket has the claims of the original."""

    limits: ServerLimits
    follows: bool
    probe_timeout_ms: int
    bucket_mark: str


class Servers:
    """`configured` is None without a configured Redis. Without `embedded`, the configured Redis is
    the only server."""

    def __init__(
        self,
        sequencer: Sequencer,
        settings: ServerSettings,
        *,
        configured: Redis | None,
        embedded: EmbeddedRedis | None,
    ) -> None:
        self._sequencer = sequencer
        self._settings = settings
        self.limits = settings.limits
        self._embedded = embedded
        self._configured = configured
        self._probe = sequencer.beside(configured) if configured is not None else None
        self._configured_heard_s: float | None = None
        self._own: StartedRedis | None = None
        self._client: Redis | None = None
        """The client of the server in use, unless that is the configured Redis."""
        self._mandate: Mandate | None = None
        self._claimed: Reach | None = None
        """The last state of the newest claim's server."""
        self._steadiness = Steadiness(settings.limits.steady)
        self._settled: Endpoint | None = None
        self._has_settled = False
        self.endpoint: Endpoint | None = None
        """The endpoint of the server in use; None for the configured Redis."""

    @property
    def may_switch(self) -> bool:
        """Whether the broker may use a server other than the configured Redis."""
        return self._embedded is not None

    @property
    def holds_server(self) -> bool:
        """Whether the server in use is this broker's own Valkey."""
        return self._own is not None and self.endpoint == self._own.endpoint

    @property
    def runs_server(self) -> bool:
        """Whether this broker has a Valkey."""
        return self._own is not None and self._own.is_running

    @property
    def is_claimed_gone(self) -> bool:
        """Whether the server of the newest claim refused connections."""
        return self._claimed is Reach.GONE

    # Between two epochs ----------------------------------------------------------------------

    def give_mandate(self, mandate: Mandate) -> None:
        """The epoch after `mandate.epoch` may be claimed."""
        self._mandate = mandate

    def has_mandate(self, epoch: int) -> bool:
        return self._mandate is not None and self._mandate.epoch == epoch

    async def select(self, claim: Claim, judge: Judge) -> None:
        """Choose the server for the epoch after `claim`, the newest claim.

        Raises `SequencerUnavailableError`, which says why the broker waits, and before the first
        epoch `ConfigurationError`."""
        if self._embedded is None:
            return
        if not self.has_mandate(claim.epoch):
            self._mandate = None
        client, self._claimed = await self._reach_claimed(claim)
        try:
            configured, why = await self._reach_configured()
            sight = Sight(
                self._claimed,
                configured,
                self._silent_ms(),
                self._mandate.wish if self._mandate is not None else None,
            )
            step = next_step(sight, self._settings.limits.timeout_ms)
            if step is Step.FOLLOW and claim.endpoint is not None:
                if client is not None:
                    used, client = client, None
                    await self._use(used, claim.endpoint)
                return
        finally:
            if client is not None:
                await client.aclose()
        if step is Step.CONFIGURED:
            await self._use_configured()
        elif step is Step.WAIT:
            raise SequencerUnavailableError(why)
        else:
            await self._use_own(claim, judge if step is Step.JUDGE else None)

    async def _use_own(self, claim: Claim, judge: Judge | None) -> None:
        reason = await judge(self.is_claimed_gone) if judge is not None and claim.epoch else None
        if reason is not None:
            await self._stop_unclaimed(claim)
            raise SequencerUnavailableError(reason)
        self._mandate = Mandate(claim.epoch, Wish.ELECT)
        assert self._embedded is not None
        if self._own is not None and not self._own.is_running:
            await self._stop_own()
        if self._own is None:
            self._own = await self._embedded.start()
            logger.warning(
                "no Redis is in reach: this broker runs the sequencer's Valkey at %s",
                self._own.endpoint,
            )
        if not self.holds_server:
            await self._use(self._embedded.connect(self._own.endpoint), self._own.endpoint)

    async def _use_configured(self) -> None:
        if self.endpoint is not None:
            assert self._configured is not None
            logger.info("the sequencer is the configured Redis")
            self._sequencer.use(self._configured)
            await self._replace_client(None, None)

    async def _use(self, client: Redis, endpoint: Endpoint) -> None:
        logger.info("the sequencer is the Valkey of a broker, at %s", endpoint)
        self._sequencer.use(client)
        await self._replace_client(client, endpoint)

    async def _replace_client(self, client: Redis | None, endpoint: Endpoint | None) -> None:
        former, self._client, self.endpoint = self._client, client, endpoint
        if former is not None:
            await former.aclose()

    async def settle(self) -> None:
        """Note that the broker has joined an epoch on the server in use."""
        if self.endpoint is not None and self._has_settled and self._settled is None:
            self._steadiness.note_move(_now_s())
        self._settled, self._has_settled = self.endpoint, True
        if self._probe is not None:
            self._probe.note_start_complete()
        if self._own is not None and not self.holds_server:
            logger.info("this broker's Valkey is not needed any more")
            await self._stop_own()

    async def _stop_unclaimed(self, claim: Claim) -> None:
        """Stop this broker's Valkey if another broker's claim came first. The claimed server works,
        but this broker does not reach it."""
        if self._own is None or self._own.endpoint == claim.endpoint or self._configured is None:
            return
        logger.info(
            "epoch %d is on another server: this broker's Valkey is not needed", claim.epoch
        )
        await self._use_configured()
        await self._stop_own()

    async def _stop_own(self) -> None:
        own, self._own = self._own, None
        if own is not None:
            await own.stop()

    # Checks of the servers -------------------------------------------------------------------

    async def is_server_gone(self) -> bool:
        """Whether the server in use is a broker's Valkey whose process has ended."""
        if self.holds_server and not self.runs_server:
            return True
        if self._embedded is None or self.endpoint is None:
            return False
        return await self._is_refused(self.endpoint)

    async def may_return(self) -> bool:
        """Whether the log should move back from this broker's Valkey to the configured Redis."""
        if not self.holds_server or self._probe is None:
            return False
        reach, _ = await self._reach_configured()
        self._steadiness.note(_now_s(), answers=reach is Reach.ANSWERS)
        return self._steadiness.is_steady(_now_s())

    async def _reach_claimed(self, claim: Claim) -> tuple[Redis | None, Reach | None]:
        """The client is None if the server is in use already, or is not to be used."""
        endpoint = claim.endpoint
        if endpoint is None or self._embedded is None:
            return None, None
        is_own = self._own is not None and self._own.endpoint == endpoint
        if not is_own and (
            not self._settings.follows or claim.bucket != self._settings.bucket_mark
        ):
            return None, None
        async with AsyncExitStack() as unless_used:
            client = self._embedded.connect(endpoint)
            unless_used.push_async_callback(client.aclose)
            try:
                async with asyncio.timeout(self._settings.probe_timeout_ms / 1000):
                    identity = await self._sequencer.beside(client).check_server()
            except (SequencerError, ConfigurationError, TimeoutError) as error:
                logger.info("the Valkey at %s is out of reach: %s", endpoint, error)
                is_gone = await self._is_refused(endpoint)
                return None, Reach.GONE if is_gone else Reach.SILENT
            if not claim.is_for(identity):
                return None, Reach.GONE
            if self.endpoint == endpoint:
                return None, Reach.ANSWERS
            unless_used.pop_all()
            return client, Reach.ANSWERS

    async def _reach_configured(self) -> tuple[Reach | None, str]:
        """The state of the configured Redis, and why it does not answer."""
        if self._probe is None:
            return None, ""
        if self._configured_heard_s is None:
            self._configured_heard_s = _now_s()
        try:
            async with asyncio.timeout(self._settings.probe_timeout_ms / 1000):
                await self._probe.check_server()
        except TimeoutError:
            return Reach.SILENT, "Redis does not answer"
        except SequencerError as error:
            return Reach.SILENT, str(error)
        except ConfigurationError as error:
            if not self._has_settled:
                raise
            return Reach.SILENT, str(error)
        self._configured_heard_s = _now_s()
        return Reach.ANSWERS, ""

    def note_contact(self) -> None:
        """The server in use has answered."""
        if self.endpoint is None:
            self._configured_heard_s = _now_s()

    def _silent_ms(self) -> float:
        if self._configured_heard_s is None:
            return 0.0
        return (_now_s() - self._configured_heard_s) * 1000

    async def _is_refused(self, endpoint: Endpoint) -> bool:
        assert self._embedded is not None
        try:
            async with asyncio.timeout(self._settings.probe_timeout_ms / 1000):
                return await self._embedded.is_refused(endpoint)
        except TimeoutError:
            return False

    async def follow_primary(self, interval_ms: int) -> None:
        """Watch for a new primary of the configured Redis."""
        if self._probe is not None:
            await self._probe.follow_primary(interval_ms)

    async def close(self) -> None:
        """Close all connections, and end this broker's Valkey."""
        if self._client is not None:
            await self._client.aclose()
        if self._configured is not None:
            await self._configured.aclose()
        await self._stop_own()


def _now_s() -> float:
    return asyncio.get_running_loop().time()
