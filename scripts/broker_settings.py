"""Writes docs/broker-settings.md from the configs of brokers, groups and subscriptions:
`python scripts/broker_settings.py`.

A test compares the file with what this makes (tests/architecture/test_configuration.py).
"""

import sys
from pathlib import Path

from bucketlog.metadata.config_definitions import ConfigDefinition
from bucketlog.metadata.group_configs import GROUP_CONFIGS
from bucketlog.metadata.subscription_configs import SUBSCRIPTION_CONFIGS
from bucketlog.stateless_broker.handlers.broker_configs import (
    CONFIGS_WITHOUT_EFFECT,
    SETTINGS_OF_BROKERS,
    TOPIC_DEFAULTS_OF_BROKERS,
)

TARGET = Path(__file__).parents[1] / "docs" / "broker-settings.md"
HEAD = """\
# Settings of brokers, groups and subscriptions

A broker reads its settings from the environment ([configuration.md](configuration.md)). This page
is about what Kafka's tools show and change: `kafka-configs`, AKHQ, Cruise Control and others.
Written by `scripts/broker_settings.py`.

## Defaults of topics

These settings are the defaults of [settings of topics](topic-settings.md). Set them for all
brokers. A change takes effect at all brokers without a restart, and stays in the log. It overrides
the variable of a broker.

```
kafka-configs.sh --bootstrap-server HOST:PORT --alter --entity-type brokers --entity-default \\
  --add-config log.retention.ms=3600000
```

A change for one broker (`--entity-name 1`) is refused, because each broker serves all partitions.

| setting of brokers | setting of topics |
|---|---|
"""
SHOWN = """
## Settings that cannot be changed

`kafka-configs.sh --describe --all --entity-type brokers --entity-name 1` shows the settings above,
settings of topics without an effect, and the settings of this table, which cannot be changed at run
time. A value from a variable has the source STATIC_BROKER_CONFIG.

| setting | variable |
|---|---|
"""
WITHOUT_EFFECT = """
## Settings without an effect

Brokers accept these settings, for one broker or for all, and store them. kafka-reassign-partitions
and Cruise Control set the settings of replication. All of these settings have no effect, because
brokers have neither replication nor logins by Kerberos:
"""
LOGGERS = """
## Levels of loggers

`--entity-type broker-loggers --entity-name 1` shows and changes the levels of a broker's loggers,
as Python names them. `root` is above all loggers, `bucketlog` above those of the broker's modules.
A level stays until the broker ends. TRACE shows everything.

## Groups

`--entity-type groups --entity-name NAME` sets these settings. Brokers check them as Kafka does,
with the bounds that Kafka's brokers have by default, and store them in the log.

| setting | type | default | values | meaning |
|---|---|---|---|---|
"""
SUBSCRIPTIONS = """
## Subscriptions to clients' metrics

`--entity-type client-metrics --entity-name NAME` sets these settings (KIP-714). Brokers check and
store them, but do not use them: `BUCKETLOG_CLIENT_METRICS` selects the metrics that clients send
([metrics of clients](operations.md#metrics-of-clients)).

| setting | type | default | values | meaning |
|---|---|---|---|---|
"""
DIFFERENCES = """
## Differences from Kafka

| request | Kafka 4.3.1 | here |
|---|---|---|
| a setting of brokers that Kafka does not have | accepted, stored | INVALID_REQUEST |
| a default of topics for one broker | accepted | INVALID_REQUEST |
| threads, listeners, TLS, limits of connections | some can be changed | INVALID_REQUEST |
| `log.retention.ms` below -1 | accepted | INVALID_REQUEST |
| a `log.cleaner.min.compaction.lag.ms` above the `max` | accepted | INVALID_CONFIG |
| AlterConfigs of all brokers without `min.insync.replicas` | INVALID_CONFIG (KIP-966) | accepted |
| patterns of `match` | Java's regular expressions | Python's |
"""


def render() -> str:
    defaults = [
        f"| `{name}` | `{config.name}` |\n"
        for name, config in sorted(TOPIC_DEFAULTS_OF_BROKERS.items())
        if not config.no_effect
    ]
    shown = [
        f"| `{name}` | `BUCKETLOG_{setting.upper()}` |\n"
        for name, (_, setting) in sorted(SETTINGS_OF_BROKERS.items())
    ]
    without_effect = "".join(f"- `{name}`\n" for name in CONFIGS_WITHOUT_EFFECT)
    groups = list(map(_row, GROUP_CONFIGS.values()))
    subscriptions = list(map(_row, SUBSCRIPTION_CONFIGS.values()))
    brokers = HEAD, *defaults, SHOWN, *shown, WITHOUT_EFFECT, "\n", without_effect
    return "".join([*brokers, LOGGERS, *groups, SUBSCRIPTIONS, *subscriptions, DIFFERENCES])


def _row(config: ConfigDefinition) -> str:
    kind = config.config_type.name.lower()
    default = f"`{config.default}`" if config.default else "empty"
    values = str(config.check) or ("true, false" if kind == "boolean" else "any")
    return f"| `{config.name}` | {kind} | {default} | {values} | {config.documentation} |\n"


def main() -> int:
    TARGET.write_text(render())
    return 0


if __name__ == "__main__":
    sys.exit(main())
