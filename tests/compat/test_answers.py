"""Answers at the edges of Kafka's rules are those of Apache Kafka, field by field.

Not compared: texts of errors, throttle times, addresses and node ids of brokers, documentation, and
the values of ids that the cluster assigns.
"""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.embedded.cluster import EmbeddedCluster
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_format.wire.api_keys import ApiKey
from localstack.apache_kafka import running_kafka
from tests.models.answer_cases import CASES, Case, prepared
from tests.models.edge_requests import Around, Step
from tests.rigs.patience import eventually
from tests.rigs.wire_client import WireClient
from tests.scenarios.api_walk import leaf_codes
from tests.servers.components import Components

pytestmark = pytest.mark.long

IGNORED = frozenset(
    {
        "api_keys",
        "brokers",
        "cluster_id",
        "configs",
        "controller_id",
        "error_message",
        "isr_nodes",
        "leader_id",
        "node_id",
        "port",
        "replica_nodes",
        "throttle_time",
    }
)

NAMED = ("topic", "group", "fresh")


def call(client: WireClient, step: Step) -> Any:
    return client.call(step.key, step.version, **step.values)


def is_done(client: WireClient, step: Step) -> bool:
    done = {ErrorCode.none, ErrorCode.topic_already_exists}
    return done.issuperset(leaf_codes(call(client, step)))


class Broker:
    """Asks one broker. Names in its answers are those of `Around`'s fields, so that the answers of
    two brokers can be equal."""

    def __init__(self, client: WireClient) -> None:
        self._client = client
        self._me = client.call(ApiKey.METADATA, 1, topics=[]).brokers[0].node_id

    def answer(self, case: Case, number: int) -> Any:
        """None: the broker closed the connection."""
        around = Around(self._me, *(f"answers-{each}-{number}" for each in NAMED))
        for step in prepared(around):
            eventually(partial(is_done, self._client, step), f"{step} fails")
        answer = None
        for step in case.steps(around):
            answer = call(self._client, step)
        return self._plain(answer, around, case.ignored | IGNORED)

    def _plain(self, value: Any, around: Around, ignored: frozenset[str]) -> Any:
        if is_dataclass(value):
            return {
                field.name: self._field(field.name, getattr(value, field.name), around, ignored)
                for field in fields(value)
                if field.name not in ignored
            }
        if isinstance(value, tuple):
            known = {around.group, around.fresh, ""}
            shown = (each for each in value if getattr(each, "group_id", "") in known)
            return [self._plain(each, around, ignored) for each in shown]
        return "an id" if isinstance(value, UUID) else value

    def _field(self, name: str, value: Any, around: Around, ignored: frozenset[str]) -> Any:
        if name == "producer_id":
            return min(value, 1)
        return self._plain(value, around, ignored)


def differences(kafka: Any, ours: Any, where: str = "") -> Iterator[str]:
    if isinstance(kafka, dict) and isinstance(ours, dict) and kafka.keys() == ours.keys():
        for key in kafka:
            yield from differences(kafka[key], ours[key], f"{where}.{key}")
    elif isinstance(kafka, list) and isinstance(ours, list) and len(kafka) == len(ours):
        for number, pair in enumerate(zip(kafka, ours, strict=True)):
            yield from differences(*pair, f"{where}[{number}]")
    elif kafka != ours:
        yield f"{where}: {kafka!r} (Kafka), {ours!r} (here)"


def test_answers_are_those_of_kafka(
    broker: EmbeddedCluster, tmp_path: Path, components: Components
) -> None:
    found: dict[str, list[str]] = {}
    try:
        with (
            running_kafka(tmp_path / "kafka") as kafka,
            WireClient(kafka.bootstrap) as kafkas,
            WireClient(broker.bootstrap) as ours,
        ):
            components.took_part("Apache Kafka broker", kafka.version)
            pair = Broker(kafkas), Broker(ours)
            for number, (name, case) in enumerate(CASES.items()):
                found[name] = [*differences(*(each.answer(case, number) for each in pair))]
    except ConfigurationError as error:
        components.missing("Apache Kafka", error.remedy)
    unexplained = {
        name: lines for name, lines in found.items() if lines and not CASES[name].differs
    }
    assert unexplained == {}
    equal = [name for name, lines in found.items() if not lines and CASES[name].differs]
    assert equal == [], "these answers are equal now"
