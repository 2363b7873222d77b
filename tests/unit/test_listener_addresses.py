"""The texts of `listeners` and `advertised_listeners`: what is read, and what is refused."""

import pytest
from pydantic import ValidationError

from bucketlog.stateless_broker.settings.broker import BrokerSettings
from bucketlog.stateless_broker.settings.listener_addresses import (
    ListenerProtocol,
    ListenerSpec,
    advertise,
    advertised_text,
    listeners_text,
    read_listeners,
    shifted,
)

PLAINTEXT, SSL = ListenerProtocol.PLAINTEXT, ListenerProtocol.SSL
TWO = "inside:PLAINTEXT://127.0.0.1:9092,OUTSIDE:SSL://:9093"
TWO_ADVERTISED = "INSIDE://broker.internal:9092, outside://kafka.example:443"


def settings(**given: object) -> BrokerSettings:
    files = {"ssl_certificate_file": "broker.pem", "ssl_key_file": "broker.key"}
    return BrokerSettings.model_validate({"bucket_url": "memory://x"} | files | given)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("PLAINTEXT://h:1", ListenerSpec("PLAINTEXT", PLAINTEXT, "h", 1)),
        ("ssl://h:0", ListenerSpec("SSL", SSL, "h", 0)),
        ("Clients:ssl://1.2.3.4:9092", ListenerSpec("CLIENTS", SSL, "1.2.3.4", 9092)),
        ("SSL://:9093", ListenerSpec("SSL", SSL, "0.0.0.0", 9093)),
        ("SSL://[::1]:9093", ListenerSpec("SSL", SSL, "::1", 9093)),
    ],
)
def test_a_listener(text: str, wanted: ListenerSpec) -> None:
    assert read_listeners(text) == (wanted,)


def test_each_listener_has_its_address_for_clients() -> None:
    inside, outside = advertise(read_listeners(TWO), TWO_ADVERTISED)
    assert inside.reached_at(1) == ("broker.internal", 9092)
    assert outside.reached_at(1) == ("kafka.example", 443)
    (alone,) = advertise(read_listeners("SSL://h:0"), None)
    assert alone.reached_at(4711) == ("h", 4711)
    assert settings(listeners=TWO, advertised_listeners=TWO_ADVERTISED).listener_specs == (
        inside,
        outside,
    )


def test_a_broker_without_listeners_has_one() -> None:
    given = settings(host="h", port=1, advertised_host="a", advertised_port=2)
    assert given.listener_specs == (ListenerSpec("PLAINTEXT", PLAINTEXT, "h", 1, "a", 2),)
    assert settings(port=0).listener_specs[0].reached_at(3) == ("127.0.0.1", 3)


def test_another_broker_of_the_machine_has_the_next_ports() -> None:
    listeners = advertise(
        read_listeners(f"{TWO},ANY:PLAINTEXT://[::1]:0"), f"{TWO_ADVERTISED},ANY://[2001:db8::1]:7"
    )
    moved = shifted(listeners, 10)
    assert [each.port for each in moved] == [9102, 9103, 0]
    assert [each.advertised_port for each in moved] == [9102, 453, 17]
    assert advertise(read_listeners(listeners_text(moved)), advertised_text(moved)) == moved


@pytest.mark.parametrize(
    ("listeners", "words"),
    [
        ("", "write NAME:PROTOCOL://HOST:PORT"),
        ("h:9092", "'h:9092' is not a listener"),
        ("PLAINTEXT://h:1,,", "'' is not a listener"),
        ("INSIDE://h:1", "has no protocol: write INSIDE:PROTOCOL://…, with one of PLAINTEXT,"),
        ("A:TLS://h:1", "has the unknown protocol TLS"),
        ("SSL://h:65536", "not between 0 and 65535"),
        ("A:SSL://h:1,a:PLAINTEXT://h:2", "two listeners are called A"),
        ("A:SSL://h:1,B:SSL://g:1", "two listeners have port 1"),
    ],
)
def test_listeners_that_are_refused(listeners: str, words: str) -> None:
    with pytest.raises(ValidationError, match="listeners") as caught:
        settings(listeners=listeners)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"advertised_listeners": "A://h:1"}, "set BUCKETLOG_LISTENERS, too"),
        ({"listeners": "SSL://h:1", "advertised_port": 5}, "advertised_port has no effect"),
        ({"listeners": "SSL://h:1", "advertised_host": "x"}, "BUCKETLOG_ADVERTISED_LISTENERS"),
        ({"listeners": "SSL://:1"}, "add SSL://HOST:PORT"),
        ({"listeners": TWO, "advertised_listeners": "INSIDE://h:1"}, "add OUTSIDE://HOST:PORT"),
        (
            {"listeners": "SSL://h:1", "advertised_listeners": "B://h:1"},
            "there is no listener B",
        ),
        ({"listeners": "SSL://h:1", "advertised_listeners": "SSL://:1"}, "name a host"),
        ({"listeners": "SSL://h:1", "advertised_listeners": "SSL://h:0"}, "between 1 and"),
        ({"listeners": "SSL://h:1", "advertised_listeners": "A:SSL://h:1"}, "leave out the proto"),
        (
            {"listeners": "SSL://h:1", "advertised_listeners": "SSL://h:1,SSL://h:2"},
            "two addresses",
        ),
    ],
)
def test_addresses_that_are_refused(given: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError) as caught:
        settings(**given)
    assert words in str(caught.value)
