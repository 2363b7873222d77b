"""The broker's settings for Fetch requests, and for the caches that serve them: a part of
`BrokerSettings`."""

from pydantic import Field
from pydantic_settings import BaseSettings

from bucketlog.stateless_broker.setting_types import MIB, NotNegative, Positive


class FetchSettings(BaseSettings):
    fetch_bytes_max: Positive = Field(55 * MIB, description="fetch.max.bytes")
    fetch_wait_ms_max: NotNegative = Field(60_000, description="The longest a fetch may wait.")
    fetch_ranges_in_flight: Positive = Field(
        16, description="Reads of recent segments from the bucket at once."
    )
    history_ranges_in_flight: Positive = Field(
        4, description="Reads of older segments from the bucket at once."
    )
    read_ahead_bytes: NotNegative = Field(
        8 * MIB, description="How much of a partition is read ahead of who catches up; 0: nothing."
    )
    cache_recent_bytes_max: NotNegative = Field(
        128 * MIB, description="Newest segments that are kept in memory."
    )
    cache_history_bytes_max: NotNegative = Field(
        64 * MIB, description="Older ranges that were read and are kept in memory."
    )
    tier_index_bytes_max: NotNegative = Field(
        32 * MIB, description="Indexes and manifests of old segments that are kept in memory."
    )
    fetch_places_max: NotNegative = Field(
        100_000, description="Answers from old segments of which it is known where they ended."
    )
    fetch_read_ms_max: Positive = Field(
        20_000, description="How long a fetch waits for the bucket; then its partitions fail."
    )
