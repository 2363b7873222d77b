"""The answers of two brokers in comparable form. Pure.

Invariants: what differs by chance (ids, hosts, times of the servers) is normalised; all else is
compared field by field. The fields of a type are looked up once, because answers have many leaves.
"""

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any, NamedTuple

from aiokafka.record.memory_records import MemoryRecords
from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.scenarios.differences import KNOWN

DROPPED = frozenset(
    {
        *("throttle_time", "error_message", "batch_index_error_message"),
        *("host", "port", "rack", "controller_id", "node_id"),
        *("leader_id", "leader_epoch", "replica_nodes", "isr_nodes", "offline_replicas"),
        *("cluster_id", "brokers", "session_id", "preferred_read_replica", "log_append_time"),
        *("committed_leader_epoch", "current_leader", "topic_config_error_code"),
        *("transaction_start_time", "last_timestamp", "coordinator_epoch"),
    }
)
"""Fields that differ by chance, and texts for people."""
ONLY_PRESENT = frozenset({"topic_id", "producer_id"})
Plain = Mapping[str, object]
"""An answer: its leaves by their paths."""


class Difference(NamedTuple):
    api: str
    path: str
    kafka: str
    here: str
    beside: tuple[str, ...] = ()
    """All differences of the answer, each as its path, `=` and Kafka's value, and the names of the
    APIs of earlier requests, each after `after `."""

    @property
    def reason(self) -> str | None:
        """Why it is expected; None: nobody knows."""
        return next((known.reason for known in KNOWN if known.explains(self)), None)


def flattened(answer: Any, names: Mapping[str, str] = MappingProxyType({})) -> dict[str, object]:
    """The leaves of an answer by their paths. `names`: for ids that a broker chose."""
    found: dict[str, object] = {}
    _collect(answer, "", found, names)
    return found


_FIELDS: dict[type[Any], tuple[str, ...] | None] = {}


def _compared_fields(kind: type[Any]) -> tuple[str, ...] | None:
    """None: the type has no fields."""
    if kind not in _FIELDS:
        names = tuple(each.name for each in fields(kind)) if is_dataclass(kind) else None
        _FIELDS[kind] = names and tuple(name for name in names if name not in DROPPED)
    return _FIELDS[kind]


def _collect(value: Any, path: str, found: dict[str, object], ids: Mapping[str, str]) -> None:
    """Rows of a list are in the order of their texts: brokers may answer in any order."""
    names = _compared_fields(type(value))
    if names is not None:
        for name in names:
            _collect(_part(name, getattr(value, name)), f"{path}.{name}", found, ids)
    elif isinstance(value, tuple | list):
        _collect_rows(value, path, found, ids)
    else:
        found[path] = ids.get(value, value) if isinstance(value, str) else value


def _collect_rows(
    values: tuple[Any, ...] | list[Any],
    path: str,
    found: dict[str, object],
    ids: Mapping[str, str],
) -> None:
    found[f"{path}.len"] = len(values)
    rows = sorted((flattened(each, ids) for each in values), key=repr)
    names = [str(row.get(".name", row.get(".topic", ""))) for row in rows]
    has_names = len(set(names)) == len(names)
    for number, row in enumerate(rows):
        key = names[number] if has_names and names[number] else str(number)
        for below, leaf in row.items():
            found[f"{path}[{key}]{below}"] = leaf


def _part(name: str, value: Any) -> Any:
    if name in ONLY_PRESENT:
        return bool(value) if name != "producer_id" else value >= 0
    if name == "records" and value is not None:
        return _records(bytes(value))
    return value.value if isinstance(value, Enum) and not isinstance(value, ErrorCode) else value


def _records(data: bytes) -> list[str]:
    found, batches = [], MemoryRecords(data)
    while batches.has_next():
        batch = batches.next_batch()
        assert batch is not None
        if batch.is_control_batch:
            found.append(f"{batch.base_offset} marker")
            continue
        found += [f"{row.offset} {row.key!r} {row.value!r} {row.timestamp}" for row in batch]
    return found


def compared(
    kafka: Plain, here: Plain, api: ApiKey, earlier: Iterable[ApiKey] = ()
) -> list[Difference]:
    """`earlier`: the APIs of the requests before."""
    paths = [
        path for path in sorted(kafka.keys() | here.keys()) if kafka.get(path) != here.get(path)
    ]
    beside = (
        *(f"{path}={kafka.get(path)!r}" for path in paths),
        *(f"after {each.message_name}" for each in earlier),
    )
    return [
        Difference(api.message_name, path, repr(kafka.get(path)), repr(here.get(path)), beside)
        for path in paths
    ]
