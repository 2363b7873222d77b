"""The file of tenants: TOML, one table for each tenant (docs/tenants.md). Pure.

    [acme]
    listeners = ["ACME"]
    share = 2
    cluster_partitions_max = 1000

Invariants: names are labels of host names, so server names, bucket prefixes and metrics contain
them unchanged. The size of the file and the number of tenants are bounded. A listener
belongs to at most one tenant.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

TENANTS_BYTES_MAX = 1 << 20
SHARE_MAX = 1_000
NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
FOLDER = "tenants"
"""Folder of the tenants' logs, in the folder or prefix that `bucket_url` names."""
LISTENERS, SHARE = "listeners", "share"
OWN_SETTINGS = frozenset(
    {
        *("acls_max", "allow_everyone_if_no_acl_found", "authorization", "auto_create_topics"),
        *("bucket_url", "cache_history_bytes_max", "cache_recent_bytes_max"),
        *("client_quota_entities_max", "cluster_partitions_max", "coordinated_groups_bytes_max"),
        *("fetch_session_cache_bytes_max", "fetch_session_cache_slots_max"),
        *("flush_interval_ms", "groups_max", "log_retention_bytes", "log_retention_ms"),
        *("message_max_bytes", "num_partitions", "oauthbearer_audiences", "offsets_max"),
        *("offsets_retention_minutes", "partition_changes_per_s", "partitions_max"),
        *("producers_max", "scram_credentials_max", "stream_bytes_max", "super_users"),
        *("transactional_ids_max", "transaction_names_bytes_max"),
    }
)
"""Settings of brokers that a tenant may have with another value."""


@dataclass(frozen=True, slots=True)
class TenantSpec:
    """A tenant as it is configured. `listeners` are those that belong to the tenant alone, `share`
    is the tenant's weight beside the others, `settings` are among `OWN_SETTINGS`."""

    name: str
    listeners: tuple[str, ...] = ()
    share: int = 1
    settings: Mapping[str, object] = field(default_factory=dict)


def tenant_url(bucket_url: str, tenant: TenantSpec) -> str:
    """Return the URL of the tenant's log. It is in the brokers' bucket, unless the tenant has
    another."""
    own = tenant.settings.get("bucket_url")
    return str(own) if own is not None else f"{bucket_url.rstrip('/')}/{FOLDER}/{tenant.name}"


def is_tenant_name(name: str) -> bool:
    return NAME.fullmatch(name) is not None


def read_tenants(text: str, *, tenants_max: int) -> tuple[TenantSpec, ...]:
    """The tenants, by name. Raises `ValueError`, which says what to write instead."""
    if len(text.encode()) > TENANTS_BYTES_MAX:
        raise ValueError(f"the file has more than {TENANTS_BYTES_MAX} bytes")
    try:
        tables = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ValueError(f"the file is not TOML: {error}") from None
    if not tables:
        raise ValueError("there is no tenant: write a table [NAME] for each tenant")
    if len(tables) > tenants_max:
        raise ValueError(
            f"{len(tables)} tenants; {tenants_max} are accepted (BUCKETLOG_TENANTS_MAX)"
        )
    found = tuple(_tenant(name, tables[name]) for name in sorted(tables))
    owners: dict[str, str] = {}
    for tenant in found:
        for listener in tenant.listeners:
            if listener in owners:
                raise ValueError(
                    f"listener {listener} belongs to {owners[listener]} and to {tenant.name}: "
                    "give each tenant a separate listener"
                )
            owners[listener] = tenant.name
    return found


def _tenant(name: str, table: Any) -> TenantSpec:
    if not is_tenant_name(name):
        raise ValueError(
            f"{name[:80]!r} cannot name a tenant: use 1 to 63 lower-case letters, digits and "
            "hyphens, with a letter or digit at both ends"
        )
    if not isinstance(table, dict):
        raise ValueError(f"{name} is not a table: write [{name}]")
    unknown = sorted(table.keys() - OWN_SETTINGS - {LISTENERS, SHARE})
    if unknown:
        known = ", ".join(sorted({LISTENERS, SHARE, *OWN_SETTINGS}))
        raise ValueError(
            f"tenant {name}: {unknown[0][:80]!r} is not a setting of tenants; these are: {known}"
        )
    share = table.get(SHARE, 1)
    if not isinstance(share, int) or isinstance(share, bool) or not 1 <= share <= SHARE_MAX:
        raise ValueError(f"tenant {name}: share is a whole number from 1 to {SHARE_MAX}")
    settings = {key: value for key, value in table.items() if key in OWN_SETTINGS}
    return TenantSpec(name, _listeners(name, table.get(LISTENERS, [])), share, settings)


def _listeners(name: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
        raise ValueError(f'tenant {name}: listeners is a list of names, as in ["CLIENTS"]')
    return tuple(dict.fromkeys(str(each).upper() for each in value))
