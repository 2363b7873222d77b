"""The same changes of configs at Apache Kafka and at bucketlog: codes, messages and values.

Invariant: answers that differ are in `DOCUMENTED`, with the answer of each and the place of the
documentation. A documented difference that is gone is a problem, too.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.metadata.topic_configs import OWN_CONFIGS, TOPIC_CONFIGS
from tests.models.resource_changes import (
    APPEND,
    DELETE,
    SET,
    SUBTRACT,
    Change,
    named_resources,
    pairs,
    resource_changes,
)
from tests.models.setting_cases import values_of
from tests.rigs.patience import eventually
from tests.rigs.wire_client import WireClient

TOPIC = "settings"
KAFKAS_CONFIGS = [each for name, each in TOPIC_CONFIGS.items() if name not in OWN_CONFIGS]
MARKER = "flush.messages"
UNLIKE_ANSWER = (
    "invalid_config",
    "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.",
)
UNLIKE_SYNONYMS = [("min.insync.replicas", 3)]
"""Kafka 4.3 sets this default of all brokers by itself (KIP-966): docs/topic-settings.md."""
OF_TOPIC = 2
Answer = tuple[object, ...]


class Documented(NamedTuple):
    kafka: Answer
    here: Answer
    place: str


_SETTINGS = "docs/topic-settings.md#differences-from-kafka"


_LAGS = (("min.compaction.lag.ms", "10"), ("max.compaction.lag.ms", "5"))
_WRONG_TOGETHER: tuple[tuple[tuple[str, str | None], ...], ...] = (
    (("no.such", "1"),),
    (("", "1"),),
    (("retention.ms", None),),
    (("retention.ms", None), ("flush.ms", None)),
    (("no.such", None),),
    _LAGS,
    (("min.compaction.lag.ms", "10"), ("max.compaction.lag.ms", "10")),
    (("retention.ms", "x"), ("no.such", "1")),
    (("segment.ms", "x"), ("flush.ms", "y")),
    (("flush.ms", "y"), ("segment.ms", "x")),
    (("retention.ms", "x"), ("flush.ms", None)),
    (("remote.storage.enable", "true"), ("cleanup.policy", "compact")),
    (("remote.storage.enable", "true"), *_LAGS),
    (("local.retention.ms", "100"), ("retention.ms", "10")),
    (("local.retention.bytes", "100"), ("retention.bytes", "10")),
    (("message.format.version", "3.0"),),
    (("message.timestamp.difference.max.ms", "3"),),
    (("message.downconversion.enable", "true"),),
    (("internal.segment.bytes", "1"),),
)
_OPERATIONS: tuple[tuple[tuple[str, int, str | None], ...], ...] = (
    (),
    (("no.such", DELETE, None),),
    (("no.such", APPEND, "1"),),
    (("retention.ms", APPEND, "1"),),
    (("retention.ms", SUBTRACT, "1"),),
    (("retention.ms", 7, "1"),),
    (("retention.ms", DELETE, "1"),),
    (("retention.ms", SET, "1"), ("retention.ms", SET, "2")),
    (("retention.ms", SET, None), ("retention.ms", SET, "2")),
    (("retention.ms", SET, "1"), ("retention.ms", DELETE, None)),
    *((("cleanup.policy", APPEND, value),) for value in ("delete", "compact", "forget", "", "a,b")),
    *((("cleanup.policy", APPEND, value),) for value in (" compact ", "compact,delete", None)),
    *((("cleanup.policy", SUBTRACT, value),) for value in ("delete", "compact", "", None)),
    (("segment.ms", SET, "1"), ("no.such", SET, "2"), ("retention.ms", APPEND, "1")),
    (("leader.replication.throttled.replicas", APPEND, "0:1"),),
)


def topic_changes() -> Iterator[Change]:
    """Of a topic that exists, of topics that do not, and of no topic."""
    together = [pairs(*configs) for configs in _WRONG_TOGETHER]
    for operations in (*_OPERATIONS, *together):
        yield Change(OF_TOPIC, TOPIC, operations)
    for operations in together:
        yield Change(OF_TOPIC, TOPIC, operations, replaces=True)
    twice = pairs(("retention.ms", "1"), ("retention.ms", "2"))
    yield Change(OF_TOPIC, TOPIC, twice, replaces=True)
    for name in ("", "no-such-topic"):
        for replaces in (False, True):
            yield Change(OF_TOPIC, name, (), replaces)
            yield Change(OF_TOPIC, name, pairs(("retention.ms", "1")), replaces)
            yield Change(OF_TOPIC, name, pairs(("retention.ms", "x")), replaces)
            yield Change(OF_TOPIC, name, pairs(("no.such", "1")), replaces)


def answers(client: WireClient) -> dict[str, Answer]:
    """By a name of the request."""
    _create_topic(client)
    found: dict[str, Answer] = {}
    for config in KAFKAS_CONFIGS:
        for value in values_of(config):
            found[f"create {config.name}={value!r}"] = _created(client, config.name, value)
            change = Change(OF_TOPIC, TOPIC, pairs((config.name, value)))
            found[f"alter {config.name}={value!r}"] = _changed(client, change)
    for configs in _WRONG_TOGETHER:
        found[f"create {configs}"] = _creation(client, configs)[:2]
    found |= {_named(change): _changed(client, change) for change in topic_changes()}
    found |= dict(_described(client, found))
    found |= {_named(change): _changed(client, change) for change in resource_changes()}
    return found | dict(_resources(client))


def _resources(client: WireClient) -> Iterator[tuple[str, Answer]]:
    """Descriptions of resources without configs, and with some."""
    for kind, name, keys in named_resources():
        yield f"describe {kind} {name!r} {keys}", _description(client, kind, name, keys)
    for kind, name, configs in _SET_CONFIGS:
        change = Change(kind, name, pairs(*configs))
        assert _changed(client, change, validate_only=False) == ("none", None)
        wanted = None if kind != 4 or not name else (configs[0][0],)

        def is_set(
            kind: int = kind, name: str = name, marker: tuple[str, str] = configs[-1]
        ) -> bool:
            shown = _description(client, kind, name, None)[2:]
            return marker in {(each[0], each[1]) for each in shown}

        eventually(is_set, "the change is not visible")
        yield f"describe {kind} {name!r} with configs", _description(client, kind, name, wanted)
    yield "describe a topic with defaults", _description(client, OF_TOPIC, TOPIC, ("retention.ms",))
    for version, kinds in ((0, None), *((1, kinds) for kinds in _LISTED_KINDS)):
        values = {} if kinds is None else {"resource_types": kinds}
        answer = client.call(ApiKey.LIST_CONFIG_RESOURCES, version, **values)
        listed = {
            (getattr(each, "resource_type", 16), each.resource_name)
            for each in answer.config_resources
        }
        yield f"list {version} {kinds}", (answer.error_code.name, sorted(listed))


_SET_CONFIGS: tuple[tuple[int, str, tuple[tuple[str, str], ...]], ...] = (
    (16, "s", (("match", "client_id=a,client_software_name=b"), ("interval.ms", "1000"))),
    (32, "g", (("share.isolation.level", "read_committed"), ("streams.num.standby.replicas", "1"))),
    (4, "1", (("leader.replication.throttled.rate", "100"),)),
    (4, "1", (("sasl.kerberos.min.time.before.relogin", "58000"),)),
    (4, "", (("log.message.timestamp.type", "LogAppendTime"), ("log.retention.ms", "700000000"))),
    (4, "", (("follower.replication.throttled.rate", "5"),)),
)
_LISTED_KINDS: tuple[list[int], ...] = ([], [2], [4], [8], [16], [32], [16, 32], [3], [16, 0])


def _description(
    client: WireClient, kind: int, name: str, keys: tuple[str, ...] | None
) -> tuple[Any, ...]:
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": keys}
    answer = client.call(ApiKey.DESCRIBE_CONFIGS, 4, resources=[resource], include_synonyms=True)
    (row,) = answer.results
    return (
        row.error_code.name,
        row.error_message,
        *sorted(
            (
                each.name,
                each.value,
                each.config_source,
                each.config_type,
                each.read_only,
                tuple((one.name, one.value, one.source) for one in each.synonyms),
            )
            for each in row.configs
            if (each.name, each.config_source) not in UNLIKE_SYNONYMS
        ),
    )


def _named(change: Change) -> str:
    verb = "replace" if change.replaces else "alter"
    return f"{verb} {change.kind} {change.resource!r}: {change.operations}"


def _create_topic(client: WireClient) -> None:
    def is_there() -> bool:
        wanted = {"name": TOPIC, "num_partitions": 1, "replication_factor": 1}
        created = client.call(ApiKey.CREATE_TOPICS, 5, topics=[wanted], timeout=30_000)
        return bool(created.topics[0].error_code.name == "topic_already_exists")

    eventually(is_there, "the topic is not created")


def _creation(client: WireClient, given: Iterable[tuple[str, str | None]]) -> tuple[Any, ...]:
    answer = client.call(
        ApiKey.CREATE_TOPICS,
        5,
        topics=[
            {
                "name": "never-created",
                "num_partitions": 1,
                "replication_factor": 1,
                "configs": [{"name": name, "value": value} for name, value in given],
            }
        ],
        timeout=30_000,
        validate_only=True,
    )
    (row,) = answer.topics
    return row.error_code.name, row.error_message, row.configs


def _created(client: WireClient, name: str, value: str) -> Answer:
    """Also the source of the value that the topic would have. Kafka shows the value as it was
    given; DescribeConfigs shows it in canonical form on both sides."""
    code, message, configs = _creation(client, [(name, value)])
    shown = [each.config_source for each in configs or () if each.name == name]
    return code, message, *shown


def _described(client: WireClient, found: Mapping[str, Answer]) -> Iterator[tuple[str, Answer]]:
    """How each accepted value is described. A round sets one value of each config."""
    accepted = {
        config.name: [
            v for v in values_of(config) if found[f"alter {config.name}={v!r}"][0] == "none"
        ]
        for config in KAFKAS_CONFIGS
        if config.name not in (MARKER, "min.compaction.lag.ms")
    }
    for number in range(max(map(len, accepted.values()))):
        given = {name: values[number] for name, values in accepted.items() if number < len(values)}
        marked = given | {MARKER: str(number + 1)}
        change = Change(OF_TOPIC, TOPIC, pairs(*marked.items()), replaces=True)
        assert _changed(client, change, validate_only=False) == ("none", None)
        shown = _configs_of_topic(client, str(number + 1))
        for name, value in given.items():
            each = shown[name]
            synonyms = [
                (one.name, one.value, one.source)
                for one in each.synonyms
                if (name, one.source) not in UNLIKE_SYNONYMS
            ]
            answer = each.value, each.config_source, each.config_type, each.read_only, synonyms
            yield f"describe {name}={value!r}", answer


def _configs_of_topic(client: WireClient, marker: str) -> dict[str, Any]:
    """By name, after the change with this marker is visible."""
    shown: dict[str, Any] = {}

    def is_current() -> bool:
        resource = {"resource_type": OF_TOPIC, "resource_name": TOPIC, "configuration_keys": None}
        answer = client.call(
            ApiKey.DESCRIBE_CONFIGS, 4, resources=[resource], include_synonyms=True
        )
        shown.update((each.name, each) for each in answer.results[0].configs)
        return bool(shown[MARKER].value == marker)

    eventually(is_current, "the change is not visible")
    return shown


def _changed(client: WireClient, change: Change, *, validate_only: bool = True) -> Answer:
    configs: list[Mapping[str, object]] = [
        {"name": name, "value": value}
        | ({} if change.replaces else {"config_operation": operation})
        for name, operation, value in change.operations
    ]
    api = ApiKey.ALTER_CONFIGS if change.replaces else ApiKey.INCREMENTAL_ALTER_CONFIGS
    resource = {"resource_type": change.kind, "resource_name": change.resource}
    answer = client.call(
        api,
        2 if change.replaces else 1,
        resources=[resource | {"configs": configs}],
        validate_only=validate_only,
    )
    (row,) = answer.responses
    assert (row.resource_type, row.resource_name) == (change.kind, change.resource)
    return row.error_code.name, row.error_message


def _documented() -> Iterator[tuple[str, Documented]]:
    given = (("internal.segment.bytes", "1"),)
    text = "Unknown topic config name: internal.segment.bytes"
    internal = Documented(("none", None), ("invalid_config", text), _SETTINGS)
    yield f"create {given}", internal
    for replaces in (False, True):
        yield _named(Change(OF_TOPIC, TOPIC, pairs(*given), replaces)), internal
    text = "Unknown operation type 7 for config retention.ms"
    yield (
        _named(Change(OF_TOPIC, TOPIC, (("retention.ms", 7, "1"),))),
        Documented(("unknown_server_error", None), ("invalid_request", text), _SETTINGS),
    )


DOCUMENTED = dict(_documented())


def problems(kafka: Mapping[str, Answer], here: Mapping[str, Answer]) -> list[str]:
    """Differences that are not documented, and documented ones that are not there."""
    found = []
    for name, theirs in kafka.items():
        known = DOCUMENTED.get(name)
        if theirs == UNLIKE_ANSWER:
            continue
        if known is None and theirs != here.get(name):
            found.append(f"{name}: Kafka {theirs}, here {here.get(name)}")
        elif known is not None and (theirs, here.get(name)) != (known.kafka, known.here):
            found.append(f"{name}: documented, but Kafka {theirs}, here {here.get(name)}")
    return found + [f"{name} was not asked" for name in DOCUMENTED.keys() - kafka.keys()]
