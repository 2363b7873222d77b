"""The configs of subscriptions to clients' metrics (KIP-714).

Source: Kafka 4.3's ClientMetricsConfigs (names, types, defaults, values, the words of the errors).
"""

import re
from collections.abc import Mapping

from bucketlog.log_format.errors import ConfigRefusedError, InvalidConfigError
from bucketlog.metadata.config_definitions import ConfigDefinition, ConfigType, Value

INTERVAL_MS = "interval.ms"
MATCH, METRICS = "match", "metrics"
INTERVAL_MS_MIN, INTERVAL_MS_MAX = 100, 3_600_000
MATCHED = frozenset(
    {
        "client_instance_id",
        "client_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)
"""The properties of clients that a pattern can match."""


class _NoEmptyWords:
    def __call__(self, name: str, value: Value) -> str | None:
        assert isinstance(value, tuple)
        return f"Configuration '{name}' values must not be empty." if "" in value else None

    def __str__(self) -> str:
        return "a list"


_CONFIGS = (
    ConfigDefinition(
        METRICS,
        ConfigType.LIST,
        "",
        "Prefixes of the names of metrics that clients send. *: all metrics.",
        _NoEmptyWords(),
    ),
    ConfigDefinition(
        INTERVAL_MS, ConfigType.INT, "300000", "How often clients send their metrics."
    ),
    ConfigDefinition(
        MATCH,
        ConfigType.LIST,
        "",
        "Which clients send metrics: name=regular expression. All of the patterns must match.",
        _NoEmptyWords(),
    ),
)
SUBSCRIPTION_CONFIGS: Mapping[str, ConfigDefinition] = {config.name: config for config in _CONFIGS}


def checked_subscription(configs: Mapping[str, str]) -> dict[str, str]:
    """Return the configs in canonical form. Raises `InvalidConfigError`, `ConfigRefusedError`."""
    for name in configs:
        if name not in SUBSCRIPTION_CONFIGS:
            raise ConfigRefusedError(f"Unknown client metrics configuration: {name}")
    found = {n: c.canonical(configs[n]) for n, c in SUBSCRIPTION_CONFIGS.items() if n in configs}
    interval = found.get(INTERVAL_MS)
    if interval is not None and not INTERVAL_MS_MIN <= int(interval) <= INTERVAL_MS_MAX:
        raise ConfigRefusedError(
            f"Invalid value {interval} for {INTERVAL_MS}, interval must be between "
            f"{INTERVAL_MS_MIN} and {INTERVAL_MS_MAX} (1 hour)"
        )
    patterns = found.get(MATCH, "")
    for pattern in patterns.split(",") if patterns else ():
        _check_pattern(pattern)
    return found


def _check_pattern(pattern: str) -> None:
    parts = [part.strip() for part in pattern.split("=")]
    is_known = len(parts) == 2 and parts[0] in MATCHED and parts[1]
    try:
        re.compile(parts[-1])
    except (re.error, RecursionError, OverflowError):
        is_known = False
    if not is_known:
        raise InvalidConfigError(f"Illegal client matching pattern: {pattern}")
