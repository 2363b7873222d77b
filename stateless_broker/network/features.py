"""The features in an ApiVersions response (KIP-584): clients choose by them how they use
transactions (KIP-890), and tools whether the consumer protocol (KIP-848) and share groups (KIP-932)
are there."""

from collections.abc import Mapping

from bucketlog.log_format.wire.messages.api_versions import ApiVersionsResponse

GROUP_VERSION = "group.version"
TRANSACTION_VERSION = "transaction.version"
SHARE_VERSION = "share.version"
LEVEL_0_FROM = 4


def served_features(*, transactions: bool) -> dict[str, int]:
    """Return the levels of features, by name. Clients and tools ask for these levels."""
    return {GROUP_VERSION: 1, SHARE_VERSION: 1} | ({TRANSACTION_VERSION: 2} if transactions else {})


def add_features(response: ApiVersionsResponse, version: int, levels: Mapping[str, int]) -> None:
    """Add the levels of features, by name. Clients of version 3 refuse 0 as the lowest level, so
    Kafka replaces it (KAFKA-17011)."""
    lowest = 1 if version < LEVEL_0_FROM else 0
    response["supported_features"] = [
        {"name": name, "min_version": lowest, "max_version": level}
        for name, level in levels.items()
    ]
    response["finalized_features_epoch"] = 0
    response["finalized_features"] = [
        {"name": name, "max_version_level": level, "min_version_level": level}
        for name, level in levels.items()
    ]
