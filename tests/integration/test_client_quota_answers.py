"""Apache Kafka and a broker answer the same requests for client quotas in the same way."""

from pathlib import Path
from typing import Any

import pytest

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_format.wire.api_keys import ApiKey
from localstack.apache_kafka import running_kafka
from tests.rigs.patience import eventually
from tests.rigs.wire_client import WireClient
from tests.servers.broker_process import Start
from tests.servers.components import Components

pytestmark = pytest.mark.long

Parts = list[tuple[str, str | None]]
Ops = list[tuple[str, float | None]]
"""Keys with values; None removes the quota."""
Filter = list[tuple[str, int, str | None]]
RATE, PERCENT, CHANGES = "producer_byte_rate", "request_percentage", "controller_mutation_rate"
CONNECTIONS = "connection_creation_rate"
CHANGED: dict[str, list[tuple[Parts, Ops]]] = {
    "a user": [([("user", "ann")], [(RATE, 5.0), (PERCENT, 1.5), (CHANGES, 0.25)])],
    "a client": [([("client-id", "app")], [(CHANGES, 2.5)])],
    "a pair": [([("client-id", None), ("user", "pair")], [(CHANGES, 2.5)])],
    "a name like the default's": [([("client-id", "<default>")], [(RATE, 3.0)])],
    "an address": [([("ip", "10.0.0.1")], [(CONNECTIONS, 3.0)])],
    "the default of addresses": [([("ip", None)], [(CONNECTIONS, 3.0)])],
    "a fraction": [([("user", "a")], [(RATE, 1.5)])],
    "a fraction of a connection": [([("ip", "10.0.0.9")], [(CONNECTIONS, 1.5)])],
    "almost a whole number": [([("user", "near")], [(RATE, 4.0000001)])],
    "just below a whole number": [([("user", "below")], [(RATE, 3.9999999)])],
    "a bad and a good key": [([("user", "b")], [(RATE, 1.5), ("consumer_byte_rate", 7.0)])],
    "a bad and a good entity": [
        ([("user", "c")], [(RATE, 1.5)]),
        ([("user", "d")], [(RATE, 5.0)]),
    ],
    "an entity twice": [
        ([("user", "e")], [(RATE, 1.0)]),
        ([("user", "e")], [("consumer_byte_rate", 5.0)]),
    ],
    "a key twice": [([("user", "f")], [(RATE, 1.0), (RATE, 2.0)])],
    "an unknown key": [([("user", "g")], [("nonsense", 1.0)])],
    "an unknown key is removed": [([("user", "g")], [("nonsense", None)])],
    "a quota is removed that is not there": [([("user", "h")], [(RATE, None)])],
    "an address's key for a user": [([("user", "g")], [(CONNECTIONS, 1.0)])],
    "a user's key for an address": [([("ip", "10.0.0.9")], [(RATE, 1.0)])],
    "an address and a user": [([("ip", "10.0.0.9"), ("user", "x")], [(CONNECTIONS, 3.0)])],
    "a type twice": [([("user", "x"), ("user", "y")], [(RATE, 3.0)])],
    "no type": [([], [(RATE, 3.0)])],
    "an empty name": [([("user", "")], [(RATE, 3.0)])],
    "an unknown type": [([("group", "x")], [(RATE, 3.0)])],
    "no change": [([("user", "x")], [])],
    "zero": [([("user", "zero")], [(RATE, 0.0)])],
    "less than zero": [([("user", "less")], [(PERCENT, -1.0)])],
    "too large": [([("user", "large")], [(RATE, 1e19)])],
    "too many connections": [([("ip", "10.0.0.9")], [(CONNECTIONS, 3e9)])],
}
ENTITIES_LEFT = 10
"""The entities that have quotas after all changes."""
DESCRIBED: dict[str, tuple[Filter, bool]] = {
    "all": ([], False),
    "all, strictly": ([], True),
    "the default user": ([("user", 1, None)], False),
    "any user": ([("user", 2, None)], False),
    "any user, strictly": ([("user", 2, None)], True),
    "an address": ([("ip", 0, "10.0.0.1")], True),
    "no address": ([("ip", 0, "nonsense")], False),
    "an empty name": ([("user", 0, "")], False),
    "an address and a user": ([("ip", 2, None), ("user", 2, None)], False),
    "a type twice": ([("user", 2, None), ("user", 2, None)], False),
    "no type": ([("", 2, None)], False),
    "an unknown type": ([("group", 2, None)], False),
    "an unknown match": ([("user", 9, None)], False),
    "exactly null": ([("user", 0, None)], False),
    "a named default": ([("user", 1, "x")], False),
    "any of a name": ([("user", 2, "x")], False),
}


def altered(client: WireClient, wanted: list[tuple[Parts, Ops]]) -> list[Any]:
    entries = [
        {
            "entity": [{"entity_type": kind, "entity_name": name} for kind, name in parts],
            "ops": [
                {"key": key, "value": value or 0.0, "remove": value is None} for key, value in ops
            ],
        }
        for parts, ops in wanted
    ]
    answer = client.call(ApiKey.ALTER_CLIENT_QUOTAS, 1, entries=entries, validate_only=False)
    return sorted(
        (names_of(entry.entity), int(entry.error_code), entry.error_message)
        for entry in answer.entries
    )


def described(client: WireClient, wanted: Filter, *, strict: bool) -> Any:
    components = [
        {"entity_type": kind, "match_type": match_type, "match": name}
        for kind, match_type, name in wanted
    ]
    answer = client.call(ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, components=components, strict=strict)
    rows = answer.entries and sorted(
        (names_of(entry.entity), sorted((each.key, each.value) for each in entry.values))
        for entry in answer.entries
    )
    return int(answer.error_code), answer.error_message, rows


def names_of(entity: Any) -> list[tuple[str, str]]:
    return sorted((part.entity_type, str(part.entity_name)) for part in entity)


def conversation(client: WireClient) -> dict[str, Any]:
    found: dict[str, Any] = {name: altered(client, wanted) for name, wanted in CHANGED.items()}
    # Kafka answers before its brokers know the change.
    eventually(lambda: len(described(client, [], strict=False)[2]) >= ENTITIES_LEFT)
    for name, (wanted, strict) in DESCRIBED.items():
        found[f"describe {name}"] = described(client, wanted, strict=strict)
    return found


def test_the_answers_are_those_of_kafka(
    start: Start, tmp_path: Path, components: Components
) -> None:
    with WireClient(start().wait_until_ready().bootstrap) as client:
        ours = conversation(client)
    try:
        with running_kafka(tmp_path / "kafka") as kafka, WireClient(kafka.bootstrap) as client:
            components.took_part("Apache Kafka broker", kafka.version)
            theirs = conversation(client)
    except ConfigurationError as error:
        components.missing("Apache Kafka", error.remedy)
    different = {name: (ours[name], theirs[name]) for name in theirs if ours[name] != theirs[name]}
    assert different == {}
