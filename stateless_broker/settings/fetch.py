"""The broker's settings for Fetch requests, and for the caches that serve them: a part of
`BrokerSettings`."""

from pydantic import Field
from pydantic_settings import BaseSettings

from bucketlog.stateless_broker.settings.types import MIB, NotNegative, Positive


class FetchSettings(BaseSettings):
    fetch_bytes_max: Positive = Field(55 * MIB, description="fetch.max.bytes")
    fetch_wait_ms_max: NotNegative = Field(
        60_000, description="Limit of the time that a Fetch request may wait."
    )
    fetch_ranges_in_flight: Positive = Field(
        16, description="Limit of concurrent reads of recent segments from the bucket."
    )
    history_ranges_in_flight: Positive = Field(
        4, description="Limit of concurrent reads of older segments from the bucket."
    )
    read_ahead_bytes: NotNegative = Field(
        8 * MIB,
        description="Bytes of a partition that are read ahead for a consumer that catches up; "
        "0: none.",
    )
    cache_recent_bytes_max: NotNegative = Field(
        128 * MIB, description="Memory of the cache of recent segments."
    )
    cache_history_bytes_max: NotNegative = Field(
        64 * MIB, description="Memory of the cache of ranges of older segments."
    )
    tier_index_bytes_max: NotNegative = Field(
        32 * MIB, description="Memory of the cache of indexes and manifests of old segments."
    )
    fetch_places_max: NotNegative = Field(
        100_000,
        description="Number of positions in old segments that are remembered for the next fetch.",
    )
    fetch_session_cache_slots_max: NotNegative = Field(
        1_000,
        description="max.incremental.fetch.session.cache.slots: the number of incremental fetch "
        "sessions (KIP-227). 0: no sessions.",
    )
    fetch_session_cache_bytes_max: NotNegative = Field(
        128 * MIB,
        description="Memory of all incremental fetch sessions: at most 1.7 KB for a partition.",
    )
    fetch_session_partitions_max: NotNegative = Field(
        10_000,
        description="Partitions of one incremental fetch session. A client with more sends full "
        "requests.",
    )
    fetch_read_ms_max: Positive = Field(
        20_000, description="How long a fetch waits for the bucket; then its partitions fail."
    )
