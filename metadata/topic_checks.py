"""Checks of a topic's name and configs.

Source: Kafka 4.3's Topic.validate, and LogConfig.validate (the order of the checks and the words of
the errors). A config that is not known is refused, as Kafka refuses it.
"""

import re
from collections.abc import Callable, Mapping

from bucketlog.log_format.errors import InvalidConfigError, InvalidTopicNameError
from bucketlog.metadata.topic_configs import (
    MAX_COMPACTION_LAG_MS,
    MIN_COMPACTION_LAG_MS,
    REMOTE_STORAGE_ENABLE,
    TOPIC_CONFIGS,
)

NAME_LENGTH_MAX = 249
_NAME = re.compile(r"[a-zA-Z0-9._-]+")


def list_words(text: str) -> frozenset[str]:
    """Return the words of a config that is a list, such as `cleanup.policy`."""
    return frozenset(text.split(",")) if text else frozenset()


def check_topic_name(name: str) -> None:
    """Check the name of a topic. Raises `InvalidTopicNameError`."""
    if name in ("", ".", "..") or not _NAME.fullmatch(name):
        raise InvalidTopicNameError(
            f"topic name {name!r} is not valid", remedy="use letters, digits, '.', '_' and '-'"
        )
    if len(name) > NAME_LENGTH_MAX:
        raise InvalidTopicNameError(
            f"a topic name of {len(name)} characters is too long",
            remedy=f"use at most {NAME_LENGTH_MAX}",
        )


def check_configs(configs: Mapping[str, str | None]) -> dict[str, str]:
    """The configs to store, in canonical form. Raises `InvalidConfigError`."""
    missing = [name for name, value in configs.items() if value is None]
    if missing:
        raise InvalidConfigError(f"Null value not supported for topic configs: {','.join(missing)}")
    for name in configs:
        if name not in TOPIC_CONFIGS:
            raise InvalidConfigError(f"Unknown topic config name: {name}")
    return {
        name: definition.canonical(value)
        for name, definition in TOPIC_CONFIGS.items()
        if (value := configs.get(name)) is not None
    }


def check_together(effective: Callable[[str], str]) -> None:
    """Check configs that depend on each other. Raises `InvalidConfigError`."""
    least, most = int(effective(MIN_COMPACTION_LAG_MS)), int(effective(MAX_COMPACTION_LAG_MS))
    if least > most:
        raise InvalidConfigError(
            f"conflict topic config setting {MIN_COMPACTION_LAG_MS} ({least}) > "
            f"{MAX_COMPACTION_LAG_MS} ({most})"
        )
    if effective(REMOTE_STORAGE_ENABLE) == "true":
        raise InvalidConfigError(
            "Tiered Storage functionality is disabled in the broker. Topic cannot be configured "
            "with remote log storage."
        )
