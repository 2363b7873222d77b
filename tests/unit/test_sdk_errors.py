"""librdkafka's errors become LogError with a remedy; importing bucketlog costs nothing."""

import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import KafkaError
from kio.schema.errors import ErrorCode

import bucketlog
from bucketlog.client.kafka_errors import ADVICE, KAFKA_NAMES, UNADVISED, log_error
from bucketlog.client.sending import encoded
from bucketlog.log_format.errors import ConfigurationError, LogError

LIBRDKAFKA_NAMES = {KafkaError(code).name() for code in [*range(-200, 140)]}
NAMES = {KAFKA_NAMES.get(name, name) for name in LIBRDKAFKA_NAMES}


@pytest.mark.parametrize("name", sorted(ADVICE))
def test_every_name_of_the_table_exists(name: str) -> None:
    assert name in NAMES


@pytest.mark.parametrize("name", sorted(ADVICE))
def test_every_remedy_is_a_short_line(name: str) -> None:
    remedy = ADVICE[name].remedy
    assert 0 < len(remedy) < 100
    assert "\n" not in remedy


def test_an_error_keeps_code_name_and_reason() -> None:
    error = log_error(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART), "sending to topic 'x'")
    assert error.code == "UNKNOWN_TOPIC_OR_PARTITION"
    assert (error.kafka_code, error.retriable) == (3, False)
    assert str(error).startswith("sending to topic 'x': ")
    assert "topic create" in error.remedy


@pytest.mark.parametrize("kafka", ErrorCode, ids=lambda code: code.name)
def test_names_are_those_of_kafkas_protocol_guide(kafka: ErrorCode) -> None:
    error = KafkaError(kafka.value)
    if not error.name().startswith("ERR_"):  # librdkafka has no name for it
        assert log_error(error, "x").code == kafka.name.upper()


def retriable_codes() -> dict[str, KafkaError]:
    """Codes that Apache Kafka calls retriable and that librdkafka can report, by Kafka's names."""
    found = {code.name.upper(): KafkaError(code.value) for code in ErrorCode if code.retriable}
    return {name: error for name, error in found.items() if not error.name().startswith("ERR_")}


NOT_RETRIED = {"UNKNOWN_TOPIC_OR_PARTITION"}
"""A second try does not create a missing topic: the remedy is to create the topic."""


@pytest.mark.parametrize("name", sorted(retriable_codes()))
def test_what_kafka_retries_has_advice(name: str) -> None:
    error = log_error(retriable_codes()[name], "x")
    assert error.code in ADVICE
    assert error.retriable == (name not in NOT_RETRIED)


def test_the_list_of_kafkas_codes_is_complete() -> None:
    """In Kafka 4.3.1, `Errors` has 135 codes, and 32 of their exceptions are retriable."""
    assert len(ErrorCode) == 135
    assert sum(code.retriable for code in ErrorCode) == 32
    assert len(retriable_codes()) == 31, "librdkafka has no FETCH_SESSION_TOPIC_ID_ERROR"


def test_every_name_that_is_mapped_is_librdkafkas() -> None:
    assert set(KAFKA_NAMES) <= LIBRDKAFKA_NAMES


def test_a_controller_that_is_gone_is_worth_another_try() -> None:
    reason = "Failed while waiting for controller: Local: Timed out"
    error = log_error(KafkaError(KafkaError._TIMED_OUT, reason), "x")
    assert error.retriable
    assert "choosing other leaders" in error.remedy


def test_a_retriable_one_says_so() -> None:
    assert log_error(KafkaError(KafkaError._TRANSPORT), "x").retriable
    assert log_error(KafkaError(KafkaError._TRANSPORT), "x").code == "TRANSPORT"


def test_an_unadvised_one_points_to_the_broker() -> None:
    error = log_error(KafkaError(KafkaError.DELEGATION_TOKEN_EXPIRED), "x")
    assert (error.remedy, error.retriable) == (UNADVISED.remedy, False)


def test_connecting_to_nobody_names_the_address() -> None:
    with socket.socket() as taken:  # so that nobody else listens there
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(LogError, match=f"127.0.0.1:{port}: Connection refused") as caught:
            bucketlog.connect(f"127.0.0.1:{port}")
    assert caught.value.retriable
    assert "bucketlog dev" in caught.value.remedy


@pytest.mark.parametrize("address", ["", "host:", "host:x", ":9092", "host:0", "host:70000"])
def test_a_malformed_address(address: str) -> None:
    with pytest.raises(ConfigurationError):
        bucketlog.connect(address)


def test_importing_loads_nothing_heavy() -> None:
    script = (
        "import sys, bucketlog; "
        "heavy = {'pydantic', 'confluent_kafka', 'typer', 'asyncio'} & set(sys.modules); "
        "assert not heavy, heavy; "
        "assert bucketlog.Topic('t').name == 't'; "
        "heavy = {'confluent_kafka', 'fastavro', 'google.protobuf', 'httpx2'} & set(sys.modules); "
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_all_public_names_are_exported() -> None:
    assert bucketlog.__all__ == sorted(bucketlog._HOMES)


def test_every_public_name_loads() -> None:
    for name in bucketlog.__all__:
        assert getattr(bucketlog, name).__module__.startswith("bucketlog")
        assert name in dir(bucketlog)


def test_the_errors_of_the_documents_are_names_of_the_package() -> None:
    text = (Path(__file__).parents[2] / "docs" / "sdk.md").read_text()
    rows = re.findall(r"^\| `(\w+Error)` \| (.+?) \| .+ \| (.+) \|$", text, re.MULTILINE)
    assert len(rows) > 5
    for name, code, retriable in rows:
        error = getattr(bucketlog, name)
        assert issubclass(error, bucketlog.BucketlogError)
        if retriable != "as it says":
            assert (f"`{error.code}`", error.retriable) == (code, retriable == "yes")
    public = {name for name in bucketlog._HOMES if name.endswith("Error")}
    assert public - {name for name, _, _ in rows} == {"BucketlogError"}


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nothing_here"):
        _ = bucketlog.nothing_here  # type: ignore[attr-defined]  # that is the point


@pytest.mark.parametrize("timeout_s", [0, -1, float("nan"), float("inf"), 1e12])
def test_timeouts_are_checked_before_librdkafka_sees_them(timeout_s: float) -> None:
    for connect in (bucketlog.connect, bucketlog.aconnect):
        with pytest.raises(ConfigurationError, match="timeout_s is"):
            connect("127.0.0.1:1", timeout_s=timeout_s)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"partition": -1}, "partition -1 of topic 't'"),
        ({"partition": 2**31}, "partition 2147483648 of topic 't'"),
        ({"timestamp_ms": -(2**63) - 1}, "timestamp_ms is -9223372036854775809"),
        ({"timestamp_ms": 2**63}, "timestamp_ms is 9223372036854775808"),
    ],
)
def test_numbers_are_checked_before_librdkafka_sees_them(
    options: dict[str, int], message: str
) -> None:
    numbers = {"partition": None, "timestamp_ms": None, **options}
    with pytest.raises(ConfigurationError, match=message) as caught:
        encoded(bucketlog.Topic("t"), b"", None, None, **numbers)
    assert " to " in caught.value.remedy
