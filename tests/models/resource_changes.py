"""Changes and descriptions of brokers, loggers, groups and subscriptions, for a comparison with
Apache Kafka. The broker has the id 1."""

from collections.abc import Iterator
from typing import NamedTuple

SET, DELETE, APPEND, SUBTRACT = range(4)
BROKER, LOGGER, SUBSCRIPTION, GROUP = 4, 8, 16, 32
Operation = tuple[str, int, str | None]


class Change(NamedTuple):
    """`operations`: name, operation, value; `replaces`: all configs of the resource, by
    AlterConfigs."""

    kind: int
    resource: str
    operations: tuple[Operation, ...]
    replaces: bool = False


def pairs(*configs: tuple[str, str | None]) -> tuple[Operation, ...]:
    return tuple((name, SET, value) for name, value in configs)


_MATCHES = (
    *("client_id=a.*", "nope=a", "client_id", "client_id=[", "client_id=a,client_id=b", ""),
    *("client_id=a=b", "client_id=", " client_id = a , client_software_name=b", "=a"),
    "client_instance_id=a,client_software_version=1,client_source_address=1,client_source_port=1",
)
_SUBSCRIPTIONS: tuple[tuple[Operation, ...], ...] = (
    *(pairs(("interval.ms", value)) for value in ("99", "100", "3600000", "3600001", "x", " 500 ")),
    *(pairs(("match", value)) for value in _MATCHES),
    *(pairs(("metrics", value)) for value in ("org.apache.kafka.", "", "a,,b", "*", "a,b", None)),
    pairs(("no.such", "x")),
    pairs(("interval.ms", "99"), ("no.such", "x")),
    (("metrics", DELETE, None),),
    (("no.such", DELETE, None),),
    (("metrics", APPEND, "a"),),
    (("interval.ms", APPEND, "5"),),
    (),
)
_BOUNDED = (
    ("consumer.session.timeout.ms", 45_000, 60_000),
    ("consumer.heartbeat.interval.ms", 5_000, 15_000),
    ("consumer.assignment.interval.ms", 0, 15_000),
    ("share.session.timeout.ms", 45_000, 60_000),
    ("share.heartbeat.interval.ms", 5_000, 15_000),
    ("share.assignment.interval.ms", 0, 15_000),
    ("share.record.lock.duration.ms", 15_000, 60_000),
    ("share.delivery.count.limit", 2, 10),
    ("share.partition.max.record.locks", 100, 4_000),
    ("streams.session.timeout.ms", 45_000, 60_000),
    ("streams.heartbeat.interval.ms", 5_000, 15_000),
    ("streams.assignment.interval.ms", 0, 15_000),
    ("streams.num.standby.replicas", 0, 2),
)
_GROUPS: tuple[tuple[Operation, ...], ...] = (
    *(
        pairs((name, str(value)))
        for name, low, high in _BOUNDED
        for value in (low - 1, low, high, high + 1, 0, -1, "x")
    ),
    *(
        pairs(("share.auto.offset.reset", value))
        for value in ("latest", "earliest", "never", "by_duration:P1D", "by_duration:PT1H30.5S")
    ),
    *(
        pairs(("share.auto.offset.reset", value))
        for value in ("by_duration:-P1D", "by_duration:", "by_duration:PT", "by_duration:P", "")
    ),
    *(pairs(("share.isolation.level", v)) for v in ("read_committed", "READ_COMMITTED", "x")),
    *(pairs(("share.renew.acknowledge.enable", v)) for v in ("true", "FALSE", "x")),
    *(pairs(("streams.initial.rebalance.delay.ms", v)) for v in ("0", "-1", "999999")),
    pairs(("no.such", "1")),
    pairs(("consumer.session.timeout.ms", None)),
    pairs(("consumer.session.timeout.ms", "1"), ("consumer.heartbeat.interval.ms", "x")),
    (("no.such", DELETE, None),),
    (("consumer.session.timeout.ms", APPEND, "5"),),
    (),
)
_OF_ALL_BROKERS: tuple[tuple[Operation, ...], ...] = (
    *(pairs(("log.retention.ms", value)) for value in ("1000", "x", "-1", None)),
    *(pairs((name, "3")) for name in ("num.partitions", "broker.id", "log.retention.hours")),
    pairs(("auto.create.topics.enable", "false")),
    pairs(("advertised.listeners", "x")),
    pairs(("group.consumer.session.timeout.ms", "50000")),
    pairs(("log.retention.bytes", "x"), ("num.partitions", "2")),
    pairs(("message.max.bytes", "-1")),
    pairs(("message.max.bytes", "2000000")),
    pairs(("log.cleaner.min.cleanable.ratio", "2")),
    pairs(("log.message.timestamp.type", "x")),
    pairs(("log.message.timestamp.type", "LogAppendTime")),
    pairs(("log.cleaner.delete.retention.ms", "5")),
    pairs(("leader.replication.throttled.rate", "100")),
    pairs(("follower.replication.throttled.rate", "x")),
    pairs(("follower.replication.throttled.rate", "-1")),
    (("log.cleanup.policy", APPEND, "compact"),),
    (("log.cleanup.policy", SUBTRACT, "x"),),
    (("log.cleanup.policy", APPEND, "x"),),
    (("message.max.bytes", APPEND, "5"),),
    (("log.retention.ms", SET, "1"), ("log.retention.ms", SET, "2")),
    (("log.retention.ms", DELETE, None),),
    (),
)
_OF_ONE_BROKER: tuple[tuple[Operation, ...], ...] = (
    pairs(("num.partitions", "3")),
    pairs(("log.retention.ms", None)),
    pairs(("leader.replication.throttled.rate", "100")),
    (("leader.replication.throttled.rate", DELETE, None),),
    (),
)
_LOGGERS: tuple[tuple[Operation, ...], ...] = (
    *(pairs(("root", level)) for level in ("DEBUG", "LOUD", "debug", "WARN", None)),
    pairs(("no.such", "DEBUG")),
    (("root", DELETE, None),),
    (("no.such", DELETE, None),),
    (("root", APPEND, "DEBUG"),),
    (("root", SUBTRACT, "DEBUG"),),
    (),
)
_NOBODY = pairs(("message.max.bytes", "100"))


def resource_changes() -> Iterator[Change]:
    for kind, name, cases in (
        (SUBSCRIPTION, "s", _SUBSCRIPTIONS),
        (GROUP, "g", _GROUPS),
        (BROKER, "", _OF_ALL_BROKERS),
        (BROKER, "1", _OF_ONE_BROKER),
        (LOGGER, "1", _LOGGERS),
    ):
        for operations in cases:
            yield Change(kind, name, operations)
            if all(operation == SET for _, operation, _ in operations):
                yield Change(kind, name, operations, replaces=True)
    for kind, name in (
        *((BROKER, name) for name in ("2", "x", "-1", " 1", "01", "+1", "99999999999")),
        *((LOGGER, name) for name in ("", "2", "x", "01")),
        *((kind, "") for kind in (SUBSCRIPTION, GROUP)),
        *((kind, "x") for kind in (0, 3, 64, 127)),
    ):
        yield Change(kind, name, ())
        yield Change(kind, name, (), replaces=True)
    for name in ("2", "x"):
        yield Change(BROKER, name, _NOBODY)
        yield Change(BROKER, name, _NOBODY, replaces=True)


def named_resources() -> Iterator[tuple[int, str, tuple[str, ...] | None]]:
    """Kind, name and the configs to describe."""
    for name in ("2", "x", "-1", " 1", "01", "+1", "99999999999", "1"):
        yield BROKER, name, ("default.replication.factor", "auto.create.topics.enable", "no.such")
    for name in ("", "2", "x", " 1"):
        yield LOGGER, name, ("root",)
    for kind in (SUBSCRIPTION, GROUP):
        for name in ("", "unknown"):
            yield kind, name, None
    yield GROUP, "unknown", ("consumer.session.timeout.ms", "no.such")
    for kind in (0, 1, 3, 64, 127):
        yield kind, "x", None
