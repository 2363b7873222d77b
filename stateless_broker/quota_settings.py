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
    client_quota_samples: Positive = Field(
        11,
        description="quota.window.num: samples of a window. A client that was quiet may use the "
        "quota of all samples but one at once.",
    )
    client_quota_sample_ms: Positive = Field(
        1_000, description="quota.window.size.seconds: length of a sample."
    )
    client_quota_tracked_max: Positive = Field(
        10_000,
        description="Limit of users and client ids whose rates a broker measures, and of "
        "addresses. At the limit, it forgets the one that was quiet for longest.",
    )
    client_quota_idle_ms: Positive = Field(
        3_600_000, description="How long the rate of a quiet client is remembered."
    )
