"""DescribeClientQuotas and AlterClientQuotas of a broker process."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.rigs.wire_client import WireClient
from tests.servers.broker_process import Start

Entity = dict[str, str | None]


@pytest.fixture
def serving(start: Start) -> Iterator[Callable[..., WireClient]]:
    """Start a broker with the settings, and connect to it."""
    with ExitStack() as stack:

        def begin(**settings: str) -> WireClient:
            broker = start(**settings).wait_until_ready()
            return stack.enter_context(WireClient(broker.bootstrap))

        yield begin


def alter(
    client: WireClient,
    entity: Entity,
    *,
    validate_only: bool = False,
    version: int = 1,
    **values: float | None,
) -> tuple[int, str | None]:
    entry = {
        "entity": [{"entity_type": kind, "entity_name": name} for kind, name in entity.items()],
        "ops": [
            {"key": key, "value": value or 0.0, "remove": value is None}
            for key, value in values.items()
        ],
    }
    answer = client.call(
        ApiKey.ALTER_CLIENT_QUOTAS, version, entries=[entry], validate_only=validate_only
    )
    (row,) = answer.entries
    assert {each.entity_type: each.entity_name for each in row.entity} == entity
    return row.error_code, row.error_message


def described(client: WireClient, *, strict: bool = False, **wanted: Any) -> list[Any]:
    components = [
        {"entity_type": kind.replace("_", "-"), "match_type": match_type, "match": name}
        for kind, (match_type, name) in wanted.items()
    ]
    answer = client.call(ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, components=components, strict=strict)
    assert answer.error_code == 0
    return [
        (
            {each.entity_type: each.entity_name for each in entry.entity},
            {each.key: each.value for each in entry.values},
        )
        for entry in answer.entries
    ]


def test_quotas_come_and_go(serving: Callable[..., WireClient]) -> None:
    client = serving()
    ann: Entity = {"user": "ann"}
    pair: Entity = {"user": "ann", "client-id": None}
    address: Entity = {"ip": "10.0.0.1"}
    assert alter(client, ann, validate_only=True, producer_byte_rate=1024.0) == (0, None)
    assert described(client) == []
    assert alter(client, ann, producer_byte_rate=1024.0) == (0, None)
    assert alter(client, pair, version=0, consumer_byte_rate=5.0) == (0, None)
    assert alter(client, address, connection_creation_rate=3.0) == (0, None)
    assert described(client, user=(0, "ann"), strict=True) == [
        (ann, {"producer_byte_rate": 1024.0})
    ]
    assert [entity for entity, _ in described(client, user=(2, None))] == [ann, pair]
    assert [entity for entity, _ in described(client, client_id=(1, None))] == [pair]
    assert [entity for entity, _ in described(client)] == [ann, pair, address]
    assert alter(client, ann, producer_byte_rate=None) == (0, None)
    assert described(client, user=(0, "ann"), strict=True) == []
    code, text = alter(client, ann, producer_byte_rate=1.5)
    assert (code, text) == (42, "producer_byte_rate cannot be a fractional value.")


def test_the_number_of_entities_and_their_names_are_limited(
    serving: Callable[..., WireClient],
) -> None:
    client = serving(client_quota_entities_max="1", client_quota_name_bytes_max="3")
    assert alter(client, {"user": "ann"}, request_percentage=1.0) == (0, None)
    assert alter(client, {"user": "bob"}, request_percentage=1.0)[0] == 44
    assert alter(client, {"user": "anna"}, request_percentage=1.0)[0] == 42
    assert alter(client, {"user": "ann"}, request_percentage=2.0) == (0, None)
    assert described(client) == [({"user": "ann"}, {"request_percentage": 2.0})]
