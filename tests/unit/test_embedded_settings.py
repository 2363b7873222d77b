"""What the brokers of an embedded cluster are told, and on which ports."""

import socket
import threading
from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bucketlog.embedded.cluster import EmbeddedCluster
from bucketlog.embedded.ports import HIGHEST_PORT, brokers_named, listening_error, ports_beside
from bucketlog.embedded.settings import (
    first_http_port,
    own_variables,
    shared_variables,
    variable,
)
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.stateless_broker.settings.broker import BrokerSettings
from tests.servers.cluster import free_port

HOST = "127.0.0.1"


def test_one_broker_is_told_nothing_of_its_own() -> None:
    assert own_variables({"BUCKETLOG_NODE_ID": "7"}, [9092], [0], is_alone=True) == [{}]


def test_several_have_ports_ids_and_zones_of_their_own() -> None:
    rows = own_variables({}, [9092, 9093, 0], [8080, 8083, 0], is_alone=True)
    assert [row["BUCKETLOG_PORT"] for row in rows] == ["9092", "9093", "0"]
    assert [row["BUCKETLOG_HTTP_PORT"] for row in rows] == ["8080", "8083", "0"]
    assert [row["BUCKETLOG_NODE_ID"] for row in rows] == ["0", "1", "2"]
    assert len({row["BUCKETLOG_ZONE"] for row in rows}) == 3


def test_at_a_redis_of_others_ids_are_found() -> None:
    rows = own_variables({}, [0, 0], [0, 0], is_alone=False)
    assert all(variable("node_id") not in row for row in rows)
    assert all(variable("http_port") not in row for row in rows), "any, as all are told"


def test_what_is_given_counts_on() -> None:
    names = ("node_id", "advertised_port", "zone")
    given = dict(zip(map(variable, names), ("7", "19092", "eu-1a"), strict=True))
    first, second = own_variables(given, [0, 0], [0, 0], is_alone=True)
    assert [first[variable(name)] for name in names[:2]] == ["7", "19092"]
    assert [second[variable(name)] for name in names[:2]] == ["8", "19093"]
    assert variable("zone") not in second, "that of all stands"


@given(st.dictionaries(st.sampled_from(["flush_interval_ms", "num_partitions"]), st.just("9")))
def test_settings_win_over_what_is_usual_and_all_are_settings(settings: dict[str, str]) -> None:
    told = shared_variables(settings, {"port": "1"}, brokers=3)
    assert {variable(name) for name in BrokerSettings.model_fields} >= told.keys()
    assert all(told[variable(name)] == text for name, text in settings.items())
    assert told["BUCKETLOG_PORT"] == "1"


def test_ports_are_next_to_the_first_and_free() -> None:
    first = free_port()
    with ExitStack() as closing:
        try:
            closing.enter_context(socket.create_server((HOST, first + 1)))
        except OSError:
            pass  # taken by somebody else: as good
        chosen = ports_beside(HOST, first, [0, 0])
        assert first + 1 not in chosen
        assert len(set(chosen)) == 2
        assert all(first < port < first + 100 for port in chosen)
        assert listening_error(HOST, first + 1) is not None


def test_a_port_that_another_listener_will_use_is_not_taken() -> None:
    first = free_port()
    near = ports_beside(HOST, first, [0])
    assert near[0] not in ports_beside(HOST, first, [0], near)


@pytest.mark.parametrize(
    ("settings", "port"),
    [({}, 0), ({"http_port": "8080"}, 8080), ({"http_port": "65536"}, 0), ({"http_port": "x"}, 0)],
)
def test_the_http_port_is_among_the_settings(settings: dict[str, str], port: int) -> None:
    assert first_http_port(settings) == port


def test_a_port_that_was_taken_before_is_taken_again() -> None:
    first, kept = free_port(), free_port()
    assert ports_beside(HOST, first, [kept, 0])[0] == kept


@pytest.mark.parametrize("first", [0, HIGHEST_PORT])
def test_where_none_is_near_any_will_do(first: int) -> None:
    assert ports_beside(HOST, first, [0, 0]) == [0, 0]


def test_a_cluster_has_a_broker() -> None:
    with pytest.raises(ConfigurationError, match="at least one"):
        EmbeddedCluster("nowhere", brokers=0)


def test_a_peer_that_hangs_up_is_told() -> None:
    with socket.create_server((HOST, 0)) as server:
        address: tuple[str, int] = server.getsockname()

        def answer() -> None:
            peer: Any = server.accept()[0]
            with peer:
                peer.recv(100)

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(ConnectionError, match="closed"):
            brokers_named(*address, 10.0)
        thread.join()
