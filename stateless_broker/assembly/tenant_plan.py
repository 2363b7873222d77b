"""Plan what each tenant of a broker gets: settings, a share of what all tenants share, listeners.

Invariants: no two tenants share a bucket's folder, hence no epoch, no key of Redis and no object.
On each listener, a rule chooses the tenant of every client. If clients log in by token, one
tenant's tokens are refused by the others. A configuration that breaks one of these is refused.
Pure, except for reading the file.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_address
from itertools import combinations
from pathlib import Path

from pydantic import ValidationError

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.stateless_broker.settings.broker import BrokerSettings
from bucketlog.stateless_broker.settings.listener_addresses import ListenerSpec
from bucketlog.stateless_broker.settings.logins import OAUTHBEARER
from bucketlog.stateless_broker.settings.tenant_specs import (
    TENANTS_BYTES_MAX,
    TenantSpec,
    is_tenant_name,
    read_tenants,
    tenant_url,
)
from bucketlog.tiered_storage.backends.location import parse_location

SHARED_SETTINGS = (
    *("acls_max", "authorization_decisions_max", "cache_history_bytes_max"),
    *("cache_recent_bytes_max", "client_quota_entities_max", "client_quota_tracked_max"),
    *("cluster_partitions_max", "coordinated_groups_bytes_max", "deletion_keys_per_s"),
    *("fetch_places_max", "fetch_session_cache_bytes_max", "fetch_session_cache_slots_max"),
    *("groups_max", "known_batches_max", "metadata_cache_bytes_max"),
    *("offset_rows_in_flight", "offsets_max", "partition_changes_per_s", "producers_max"),
    *("scram_credentials_max", "stream_bytes_max", "tier_index_bytes_max"),
    *("transaction_names_bytes_max", "transactional_ids_max"),
)
"""Limits of a broker or a cluster. By default, each tenant gets its share of them."""
_WHERE = "BUCKETLOG_TENANTS_FILE"


@dataclass(frozen=True, slots=True)
class TenantPlan:
    """The plan for a tenant. `settings` are those of the tenant's log. `listeners` are those of its
    clients, with the addresses that these use."""

    spec: TenantSpec
    settings: BrokerSettings
    listeners: tuple[ListenerSpec, ...]

    @property
    def name(self) -> str:
        return self.spec.name


def load_tenants(settings: BrokerSettings) -> tuple[TenantPlan, ...]:
    """Return the plans of all tenants, empty without a file of tenants. Raises
    `ConfigurationError`."""
    if settings.tenants_file is None:
        return ()
    specs = _read(settings.tenants_file, settings.tenants_max)
    try:
        return plan_tenants(settings, specs)
    except ValueError as error:
        raise ConfigurationError(f"{_WHERE}: {error}", remedy="see docs/tenants.md") from error


def _read(file: Path, tenants_max: int) -> tuple[TenantSpec, ...]:
    try:
        with file.open("rb") as opened:
            data = opened.read(TENANTS_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigurationError(
            f"{_WHERE}: cannot read {file}: {error.strerror}",
            remedy="name a file that the broker may read",
        ) from error
    try:
        return read_tenants(data.decode(), tenants_max=tenants_max)
    except ValueError as error:
        raise ConfigurationError(
            f"{_WHERE}: {file}: {error}", remedy="correct the file (docs/tenants.md)"
        ) from error


def plan_tenants(settings: BrokerSettings, specs: Sequence[TenantSpec]) -> tuple[TenantPlan, ...]:
    """Plan the tenants. Raises `ValueError`, which says what to write instead."""
    if settings.redis_url is None:
        raise ValueError("tenants need a Redis that all of them use: set BUCKETLOG_REDIS_URL")
    owners = {listener: spec.name for spec in specs for listener in spec.listeners}
    _check_listeners(settings, specs, owners)
    shares = sum(spec.share for spec in specs)
    plans = tuple(
        TenantPlan(
            spec,
            _settings(settings, spec, shares),
            tuple(
                _as_seen_by(settings, spec.name, listener, owners)
                for listener in settings.listener_specs
                if owners.get(listener.name, spec.name) == spec.name
            ),
        )
        for spec in specs
    )
    for plan in plans:
        if not plan.listeners:
            raise ValueError(f"tenant {plan.name} has no listener: add one to BUCKETLOG_LISTENERS")
    _check_folders(plans)
    _check_tokens(settings, plans)
    return plans


def _check_listeners(
    settings: BrokerSettings, specs: Sequence[TenantSpec], owners: Mapping[str, str]
) -> None:
    known = {each.name: each for each in settings.listener_specs}
    for listener, tenant in owners.items():
        if listener not in known:
            raise ValueError(
                f"tenant {tenant}: there is no listener {listener}; there are {', '.join(known)}"
            )
    names = {spec.name for spec in specs}
    for name, each in known.items():
        if name in owners:
            continue
        by_name = chooses_by_name(settings, each)
        if not by_name and not each.has_login:
            raise ValueError(
                f"listener {name}: no rule chooses the tenant of its clients. Name the listener in "
                "the listeners of one tenant, or use SASL, or TLS with a host name in "
                "BUCKETLOG_ADVERTISED_LISTENERS"
            )
        label = (each.advertised_host or each.host).partition(".")[0].lower()
        if by_name and label in names:
            raise ValueError(
                f"tenant {label} has the name of the host of listener {name}: clients of this "
                "host would reach the tenant. Choose another name"
            )


def chooses_by_name(settings: BrokerSettings, listener: ListenerSpec) -> bool:
    """Return whether TLS's server name shows the tenant. A host name can contain the tenant's name,
    an address cannot."""
    if not listener.is_tls or not settings.tenant_server_names:
        return False
    host = listener.advertised_host or listener.host
    try:
        ip_address(host)
    except ValueError:
        return is_tenant_name(host.partition(".")[0].lower())
    return False


def _as_seen_by(
    settings: BrokerSettings, tenant: str, listener: ListenerSpec, owners: Mapping[str, str]
) -> ListenerSpec:
    if listener.name in owners or not chooses_by_name(settings, listener):
        return listener
    host = listener.advertised_host or listener.host
    return replace(listener, advertised_host=f"{tenant}.{host}")


def _settings(settings: BrokerSettings, spec: TenantSpec, shares: int) -> BrokerSettings:
    own: dict[str, object] = settings.model_dump(exclude_unset=True)
    own |= {
        name: max(1, getattr(settings, name) * spec.share // shares)
        for name in SHARED_SETTINGS
        if getattr(settings, name)
    }
    own |= {
        "bucket_url": tenant_url(settings.bucket_url, spec),
        "sequencer_timeout_ms": 0,
        "tenants_file": None,
    }
    own |= spec.settings
    try:
        return BrokerSettings.model_validate(own)
    except ValidationError as error:
        first = error.errors()[0]
        where = ": ".join(["", *map(str, first["loc"])])
        problem = first["msg"].removeprefix("Value error, ")
        raise ValueError(f"tenant {spec.name}{where}: {problem}") from error


def _check_folders(plans: Sequence[TenantPlan]) -> None:
    places: dict[object, str] = {}
    for plan in plans:
        place = parse_location(plan.settings.bucket_url)
        if place in places:
            raise ValueError(
                f"tenants {places[place]} and {plan.name} have the same bucket_url: give each "
                "another prefix"
            )
        places[place] = plan.name


def _check_tokens(settings: BrokerSettings, plans: Sequence[TenantPlan]) -> None:
    offers = any(
        OAUTHBEARER in settings.mechanisms(is_tls=each.is_tls)
        for each in settings.listener_specs
        if each.has_login
    )
    if not offers or settings.tenant_claim_name is not None:
        return
    for one, other in combinations(plans, 2):
        mine, theirs = one.settings.token_audiences, other.settings.token_audiences
        if mine is None or theirs is None or mine & theirs:
            raise ValueError(
                f"tenants {one.name} and {other.name} would accept each other's tokens: name the "
                "claim with the tenant in BUCKETLOG_TENANT_CLAIM_NAME, or give each tenant its "
                "oauthbearer_audiences"
            )
