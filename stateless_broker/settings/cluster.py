"""The broker's settings for membership and for epochs: a part of `BrokerSettings`."""

from typing import Annotated

from pydantic import Field
from pydantic_settings import BaseSettings

from bucketlog.stateless_broker.settings.types import MIB, NotNegative, Port, Positive


class ClusterSettings(BaseSettings):
    heartbeat_interval_ms: Positive = Field(500, description="Interval of the broker's heartbeats.")
    role_timeout_ms: Positive | None = Field(
        None,
        description="If a broker sends no heartbeat for this long, others lead its partitions and "
        "groups. Default: half of session_timeout_ms.",
    )
    withdrawal_ms: NotNegative = Field(
        500,
        description="A broker that cannot write for this long gives its roles to the other "
        "brokers, which close its chain. It takes roles again when writing works.",
    )
    session_timeout_ms: Positive = Field(
        3000,
        description="A broker without a heartbeat for this long is considered dead; others close "
        "its chain.",
    )
    stamp_interval_ms: Positive = Field(
        250,
        description="How often a broker checks whether readers of the bucket alone can read all "
        "visible records. If they cannot, the first broker in line writes a segment with high "
        "watermarks. If it does not, the others write one 2 or 4 intervals later.",
    )
    lifeline_grace_ms: NotNegative = Field(
        200,
        description="If a broker's connection to Redis ends and the broker then sends no heartbeat "
        "for this long, it is considered dead, even before session_timeout_ms. 0 turns this off.",
    )
    sequencer_timeout_ms: NotNegative | None = Field(
        None,
        description="If the sequencer's Redis answers no broker for this long, a broker "
        "starts a Valkey, and the others follow it (docs/redis.md#without-redis). At least "
        "session_timeout_ms. 0: brokers wait for the configured Redis. "
        "Default: session_timeout_ms + 500.",
    )
    redis_steady_ms: NotNegative = Field(
        5000,
        description="The configured Redis must answer for this long before the log moves back to "
        "it. Each recent move away from it doubles the time, up to takeover_quiet_ms_max.",
    )
    sequencer_follow: bool = Field(
        True,
        description="Whether this broker connects to the Valkey of another broker, which the "
        "bucket names.",
    )
    sequencer_probe_timeout_ms: Positive = Field(
        1000,
        description="Time limit of a connection to another broker's Valkey, and of each check of "
        "a Redis that is not in use.",
    )
    embedded_redis_host: str | None = Field(
        None, description="Address that this broker's Valkey listens on (default: host)."
    )
    embedded_redis_port: Port = Field(
        0, description="Port that this broker's Valkey listens on; 0 for any free one."
    )
    embedded_redis_advertised_host: str | None = Field(
        None,
        description="Address where other brokers reach this broker's Valkey (default: "
        "advertised_host).",
    )
    embedded_redis_bytes_max: Annotated[int, Field(ge=64 * MIB)] = Field(
        512 * MIB, description="maxmemory of this broker's Valkey."
    )
    claim_wait_ms: NotNegative = Field(
        30_000,
        description="How long brokers wait until a live broker activates the epoch it claimed.",
    )
    claim_stalled_ms: NotNegative = Field(
        3000,
        description="If an epoch is claimed for another Redis and not activated, a broker claims "
        "the next epoch after this time without progress. The time doubles with each such claim in "
        "a row, up to claim_wait_ms.",
    )
    takeover_quiet_ms: NotNegative = Field(
        1500,
        description="A broker takes an epoch from another Redis only if its brokers have written "
        "nothing to the bucket for this time, or if more brokers use its own Redis. The time "
        "doubles each time the broker loses an epoch to another Redis. It is up to 30 % shorter, "
        "at random.",
    )
    takeover_quiet_ms_max: NotNegative = Field(
        600_000, description="Upper limit of the doubled takeover_quiet_ms."
    )
    seal_look_ms: NotNegative = Field(
        500,
        description="How often a broker whose heartbeats are not answered checks whether others "
        "have sealed its chain; 0: never.",
    )
    claim_look_ms: NotNegative = Field(
        5000,
        description="How often a broker checks whether others have begun a later epoch; 0: never.",
    )
