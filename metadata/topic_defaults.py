"""A topic's effective configs: the topic's own, else the brokers' default, else Kafka's.

Invariant: all code that acts on a topic config, or describes one, asks here. A default therefore
applies everywhere or nowhere. Defaults of all brokers (KIP-226) change with the view, without a
restart; they count more than a broker's settings.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache

from bucketlog.log_format.errors import InvalidConfigError
from bucketlog.metadata.resource_configs import ALL_BROKERS, ResourceConfigs
from bucketlog.metadata.topic_checks import check_configs, check_together, list_words
from bucketlog.metadata.topic_configs import CLEANUP_POLICY, TOPIC_CONFIGS

_NO_CONFIGS = ResourceConfigs()


class TopicDefaults:
    """`own`: the broker's settings, by the names of topic configs. `configs` gives the view's
    configs of brokers. Raises `InvalidConfigError` if no topic could be created with `own`."""

    def __init__(
        self,
        own: Mapping[str, str] | None = None,
        configs: Callable[[], ResourceConfigs] = lambda: _NO_CONFIGS,
    ) -> None:
        checked = check_configs(own or {})
        self.own: Mapping[str, str] = {
            name: value for name, value in checked.items() if value != TOPIC_CONFIGS[name].default
        }
        """The broker's own defaults that differ from Kafka's."""
        self._of_broker = {name: known.default for name, known in TOPIC_CONFIGS.items()} | checked
        check_together(self._of_broker.__getitem__)
        self._configs = configs
        self._seen: ResourceConfigs | None = None
        self._seen_version = 0
        self._shared: Mapping[str, str] = {}
        self._values: Mapping[str, str] = self._of_broker
        self._policies = list_words(self._values[CLEANUP_POLICY])

    @property
    def shared(self) -> Mapping[str, str]:
        """The defaults of all brokers, by the names of topic configs."""
        self._follow()
        return self._shared

    def effective(self, configs: Mapping[str, str], name: str) -> str:
        """Return the value of a topic's config in canonical form. `configs` are the topic's own. An
        invalid value is ignored."""
        self._follow()
        own = configs.get(name)
        found = None if own is None else _canonical(name, own)
        return self._values[name] if found is None else found

    def check(self, configs: Mapping[str, str]) -> None:
        """Check that a topic may have these configs together. Raises `InvalidConfigError`."""
        check_together(lambda name: self.effective(configs, name))

    def check_shared(self, configs: Mapping[str, str]) -> None:
        """Check that all brokers may have these defaults, by brokers' names. Raises
        `InvalidConfigError`."""
        values = {**self._of_broker, **_by_topic_name(configs)}
        check_together(values.__getitem__)

    def has_policy(self, configs: Mapping[str, str], word: str) -> bool:
        """Return whether `cleanup.policy` has the word: delete or compact."""
        self._follow()
        own = configs.get(CLEANUP_POLICY)
        found = None if own is None else _canonical(CLEANUP_POLICY, own)
        return word in (self._policies if found is None else list_words(found))

    def _follow(self) -> None:
        configs = self._configs()
        if configs is self._seen and configs.version == self._seen_version:
            return
        self._seen, self._seen_version = configs, configs.version
        shared = _by_topic_name(configs.of(ALL_BROKERS))
        if shared != self._shared:
            self._shared = shared
            self._values = {**self._of_broker, **shared}
            self._policies = list_words(self._values[CLEANUP_POLICY])


def _by_topic_name(configs: Mapping[str, str]) -> dict[str, str]:
    """Return the defaults of topic configs, by topic config. Other configs and invalid values are
    left out."""
    if not configs:
        return {}
    return {
        name: found
        for name, known in TOPIC_CONFIGS.items()
        if known.broker_name is not None
        and known.broker_name in configs
        and (found := _canonical(name, configs[known.broker_name])) is not None
    }


@lru_cache(maxsize=4096)
def _canonical(name: str, value: str) -> str | None:
    try:
        return check_configs({name: value})[name]
    except InvalidConfigError:
        return None
