"""Checks of single topic configs that no general rule covers.

Source: Kafka 4.3's ThrottledReplicaListValidator and GzipCompression.LevelValidator.
"""

import re

from bucketlog.metadata.config_definitions import Range, Value, invalid

_MIRROR_SOURCE = re.compile(r"[a-zA-Z0-9._-]{0,249}")
_ENCRYPTION_KEY = re.compile(r"(local:[A-Za-z0-9._-]{1,100}|aws-kms:[A-Za-z0-9:/_-]{1,500})?")
_REPLICA = re.compile(r"[0-9]+:[0-9]+")


class ThrottledReplicas:
    def __call__(self, name: str, value: Value) -> str | None:
        assert isinstance(value, tuple)
        is_star = ",".join(value).rstrip(",") == "*"
        if is_star or all(_REPLICA.fullmatch(each) for each in value if each):
            return None
        reason = (
            f"{name} must be the literal '*' or a list of replicas in the following format: "
            "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
        )
        return invalid(name, value, reason)

    def __str__(self) -> str:
        return "a list of partition:broker, or *"


class GzipLevel:
    def __call__(self, name: str, value: Value) -> str | None:
        if value == -1 or Range(1, 9)(name, value) is None:
            return None
        return invalid(name, value, "Value must be between 1 and 9 or equal to -1")

    def __str__(self) -> str:
        return "1 to 9, or -1: the codec's default"


class MirrorSource:
    def __call__(self, name: str, value: Value) -> str | None:
        assert isinstance(value, str)
        if _MIRROR_SOURCE.fullmatch(value):
            return None
        return invalid(name, value, "use letters, digits, '.', '_' and '-'")

    def __str__(self) -> str:
        return "CLUSTER_ID.TOPIC_ID, or CLUSTER_ID"


class EncryptionKey:
    def __call__(self, name: str, value: Value) -> str | None:
        assert isinstance(value, str)
        if _ENCRYPTION_KEY.fullmatch(value):
            return None
        return invalid(name, value, "use local:NAME or aws-kms:KEY")

    def __str__(self) -> str:
        return "local:NAME or aws-kms:KEY"
