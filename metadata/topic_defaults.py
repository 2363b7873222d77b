"""A topic's effective configs: the topic's own, else the broker's default, else Kafka's.

Invariant: all code that acts on a topic config, or describes one, asks here. A broker's default
therefore applies everywhere or nowhere.
"""

from collections.abc import Mapping
from functools import lru_cache

from bucketlog.log_format.errors import InvalidConfigError
from bucketlog.metadata.topic_configs import (
    CLEANUP_POLICY,
    TOPIC_CONFIGS,
    check_configs,
    list_words,
)


class TopicDefaults:
    """`own`: the broker's defaults, by the names of topic configs. Raises `InvalidConfigError` if
    no topic could be created with them."""

    def __init__(self, own: Mapping[str, str] | None = None) -> None:
        checked = check_configs(own or {})
        self.own: Mapping[str, str] = {
            name: value for name, value in checked.items() if value != TOPIC_CONFIGS[name].default
        }
        """Those that differ from Kafka's."""
        self._values = {name: known.default for name, known in TOPIC_CONFIGS.items()} | checked
        self._policies = list_words(self._values[CLEANUP_POLICY])

    def effective(self, configs: Mapping[str, str], name: str) -> str:
        """`configs` are the topic's own. An invalid value is ignored."""
        own = configs.get(name)
        return self._values[name] if own is None or not _is_accepted(name, own) else own

    def has_policy(self, configs: Mapping[str, str], word: str) -> bool:
        """Whether `cleanup.policy` has the word: delete or compact."""
        own = configs.get(CLEANUP_POLICY)
        if own is None or not _is_accepted(CLEANUP_POLICY, own):
            return word in self._policies
        return word in list_words(own)


@lru_cache(maxsize=4096)
def _is_accepted(name: str, value: str) -> bool:
    try:
        check_configs({name: value})
    except InvalidConfigError:
        return False
    return True
