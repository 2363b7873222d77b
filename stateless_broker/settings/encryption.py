"""The broker's settings for encrypted topics: a part of `BrokerSettings`."""

from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings

from bucketlog.stateless_broker.settings.types import NotNegative, Positive


class EncryptionSettings(BaseSettings):
    encryption_key_file: Path | None = Field(
        None,
        description="File with the local keys of encrypted topics: a name and a key in hexadecimal "
        "per line (docs/encryption.md). The file is read for each use.",
    )
    encryption_kms_region: str | None = Field(
        None,
        description="AWS region of KMS keys that are not named by an ARN. Default: the region of "
        "the environment.",
    )
    encryption_kms_endpoint_url: str | None = Field(
        None, description="Address of AWS KMS. Default: AWS's usual endpoint."
    )
    encryption_kms_timeout_ms: Positive = Field(
        5_000, description="Timeout of one request to AWS KMS."
    )
    encryption_data_key_ms: Positive = Field(
        86_400_000,
        description="How long a topic's data key encrypts new batches. Then brokers create the "
        "next one.",
    )
    encryption_data_key_kept_ms: Positive = Field(
        300_000,
        description="How long a broker keeps a data key in memory. After this time at the latest, "
        "a key that was deleted or withdrawn does not work any more.",
    )
    encryption_refused_ms: NotNegative = Field(
        5_000, description="How long a broker remembers that the use of a key was refused."
    )
    encryption_wait_ms_max: Positive = Field(
        15_000, description="How long a batch waits for a data key, and a Fetch for its data keys."
    )
    encryption_threads: Positive = Field(
        2, description="Threads that decrypt batches for consumers."
    )
