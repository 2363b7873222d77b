"""The broker's settings for client quotas: a part of `BrokerSettings`."""

from pydantic import Field
from pydantic_settings import BaseSettings

from bucketlog.stateless_broker.setting_types import Positive


class QuotaSettings(BaseSettings):
    client_quota_entities_max: Positive = Field(
        10_000, description="Limit of users, client ids and addresses that have client quotas."
    )
    client_quota_name_bytes_max: Positive = Field(
        1_024, description="Limit of a name in the entity of a client quota."
    )
