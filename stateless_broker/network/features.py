"""The features in an ApiVersions response (KIP-584): clients choose by them how they use
transactions (KIP-890)."""

from bucketlog.log_format.wire.messages.api_versions import ApiVersionsResponse

TRANSACTION_VERSION = "transaction.version"
LEVEL_0_FROM = 4


def add_feature(response: ApiVersionsResponse, version: int, level: int) -> None:
    """Add the level of transactions. Clients of version 3 refuse 0 as the lowest level, so Kafka
    replaces it (KAFKA-17011)."""
    lowest = 1 if version < LEVEL_0_FROM else 0
    response["supported_features"] = [
        {"name": TRANSACTION_VERSION, "min_version": lowest, "max_version": level}
    ]
    response["finalized_features_epoch"] = 0
    response["finalized_features"] = [
        {"name": TRANSACTION_VERSION, "max_version_level": level, "min_version_level": level}
    ]
