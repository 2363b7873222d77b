"""The logs of a process: one, or one for each tenant; and the entrances of their clients.

Invariants: on each listener, a connection gets its tenant before a handler sees a request. A tenant
whose log cannot begin does not keep the others from being served: its clients are refused until it
begins.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Mapping, Sequence
from typing import Protocol

from bucketlog.log_format.errors import BucketlogError
from bucketlog.metadata.scram_credentials import ScramMechanism
from bucketlog.stateless_broker.assembly.logins import Logins
from bucketlog.stateless_broker.assembly.tenant_plan import TenantPlan, chooses_by_name
from bucketlog.stateless_broker.assembly.tokens import token_rules
from bucketlog.stateless_broker.authentication.login import LoginRules
from bucketlog.stateless_broker.authentication.realms import (
    FindCredential,
    find_by_realm,
    find_token_by_realm,
)
from bucketlog.stateless_broker.authentication.scram import ScramCredential
from bucketlog.stateless_broker.authentication.token_login import FindToken, TokenLogin
from bucketlog.stateless_broker.authentication.verification_keys import VerificationKeys
from bucketlog.stateless_broker.health import Health, Readiness
from bucketlog.stateless_broker.network.connection_owner import Entrance
from bucketlog.stateless_broker.network.loop_share import LoopShare
from bucketlog.stateless_broker.network.request_figures import RequestFigures
from bucketlog.stateless_broker.network.server_names import by_first_label
from bucketlog.stateless_broker.process.hosted_log import HostedLog, ProcessParts, for_all
from bucketlog.stateless_broker.process.lobby import Lobby
from bucketlog.stateless_broker.process.metrics import RenderedFigures
from bucketlog.stateless_broker.process.tenant_figures import TenantFigures, TenantsHealth
from bucketlog.stateless_broker.settings.broker import BrokerSettings
from bucketlog.stateless_broker.settings.listener_addresses import ListenerSpec

logger = logging.getLogger(__name__)

BEGIN_AGAIN_S = 10.0
"""The pause before a tenant's log that could not begin is tried again."""


class Hosting(Protocol):
    """All logs of the process."""

    @property
    def logs(self) -> Sequence[HostedLog]: ...

    @property
    def figures(self) -> RenderedFigures: ...

    @property
    def readiness(self) -> Readiness: ...

    @property
    def requests(self) -> RequestFigures:
        """Figures of the requests of all connections."""

    async def begin(self, ports: Mapping[str, int]) -> None:
        """Begin the logs. `ports` are those of the listeners, by name. Raises `BucketlogError`."""

    async def serve(self) -> None:
        """Have clients sent to this broker from now on."""

    def note_started(self) -> None:
        """The process has started, for readiness."""

    def entrances(self, keys: VerificationKeys | None) -> dict[str, Entrance]:
        """Make the entrances of the listeners, by name. `keys` None: no OAUTHBEARER."""


class OnlyLog:
    """The log of a broker without tenants."""

    def __init__(self, log: HostedLog) -> None:
        self.logs = [log]
        self.figures = log.figures
        self.readiness = log.health
        self.requests = log.requests

    async def begin(self, ports: Mapping[str, int]) -> None:
        await for_all(self.logs, lambda log: log.begin(ports))

    async def serve(self) -> None:
        await for_all(self.logs, HostedLog.serve)

    def note_started(self) -> None:
        """The health of the log is that of the process."""

    def entrances(self, keys: VerificationKeys | None) -> dict[str, Entrance]:
        (log,) = self.logs
        tokens = None if keys is None else token_rules(log.settings)
        logins = Logins(
            log.settings,
            log.find_credential,
            find_token=log.find_token,
            keys=keys,
            tokens=tokens,
        )
        return {
            spec.name: Entrance(spec.name, _rules(logins, spec), log.service)
            for spec in log.settings.listener_specs
        }


class TenantLogs:
    """The logs of tenants. `health` is that of the process, for what all tenants share."""

    def __init__(
        self,
        settings: BrokerSettings,
        plans: Sequence[TenantPlan],
        parts: ProcessParts,
        health: Health,
    ) -> None:
        self._settings = settings
        self._plans = {plan.name: plan for plan in plans}
        self._parts = parts
        self._health = health
        self._by_name: dict[str, HostedLog] = {}
        self._absent: set[str] = set()
        """Tenants whose log has not begun."""
        self._ports: Mapping[str, int] = {}
        self._lobby = Lobby(settings, parts)
        self.requests = self._lobby.service.figures
        self._shares = {
            name: LoopShare(
                settings.tenant_turn_ms,
                now_ns=time.perf_counter_ns,
                call_soon=asyncio.get_running_loop().call_soon,
            )
            for name in self._plans
        }
        self.figures = TenantFigures(lambda: self.logs, self._shares, self.requests)
        self.readiness = TenantsHealth(health, lambda: self.logs)

    @property
    def logs(self) -> list[HostedLog]:
        return list(self._by_name.values())

    async def open(self) -> None:
        """Open the logs. Raises `BucketlogError`."""
        for name in self._plans:
            self._by_name[name] = await self._open(name)

    async def _open(self, name: str) -> HostedLog:
        plan = self._plans[name]
        return await HostedLog.open(
            name,
            plan.settings,
            plan.listeners,
            parts=self._parts,
            health=Health(),
            share=self._shares[name],
        )

    async def begin(self, ports: Mapping[str, int]) -> None:
        """Begin all logs. Raises the failure of the first tenant if all of them fail."""
        self._ports = ports
        turns = asyncio.Semaphore(self._settings.tenants_started_at_once)

        async def begin(log: HostedLog) -> None:
            async with turns:
                await log.begin(ports)

        done = await asyncio.gather(*map(begin, self.logs), return_exceptions=True)
        failures: list[BucketlogError] = []
        for log, failure in zip(self.logs, done, strict=True):
            if isinstance(failure, BucketlogError):
                failures.append(failure)
                self._note_absent(log.tenant, failure)
            elif isinstance(failure, BaseException):
                raise failure
        if len(failures) == len(self._by_name):
            raise failures[0]

    def _note_absent(self, name: str, failure: BucketlogError) -> None:
        self._absent.add(name)
        logger.error("tenant %s is not served: %s", name, failure)

    async def serve(self) -> None:
        await for_all([log for log in self.logs if log.has_begun], HostedLog.serve)

    def note_started(self) -> None:
        for log in self.logs:
            log.health.started = log.has_begun

    async def begin_absent(self) -> None:
        """Try the tenants whose log could not begin again and again, for ever."""
        while True:
            await asyncio.sleep(BEGIN_AGAIN_S)
            for name in sorted(self._absent):
                await self._begin_again(name)

    async def _begin_again(self, name: str) -> None:
        former = self._by_name[name]
        await former.close()
        try:
            log = self._by_name[name] = await self._open(name)
            log.take_over(former)
            await for_all([log], lambda each: each.begin(self._ports))
            await log.serve()
        except BucketlogError as failure:
            self._note_absent(name, failure)
        else:
            log.health.started = True
            self._absent.discard(name)
            logger.info("tenant %s is served", name)

    def entrances(self, keys: VerificationKeys | None) -> dict[str, Entrance]:
        of_tenants = {name: self._entrances_of(plan, keys) for name, plan in self._plans.items()}
        owners = {
            listener: plan.name for plan in self._plans.values() for listener in plan.spec.listeners
        }
        rules = self._realm_logins(keys)
        found: dict[str, Entrance] = {}
        for spec in self._settings.listener_specs:
            owner = owners.get(spec.name)
            if owner is not None:
                found[spec.name] = of_tenants[owner][spec.name]
                continue
            own = {name: entrances[spec.name] for name, entrances in of_tenants.items()}
            by_label = by_first_label(own) if chooses_by_name(self._settings, spec) else None
            found[spec.name] = Entrance(
                spec.name, _rules(rules, spec), self._lobby.service, by_label, own
            )
        return found

    def _entrances_of(self, plan: TenantPlan, keys: VerificationKeys | None) -> dict[str, Entrance]:
        """Make the entrances of one tenant, by the name of the listener."""
        tokens = None if keys is None else token_rules(plan.settings, {plan.name: plan.settings})
        logins = Logins(
            plan.settings,
            self._finder(plan.name),
            find_token=self._token_finder(plan.name),
            keys=keys,
            tokens=tokens,
        )
        service = self._by_name[plan.name].service
        return {
            spec.name: Entrance(spec.name, _rules(logins, spec), service) for spec in plan.listeners
        }

    def _realm_logins(self, keys: VerificationKeys | None) -> Logins:
        """Logins whose users name their tenant."""
        settings = self._settings
        has_tokens = keys is not None and settings.tenant_claim_name is not None
        tenants = {plan.name: plan.settings for plan in self._plans.values()}
        return Logins(
            settings,
            find_by_realm({name: self._finder(name) for name in self._plans}),
            find_token=find_token_by_realm(
                {name: self._token_finder(name) for name in self._plans}
            ),
            keys=keys,
            tokens=token_rules(settings, tenants) if has_tokens else None,
            has_realms=True,
        )

    def _finder(self, name: str) -> FindCredential:
        def find(user: str, mechanism: ScramMechanism) -> ScramCredential | None:
            return self._by_name[name].find_credential(user, mechanism)  # a later log, too

        return find

    def _token_finder(self, name: str) -> FindToken:
        def find(token_id: str, mechanism: ScramMechanism) -> Awaitable[TokenLogin | None]:
            return self._by_name[name].find_token(token_id, mechanism)  # a later log, too

        return find


def _rules(logins: Logins, spec: ListenerSpec) -> LoginRules | None:
    return logins.rules(is_tls=spec.is_tls) if spec.has_login else None
