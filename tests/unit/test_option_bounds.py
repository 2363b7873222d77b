"""Numbers of producers and consumers are checked before librdkafka gets them."""

from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from bucketlog.client.membership import GroupMembership
from bucketlog.client.option_bounds import IN_GROUPS, READ, SENT, Bounds, check_bounds
from bucketlog.client.options import PRODUCER_DEFAULTS, consumer_config, producer_config
from bucketlog.log_format.errors import ConfigurationError

RELATED: dict[str, dict[str, float]] = {
    "linger_ms": {"delivery_timeout_s": 1_000},
    "delivery_timeout_s": {"linger_ms": 0},
    "session_timeout_s": {"max_poll_interval_s": 3_600},
    "max_poll_interval_s": {"session_timeout_s": 0.001},
}
"""Options without which a bound would contradict a default."""
SETS = {"producer": SENT, "consumer": READ, "group": IN_GROUPS}


def configured(kind: str, **options: Any) -> dict[str, Any]:
    match kind:
        case "producer":
            return producer_config(options)  # type: ignore[arg-type] # wrong ones, too
        case "consumer":
            return consumer_config(options, None)
        case _:
            membership: GroupMembership[int] = GroupMembership(group="g", **options)
            return membership.kafka_config()


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        (kind, name, value)
        for kind, known in SETS.items()
        for name, bounds in known.items()
        for value in (bounds.least - 1, bounds.most + 1, "1", True, None, float("nan"))
    ],
)
def test_an_error_names_the_option(kind: str, name: str, value: object) -> None:
    with pytest.raises(ConfigurationError, match=name):
        configured(kind, **{name: value})


@pytest.mark.parametrize(
    ("kind", "name", "bounds"),
    [(kind, name, bounds) for kind, known in SETS.items() for name, bounds in known.items()],
)
def test_librdkafka_accepts_both_bounds(kind: str, name: str, bounds: Bounds) -> None:
    for value in bounds:
        config = configured(kind, **{**RELATED.get(name, {}), name: value})
        if kind == "producer":
            Producer(config)
        else:
            Consumer({"group.id": "g", **config}).close()


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("producer", {"linger_ms": 100, "delivery_timeout_s": 0.1}),
        ("group", {"session_timeout_s": 11, "max_poll_interval_s": 10}),
    ],
)
def test_options_that_contradict_each_other(kind: str, options: dict[str, float]) -> None:
    with pytest.raises(ConfigurationError, match=".*".join(options)):
        configured(kind, **options)


def test_defaults_are_within_the_bounds() -> None:
    check_bounds(PRODUCER_DEFAULTS, SENT)
    configured("group")
