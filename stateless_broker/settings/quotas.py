"""The broker's settings for client quotas: a part of `BrokerSettings`."""

from pydantic import Field
from pydantic_settings import BaseSettings

from bucketlog.stateless_broker.settings.types import Positive


class QuotaSettings(BaseSettings):
    client_quota_entities_max: Positive = Field(
        10_000, description="Limit of entities that have client quotas."
    )
    client_quota_name_bytes_max: Positive = Field(
        1_024, description="Limit of the length of each name in the entity of a client quota."
    )
    client_quota_samples: Positive = Field(
        11,
        description="quota.window.num: number of samples in a window. After a pause, a client may "
        "use the quota of all samples except one at once.",
    )
    client_quota_sample_ms: Positive = Field(
        1_000, description="quota.window.size.seconds: duration of a sample."
    )
    client_quota_tracked_max: Positive = Field(
        10_000,
        description="Limit of the rates that a broker measures: one limit for users and client "
        "ids, and one for addresses. At the limit, it forgets the rate that was unused for "
        "longest.",
    )
    client_quota_idle_ms: Positive = Field(
        3_600_000, description="How long a broker remembers the rate of an idle client."
    )
