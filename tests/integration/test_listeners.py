"""A broker with several listeners: each client is sent to the addresses of its own."""

from typing import Any

import pytest

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.integration.test_broker_process import CONFIGURATION, refusal
from tests.rigs.patience import Deadline
from tests.rigs.wire_client import WireClient
from tests.servers.broker_process import Start

TWO = "IN:PLAINTEXT://127.0.0.1:0,OUT:PLAINTEXT://127.0.0.1:0"


def advertised(number: int) -> str:
    return f"IN://in-{number}.example:1000{number},OUT://out-{number}.example:2000{number}"


def metadata(client: WireClient, version: int = 1) -> Any:
    more = {"allow_auto_topic_creation": False} if version > 3 else {}
    more |= {"include_topic_authorized_operations": False} if version > 7 else {}
    return client.call(ApiKey.METADATA, version, topics=None, **more)


def answers(address: str) -> dict[str, set[tuple[int, str, int]]]:
    """Node id, host and port in each answer that names brokers."""
    with WireClient(address) as client:

        def rows(brokers: Any) -> set[tuple[int, str, int]]:
            return {(one.node_id, one.host, one.port) for one in brokers}

        found = client.call(ApiKey.FIND_COORDINATOR, 2, key="g", key_type=0)
        many = client.call(
            ApiKey.FIND_COORDINATOR, 4, key_type=0, coordinator_keys=[f"g{n}" for n in range(30)]
        )
        return {
            "old metadata": rows(metadata(client).brokers),
            "metadata": rows(metadata(client, 12).brokers),
            "coordinator": rows([found]),
            "coordinators": rows(many.coordinators),
        }


def test_each_client_sees_the_addresses_of_its_listener(start: Start) -> None:
    brokers = [
        start(listeners=TWO, advertised_listeners=advertised(number), node_id=str(number))
        for number in range(2)
    ]
    for broker in brokers:
        broker.wait_until_ready()
    deadline = Deadline("the brokers do not find each other")
    while len(answers(brokers[0].ready["listeners"]["IN"])["metadata"]) < 2:
        deadline.pause()
    for listener, first_port in (("IN", 10000), ("OUT", 20000)):
        wanted = {
            (number, f"{listener.lower()}-{number}.example", first_port + number)
            for number in range(2)
        }
        told = answers(brokers[0].ready["listeners"][listener])
        assert told["old metadata"] == told["metadata"] == told["coordinators"] == wanted
        assert told["coordinator"] < wanted


def test_a_broker_without_the_listener_is_left_out(start: Start) -> None:
    both = start(listeners=TWO, node_id="0").wait_until_ready()
    one = start(listeners="IN:PLAINTEXT://127.0.0.1:0", node_id="1").wait_until_ready()
    deadline = Deadline("the brokers do not find each other")
    while len(answers(both.ready["listeners"]["IN"])["metadata"]) < 2:
        deadline.pause()
    with WireClient(both.ready["listeners"]["OUT"]) as client:
        topics = [{"name": "t", "num_partitions": 50, "replication_factor": 1}]
        client.call(ApiKey.CREATE_TOPICS, 2, topics=topics, timeout=20_000)
        told = metadata(client, 12)
        assert {row.node_id for row in told.brokers} == {told.controller_id} == {0}
        assert {row.leader_id for row in told.topics[0].partitions} == {0}
        codes = {
            client.call(ApiKey.FIND_COORDINATOR, 2, key=f"g{n}", key_type=0).error_code.name
            for n in range(30)
        }
        assert codes == {"none", "coordinator_not_available"}
    with WireClient(one.ready["listeners"]["IN"]) as client:
        told = metadata(client, 12)
        assert {row.leader_id for row in told.topics[0].partitions} == {0, 1}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {"listeners": "SASL_SSL://127.0.0.1:0"},
            "listener SASL_SSL needs a key for credentials: set BUCKETLOG_CREDENTIALS_KEY_FILE",
        ),
        ({"listeners": "A:PLAINTEXT://203.0.113.1:1"}, "listener A cannot listen on 203.0.113.1:1"),
        ({"listeners": TWO, "advertised_listeners": "IN://h:1"}, "add OUT://HOST:PORT"),
    ],
)
def test_listeners_that_do_not_work(start: Start, settings: dict[str, str], words: str) -> None:
    code, line = refusal(start(**settings))
    assert code == CONFIGURATION
    assert words in line
