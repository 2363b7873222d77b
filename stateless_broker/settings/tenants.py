"""The broker's settings for tenants: a part of `BrokerSettings`."""

from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings

from bucketlog.stateless_broker.settings.types import Percent, Positive


class TenantSettings(BaseSettings):
    tenants_file: Path | None = Field(
        None,
        description="TOML file with the tenants of this broker: isolated logs with users, ACLs and "
        "quotas (docs/tenants.md). Use the same file for all brokers of a cluster. Default: the "
        "broker has one log, and no tenants.",
    )
    tenants_max: Positive = Field(200, description="Limit of tenants.")
    tenants_started_at_once: Positive = Field(
        8, description="How many tenants' logs a starting broker joins at the same time."
    )
    tenant_server_names: bool = Field(
        True,
        description="Whether TLS's server name chooses the tenant, as in acme.kafka.example.com, "
        "and Metadata names brokers in this form. Turn this off if such names do not exist in "
        "DNS: then logins choose the tenant.",
    )
    tenant_claim_name: str | None = Field(
        None,
        min_length=1,
        description="The claim of access tokens that names the tenant. Then a token is valid "
        "only for this tenant (docs/tenants.md#tokens).",
    )
    tenant_memory_percent_max: Percent = Field(
        25,
        description="Percentage of produce_buffer_bytes, and of response_memory_bytes_max, that "
        "the clients of one tenant may hold.",
    )
    tenant_connections_percent_max: Percent = Field(
        50, description="Percentage of connections_max that the clients of one tenant may have."
    )
    tenant_turn_ms: Positive = Field(
        5,
        description="If requests of one tenant have kept the event loop busy for this long, "
        "its next request waits until other events have been handled.",
    )
