"""Topic names and configs: Kafka's rules."""

import pytest

from bucketlog.log_format.errors import InvalidDataError
from bucketlog.metadata.topic_checks import check_configs, check_topic_name
from bucketlog.metadata.topic_configs import TOPIC_CONFIGS
from bucketlog.metadata.topic_names import TopicNames


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "...", "_", "-", "x" * 249])
def test_good_names(name: str) -> None:
    check_topic_name(name)


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a b", "a/b", "ä", "a\n", "\n", "٣", "a\0", "x" * 250]
)
def test_bad_names(name: str) -> None:
    with pytest.raises(InvalidDataError, match="topic name"):
        check_topic_name(name)


@pytest.mark.parametrize(
    ("name", "existing", "other"),
    [
        ("a.b", ["a_b"], "a_b"),
        ("a_b", ["x", "a.b"], "a.b"),
        ("a.b_c", ["a_b.c"], "a_b.c"),
        ("a.b", ["a-b", "ab", "a.c"], None),
        ("ab", ["a.b"], None),
    ],
)
def test_names_that_differ_in_dots_alone_collide(
    name: str, existing: list[str], other: str | None
) -> None:
    names = TopicNames([*existing, "gone_with_it"])
    names.remove("gone_with_it")
    names.remove("never.there")
    assert names.colliding(name) == other
    assert names.colliding("gone.with.it") is None


def test_every_default_is_accepted() -> None:
    defaults: dict[str, str | None] = {name: c.default for name, c in TOPIC_CONFIGS.items()}
    assert check_configs(defaults) == {n: v for n, v in defaults.items() if v is not None}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("retention.ms", "-1"),
        ("retention.ms", str(2**63 - 1)),
        ("retention.bytes", "0"),
        ("max.message.bytes", str(2**31 - 1)),
        ("cleanup.policy", "compact"),
        ("cleanup.policy", "compact,delete"),
        ("cleanup.policy", ""),
        ("compression.type", "zstd"),
        ("flush.ms", "0"),
        ("message.timestamp.type", "LogAppendTime"),
        ("min.cleanable.dirty.ratio", "0.001"),
    ],
)
def test_good_values(name: str, value: str) -> None:
    assert check_configs({name: value}) == {name: value}


@pytest.mark.parametrize(
    ("name", "value", "canonical"),
    [
        ("retention.ms", " +7 ", "7"),
        ("retention.ms", "\u0667", "7"),
        ("preallocate", " TRUE ", "true"),
        ("compression.type", " gzip ", "gzip"),
        ("cleanup.policy", " compact , delete,compact ", "compact,delete"),
        ("cleanup.policy", " ", ""),
        ("leader.replication.throttled.replicas", "0:1 ,0:1", "0:1,0:1"),
        ("min.cleanable.dirty.ratio", "0x1p-1", "0.5"),
        ("min.cleanable.dirty.ratio", "1e-5", "1.0E-5"),
        ("min.cleanable.dirty.ratio", "1.25e-5", "1.25E-5"),
        ("min.cleanable.dirty.ratio", "NaN", "NaN"),
        ("min.cleanable.dirty.ratio", ".5d", "0.5"),
    ],
)
def test_values_are_stored_as_kafka_describes_them(name: str, value: str, canonical: str) -> None:
    assert check_configs({name: value}) == {name: canonical}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("retention.ms", "-2"),
        ("retention.ms", str(2**63)),
        ("retention.ms", ""),
        ("retention.ms", "1.5"),
        ("retention.ms", "1_000"),
        ("max.message.bytes", "-1"),
        ("max.message.bytes", str(2**31)),
        ("min.insync.replicas", "0"),
        ("cleanup.policy", "delete,,compact"),
        ("cleanup.policy", "delete,forget"),
        ("compression.type", "none"),
        ("segment.bytes", "1048575"),
        ("compression.gzip.level", "0"),
        ("leader.replication.throttled.replicas", "0:a"),
        ("message.timestamp.type", "logappendtime"),
        ("min.cleanable.dirty.ratio", "1.01"),
        ("min.cleanable.dirty.ratio", "nan"),
        ("min.cleanable.dirty.ratio", "Infinity"),
        ("min.cleanable.dirty.ratio", "0x1p99999999999"),
        ("min.cleanable.dirty.ratio", "0_1"),
        ("min.cleanable.dirty.ratio", "much"),
    ],
)
def test_bad_values(name: str, value: str) -> None:
    with pytest.raises(InvalidDataError, match=f"Invalid value|'{name}' values must not be empty"):
        check_configs({name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cleanup.policy", "compact," * 6000 + "compact"),
        ("min.cleanable.dirty.ratio", "0" * 4_000_000 + "x"),
        ("retention.ms", "9" * 5000),
    ],
)
def test_values_that_are_too_long(name: str, value: str) -> None:
    with pytest.raises(InvalidDataError, match="use at most"):
        check_configs({name: value})


def test_unknown_names_and_missing_values() -> None:
    with pytest.raises(InvalidDataError, match="Unknown topic config name: retention"):
        check_configs({"retention": "1"})
    with pytest.raises(InvalidDataError, match="Null value"):
        check_configs({"retention.ms": None})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cleanup.policy", ",".join(["delete"] * 200_000)),
        ("min.cleanable.dirty.ratio", "0." + "5" * 1_000_000),
    ],
)
def test_a_long_value_is_refused_and_not_repeated(name: str, value: str) -> None:
    with pytest.raises(InvalidDataError, match=name) as raised:
        check_configs({name: value})
    assert len(str(raised.value)) < 200
