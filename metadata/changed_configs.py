"""The configs of a topic after a change. Pure."""

from collections.abc import Mapping

from bucketlog.metadata.facts import TopicConfigured


def changed_configs(configs: Mapping[str, str], fact: TopicConfigured) -> dict[str, str]:
    """Return the configs that are set after the fact."""
    before = {} if fact.replaces_all else configs
    after = {**before, **fact.configs}
    return {name: value for name, value in after.items() if value is not None}
