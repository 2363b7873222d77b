"""Changing topics' configs, with Kafka's answers to what is wrong."""

from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.integration.conftest import MakeTopic
from tests.rigs.wire_client import WireClient

SET, DELETE, APPEND, SUBTRACT = range(4)
TOPIC, BROKER, LOGGER = 2, 4, 8
Operation = tuple[str, int, str | None]


def row(name: str, kind: int = TOPIC) -> dict[str, Any]:
    return {"resource_type": kind, "resource_name": name}


def changed(
    client: WireClient,
    topic: str,
    *operations: Operation,
    only_check: bool = False,
    version: int = 1,
) -> tuple[ErrorCode, str | None]:
    configs = [
        {"name": name, "config_operation": operation, "value": value}
        for name, operation, value in operations
    ]
    answer = client.call(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        version,
        resources=[row(topic) | {"configs": configs}],
        validate_only=only_check,
    )
    (found,) = answer.responses
    assert (found.resource_type, found.resource_name) == (TOPIC, topic)
    return found.error_code, found.error_message


def replaced(
    client: WireClient, topic: str, configs: dict[str, str | None], version: int = 2
) -> ErrorCode:
    entries = [{"name": name, "value": value} for name, value in configs.items()]
    answer = client.call(
        ApiKey.ALTER_CONFIGS,
        version,
        resources=[row(topic) | {"configs": entries}],
        validate_only=False,
    )
    code: ErrorCode = answer.responses[0].error_code
    return code


def own(client: WireClient, topic: str) -> dict[str, str]:
    """What is set for the topic."""
    rows = [row(topic) | {"configuration_keys": None}]
    found = client.call(ApiKey.DESCRIBE_CONFIGS, 4, resources=rows).results[0].configs
    return {config.name: config.value for config in found if config.config_source == 1}


@pytest.mark.parametrize("version", [0, 1])
def test_names_are_set_and_unset_one_by_one(
    client: WireClient, make_topic: MakeTopic, version: int
) -> None:
    topic = make_topic(max_message_bytes="4321")
    done = (ErrorCode.none, None)
    assert changed(client, topic, ("retention.ms", SET, "1000"), version=version) == done
    assert own(client, topic) == {"max.message.bytes": "4321", "retention.ms": "1000"}
    operations: list[Operation] = [
        ("max.message.bytes", DELETE, None),
        ("retention.ms", SET, "-1"),
        ("segment.ms", DELETE, None),
        ("no.such", DELETE, None),
    ]
    assert changed(client, topic, *operations, version=version) == done
    assert own(client, topic) == {"retention.ms": "-1"}


def test_lists_grow_and_shrink(client: WireClient, make_topic: MakeTopic) -> None:
    topic, name = make_topic(), "cleanup.policy"
    for operation, value, after in (
        (APPEND, "compact", "delete,compact"),
        (APPEND, "delete", "delete,compact"),
        (SUBTRACT, "delete", "compact"),
        (SET, "delete", "delete"),
    ):
        assert changed(client, topic, (name, operation, value)) == (ErrorCode.none, None)
        assert own(client, topic)[name] == after
    assert changed(client, topic, (name, SUBTRACT, "delete")) == (ErrorCode.none, None)
    assert own(client, topic) == {name: ""}


@pytest.mark.parametrize("version", [0, 1, 2])
def test_all_are_replaced(client: WireClient, make_topic: MakeTopic, version: int) -> None:
    topic = make_topic(max_message_bytes="4321")
    assert replaced(client, topic, {"retention.ms": "5"}, version) is ErrorCode.none
    assert own(client, topic) == {"retention.ms": "5"}
    assert replaced(client, topic, {}, version) is ErrorCode.none
    assert own(client, topic) == {}
    assert replaced(client, topic, {"retention.ms": None}, version) is ErrorCode.invalid_request
    assert replaced(client, topic, {"no.such": "1"}, version) is ErrorCode.invalid_config


@pytest.mark.parametrize(
    ("operations", "code", "text"),
    [
        ([("no.such", SET, "1")], ErrorCode.invalid_config, "no.such"),
        ([("no.such", APPEND, "1")], ErrorCode.invalid_config, "no.such"),
        ([("retention.ms", SET, "soon")], ErrorCode.invalid_config, "retention.ms"),
        ([("retention.ms", SET, None)], ErrorCode.invalid_request, "retention.ms"),
        ([("retention.ms", APPEND, "1")], ErrorCode.invalid_config, "APPEND to key"),
        ([("retention.ms", SUBTRACT, "1")], ErrorCode.invalid_config, "SUBTRACT to key"),
        ([("retention.ms", 7, "1")], ErrorCode.invalid_request, "operation type 7"),
        (
            [("retention.ms", SET, "1"), ("retention.ms", SET, "2")],
            ErrorCode.invalid_request,
            "duplicate",
        ),
        ([("segment.ms", SET, "1"), ("no.such", SET, "2")], ErrorCode.invalid_config, "no.such"),
        (
            [("min.compaction.lag.ms", SET, "2"), ("max.compaction.lag.ms", SET, "1")],
            ErrorCode.invalid_config,
            "conflict",
        ),
    ],
)
def test_what_is_refused_changes_nothing(
    client: WireClient,
    make_topic: MakeTopic,
    operations: list[Operation],
    code: ErrorCode,
    text: str,
) -> None:
    topic = make_topic(max_message_bytes="4321")
    found, message = changed(client, topic, *operations)
    assert found is code
    assert text in (message or "")
    assert own(client, topic) == {"max.message.bytes": "4321"}


def test_only_topics_that_are_there(client: WireClient, make_topic: MakeTopic) -> None:
    topic = make_topic()
    assert changed(client, "no-such-topic")[0] is ErrorCode.unknown_topic_or_partition
    rows = [row("7", BROKER), row("7", LOGGER), row(""), row(topic), row(topic)]
    answer = client.call(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        1,
        resources=[each | {"configs": []} for each in rows],
        validate_only=False,
    )
    assert {each.error_code for each in answer.responses} == {ErrorCode.invalid_request}
    assert [each.resource_name for each in answer.responses] == ["7", "7", "", topic, topic]


def test_what_is_only_checked(client: WireClient, make_topic: MakeTopic) -> None:
    topic = make_topic()
    good, bad = ("retention.ms", SET, "1"), ("retention.ms", SET, "x")
    assert changed(client, topic, good, only_check=True)[0] is ErrorCode.none
    assert changed(client, topic, bad, only_check=True)[0] is ErrorCode.invalid_config
    assert own(client, topic) == {}
