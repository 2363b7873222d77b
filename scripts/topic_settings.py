"""Writes docs/topic-settings.md from the configs of topics: `python scripts/topic_settings.py`.

A test compares the file with what this makes (tests/architecture/test_configuration.py).
"""

import sys
from pathlib import Path

from bucketlog.metadata.config_definitions import VALUE_CHARACTERS_MAX
from bucketlog.metadata.topic_configs import OWN_CONFIGS, TOPIC_CONFIGS, TopicConfig
from bucketlog.stateless_broker.settings.broker import TOPIC_DEFAULTS

TARGET = Path(__file__).parents[1] / "docs" / "topic-settings.md"
*_FIRST, _LAST = (f"`{name}`" for name in sorted(OWN_CONFIGS))
OWN = f"{', '.join(_FIRST)} and {_LAST}"
HEAD = f"""\
# Settings of topics

A topic takes all settings of Apache Kafka 4.3, and also {OWN}. Values are
checked as Kafka checks them, with the same errors. Written by `scripts/topic_settings.py`.

Set them when you create a topic, or later:

```
kafka-configs.sh --bootstrap-server HOST:PORT --alter --topic orders \\
  --add-config retention.ms=3600000
```

A topic without a setting has the broker's default, where there is a variable for this default
([configuration.md](configuration.md)). Otherwise, it has Kafka's default.

## Settings that have an effect

| setting | type | default | values | meaning | broker's default |
|---|---|---|---|---|---|
"""
NO_EFFECT = """
## Settings without an effect

They are accepted, stored and described, because tools and MirrorMaker 2 send them.

| setting | type | default | values | in Kafka | why there is no effect |
|---|---|---|---|---|---|
"""
DIFFERENCES = f"""
## Differences from Kafka

A test sends some 1,800 changes to Apache Kafka 4.3.1 and to bucketlog, and compares the answers
(`tests/scenarios/settings_comparison.py`). These are the differences:

| request | Kafka 4.3.1 | here |
|---|---|---|
| `internal.segment.bytes`, a setting for Kafka's own tests | accepted | INVALID_CONFIG |
| IncrementalAlterConfigs with an unknown operation | UNKNOWN_SERVER_ERROR | INVALID_REQUEST |
| a value in the response of CreateTopics | as it was given: ` +7 ` | as it is described: `7` |
| the source of `min.insync.replicas` | DYNAMIC_DEFAULT_BROKER_CONFIG | DEFAULT_CONFIG |
| batches that need more than `BUCKETLOG_VALIDATION_BYTES_MAX` when they are recompressed \
| accepted | MESSAGE_TOO_LARGE |
| a value of more than {VALUE_CHARACTERS_MAX:,} characters | accepted | INVALID_CONFIG |
"""


def render() -> str:
    configs = sorted(TOPIC_CONFIGS.values(), key=lambda config: config.name)
    works = [_row(each, _variable(each)) for each in configs if not each.no_effect]
    rest = [_row(each, each.no_effect) for each in configs if each.no_effect]
    return "".join([HEAD, *works, NO_EFFECT, *rest, DIFFERENCES])


def _row(config: TopicConfig, last: str) -> str:
    kind = config.config_type.name.lower()
    default = f"`{config.default}`" if config.default else "empty"
    values = str(config.check) or ("true, false" if kind == "boolean" else "any")
    return (
        f"| `{config.name}` | {kind} | {default} | {values} | {config.documentation} | {last} |\n"
    )


def _variable(config: TopicConfig) -> str:
    name = TOPIC_DEFAULTS.get(config.name)
    return f"`BUCKETLOG_{name.upper()}`" if name is not None else ""


def main() -> int:
    TARGET.write_text(render())
    return 0


if __name__ == "__main__":
    sys.exit(main())
