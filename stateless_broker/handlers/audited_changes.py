"""Changes that requests of administrators make, for the audit log: a function for each API. Pure.

`answer` is None if the handler has failed. Requests that only validate change nothing.
"""

from collections.abc import Iterable, Iterator, Mapping, Sized
from enum import IntEnum
from itertools import islice, zip_longest
from typing import Protocol, TypeVar, cast

from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
)
from bucketlog.log_format.wire.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResponse,
)
from bucketlog.log_format.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from bucketlog.log_format.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)
from bucketlog.log_format.wire.messages.create_acls import CreateAclsRequest, CreateAclsResponse
from bucketlog.log_format.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
)
from bucketlog.log_format.wire.messages.create_topics import CreateTopicsRequest
from bucketlog.log_format.wire.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse
from bucketlog.log_format.wire.messages.delete_groups import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from bucketlog.log_format.wire.messages.delete_records import (
    DeleteRecordsRequest,
    DeleteRecordsResponse,
)
from bucketlog.log_format.wire.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from bucketlog.log_format.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
)
from bucketlog.log_format.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
)
from bucketlog.log_format.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
)
from bucketlog.log_format.wire.messages.update_features import (
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from bucketlog.log_format.wire.messages.write_txn_markers import WriteTxnMarkersRequest
from bucketlog.metadata.acl_bindings import (
    ANY,
    MATCH,
    AclFilter,
    AclOperation,
    PatternType,
    Permission,
    ResourceType,
)
from bucketlog.stateless_broker.handlers.acls import acl_filter
from bucketlog.stateless_broker.handlers.scram_credentials import MECHANISMS
from bucketlog.stateless_broker.network.apis import Answer, WrittenResponse
from bucketlog.stateless_broker.network.audit import Change, cut

T = TypeVar("T")

DETAILS_MAX = 50
"""Limit of configs or partitions that a change shows."""
RESOURCES = {2: "topic", 4: "broker", 8: "broker logger", 16: "client metrics", 32: "group"}
OPERATIONS = {0: "set", 1: "delete", 2: "append", 3: "subtract"}
"""Kafka's numbers of the operations of IncrementalAlterConfigs."""


class _Config(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def value(self) -> str | None: ...


def created_topics(message: CreateTopicsRequest, answer: Answer) -> Iterable[Change]:
    if message.validate_only:
        return
    outcomes = answer.outcomes if isinstance(answer, WrittenResponse) else {}
    for topic in {topic.name: topic for topic in message.topics}.values():
        error = outcomes.get(topic.name)
        details: dict[str, object] = {"partitions": topic.num_partitions}
        if topic.configs:
            details |= {"configs": _configs(topic.configs, error)} | _left_out(topic.configs)
        yield Change("topic", topic.name, error, details)


def deleted_topics(message: DeleteTopicsRequest, answer: Answer) -> Iterable[Change]:
    if answer is None:
        named = [each.name or str(each.topic_id) for each in message.topics]
        yield from (Change("topic", name, None) for name in (*named, *message.topic_names))
        return
    for row in cast(DeleteTopicsResponse, answer)["responses"]:
        topic_id = row.get("topic_id")
        details = {} if topic_id is None else {"topic_id": str(topic_id)}
        yield Change("topic", row["name"] or str(topic_id), row["error_code"], details)


def created_partitions(message: CreatePartitionsRequest, answer: Answer) -> Iterable[Change]:
    if message.validate_only:
        return
    rows = () if answer is None else cast(CreatePartitionsResponse, answer)["results"]
    errors = {row["name"]: row["error_code"] for row in rows}
    for topic in {topic.name: topic for topic in message.topics}.values():
        yield Change("topic", topic.name, errors.get(topic.name), {"partitions": topic.count})


def altered_configs(message: AlterConfigsRequest, answer: Answer) -> Iterable[Change]:
    errors = _errors_of_configs(answer)
    for each in () if message.validate_only else message.resources:
        error = errors.get((each.resource_type, each.resource_name))
        kind = RESOURCES.get(each.resource_type, "other")
        details = {"replaced_by": _configs(each.configs, error)} | _left_out(each.configs)
        yield Change(kind, each.resource_name, error, details)


def altered_some_configs(
    message: IncrementalAlterConfigsRequest, answer: Answer
) -> Iterable[Change]:
    errors = _errors_of_configs(answer)
    for each in () if message.validate_only else message.resources:
        error = errors.get((each.resource_type, each.resource_name))
        kind = RESOURCES.get(each.resource_type, "other")
        words = {
            cut(config.name): OPERATIONS.get(config.config_operation, "unknown")
            for config in _first(each.configs)
        }
        details: dict[str, object] = {"configs": _configs(each.configs, error)}
        details |= {"operations": words} | _left_out(each.configs)
        yield Change(kind, each.resource_name, error, details)


def _errors_of_configs(answer: Answer) -> Mapping[tuple[int, str], ErrorCode]:
    rows = () if answer is None else cast(AlterConfigsResponse, answer)["responses"]
    return {(row["resource_type"], row["resource_name"]): row["error_code"] for row in rows}


def _configs(configs: Iterable[_Config], error: ErrorCode | None) -> Mapping[str, str | None]:
    """Return the changed configs. Only accepted values are shown: a refused setting may be
    anything, even a password."""
    shown: dict[str, str | None] = {}
    for config in _first(configs):
        value = config.value if error is ErrorCode.none else None
        shown[cut(config.name)] = None if value is None else cut(value)
    return shown


def deleted_records(message: DeleteRecordsRequest, answer: Answer) -> Iterable[Change]:
    """A change for each topic and error."""
    rows = () if answer is None else cast(DeleteRecordsResponse, answer)["topics"]
    found: dict[tuple[str, ErrorCode | None], dict[int, int]] = {}
    for topic in rows:
        for part in topic["partitions"]:
            starts = found.setdefault((topic["name"], part["error_code"]), {})
            starts[part["partition_index"]] = part["low_watermark"]
    if answer is None:
        found = {
            (topic.name, None): {part.partition_index: part.offset for part in topic.partitions}
            for topic in message.topics
        }
    for (name, error), starts in found.items():
        details = {"before": dict(_first(starts.items()))} | _left_out(starts)
        yield Change("records of topic", name, error, details)


def deleted_groups(message: DeleteGroupsRequest, answer: Answer) -> Iterable[Change]:
    if answer is None:
        yield from (Change("group", name, None) for name in message.groups_names)
        return
    for row in cast(DeleteGroupsResponse, answer)["results"]:
        yield Change("group", row["group_id"], row["error_code"])


def deleted_offsets(message: OffsetDeleteRequest, answer: Answer) -> Iterable[Change]:
    """A change for each topic and error, of the group that the request names."""
    group = message.group_id
    if answer is None:
        for topic in message.topics:
            parts = [part.partition_index for part in topic.partitions]
            details = {"topic": topic.name, "partitions": [*_first(parts)]} | _left_out(parts)
            yield Change("offsets of group", group, None, details)
        return
    response = cast(OffsetDeleteResponse, answer)
    if response["error_code"]:
        yield Change("offsets of group", group, response["error_code"])
        return
    found: dict[tuple[str, ErrorCode], list[int]] = {}
    for row in response["topics"]:
        for each in row["partitions"]:
            key = (row["name"], each["error_code"])
            found.setdefault(key, []).append(each["partition_index"])
    for (name, error), parts in found.items():
        details = {"topic": name, "partitions": [*_first(parts)]} | _left_out(parts)
        yield Change("offsets of group", group, error, details)


def altered_users(message: AlterUserScramCredentialsRequest, answer: Answer) -> Iterable[Change]:
    rows = () if answer is None else cast(AlterUserScramCredentialsResponse, answer)["results"]
    errors = {row["user"]: row["error_code"] for row in rows}
    for deletion in message.deletions:
        details: dict[str, object] = {"mechanism": _mechanism(deletion.mechanism)}
        details["change"] = "delete"
        yield Change("user", deletion.name, errors.get(deletion.name), details)
    for change in message.upsertions:
        details = {"mechanism": _mechanism(change.mechanism), "change": "set password"}
        details["iterations"] = change.iterations
        yield Change("user", change.name, errors.get(change.name), details)


def created_acls(message: CreateAclsRequest, answer: Answer) -> Iterable[Change]:
    rows = () if answer is None else cast(CreateAclsResponse, answer)["results"]
    for wanted, row in zip_longest(message.creations, rows):
        acl = AclFilter(
            wanted.principal,
            wanted.host,
            wanted.operation,
            wanted.permission_type,
            wanted.resource_type,
            wanted.resource_name,
            wanted.resource_pattern_type,
        )
        yield _acl("create", acl, None if row is None else row["error_code"])


def deleted_acls(message: DeleteAclsRequest, answer: Answer) -> Iterable[Change]:
    """A change for each ACL that was deleted, and for each filter that was refused."""
    rows = () if answer is None else cast(DeleteAclsResponse, answer)["filter_results"]
    for asked, row in zip_longest(message.filters, rows):
        if row is None or row["error_code"]:
            error = None if row is None else row["error_code"]
            yield _acl("delete all that match", acl_filter(asked), error)
            continue
        for acl in row["matching_acls"]:
            gone = AclFilter(
                acl["principal"],
                acl["host"],
                acl["operation"],
                acl["permission_type"],
                acl["resource_type"],
                acl["resource_name"],
                acl["pattern_type"],
            )
            yield _acl("delete", gone, acl["error_code"])


def _acl(change: str, acl: AclFilter, error: ErrorCode | None) -> Change:
    details = {
        "change": change,
        "principal": acl.principal,
        "host": acl.host,
        "operation": _word(AclOperation, acl.operation),
        "permission": _word(Permission, acl.permission),
        "pattern": _word(PatternType, acl.pattern_type),
    }
    name = "any name" if acl.name is None else acl.name
    return Change("ACL", f"{_word(ResourceType, acl.resource_type)} {name}", error, details)


def _word(kind: type[IntEnum], number: int) -> str:
    """Return the word for the number, as in `describe_configs`. Filters have numbers that no ACL
    has."""
    if number in set(kind):
        return kind(number).name.lower()
    if kind is PatternType and number == MATCH:
        return "match"
    return "any" if number == ANY else f"unknown ({number})"


def _mechanism(number: int) -> str:
    return MECHANISMS[number].value if number in MECHANISMS else "unknown"


def ended_transactions(message: WriteTxnMarkersRequest, answer: Answer) -> Iterable[Change]:
    """An administrator ends a transaction by its producer id."""
    response = {} if answer is None or isinstance(answer, WrittenResponse) else answer
    codes = _marker_errors(response)
    for marker in message.markers:
        details = {
            "change": "commit" if marker.transaction_result else "abort",
            "producer_epoch": marker.producer_epoch,
        }
        name = str(marker.producer_id)
        yield Change("transaction of producer", name, codes.get(marker.producer_id), details)


def _marker_errors(response: Mapping[str, object]) -> dict[int, ErrorCode]:
    """The first error of each marker's partitions, or none."""
    found: dict[int, ErrorCode] = {}
    for row in cast(Iterable[Mapping[str, object]], response.get("markers", ())):
        codes = [
            cast(ErrorCode, part["error_code"])
            for topic in cast(Iterable[Mapping[str, object]], row["topics"])
            for part in cast(Iterable[Mapping[str, object]], topic["partitions"])
        ]
        worst = next((code for code in codes if code), ErrorCode.none)
        found[cast(int, row["producer_id"])] = worst
    return found


def altered_quotas(message: AlterClientQuotasRequest, answer: Answer) -> Iterable[Change]:
    """A change for each entry. Its name has the parts of the entity, as in `user=ann`."""
    rows = () if answer is None else cast(AlterClientQuotasResponse, answer)["entries"]
    errors = {
        _entity((part["entity_type"], part["entity_name"]) for part in row["entity"]): row[
            "error_code"
        ]
        for row in rows
    }
    for entry in () if message.validate_only else message.entries:
        entity = _entity((part.entity_type, part.entity_name) for part in entry.entity)
        values = {cut(op.key): None if op.remove else op.value for op in _first(entry.ops)}
        details: dict[str, object] = {"quotas": values} | _left_out(entry.ops)
        yield Change("client quotas", entity, errors.get(entity), details)


def _entity(parts: Iterable[tuple[str, str | None]]) -> str:
    return ", ".join(
        sorted(f"{cut(kind)}={'<default>' if name is None else cut(name)}" for kind, name in parts)
    )


def elected_leaders(message: ElectLeadersRequest, answer: Answer) -> Iterable[Change]:
    """Audit an election. No leader is ever elected: each partition has an error."""
    rows = () if answer is None else cast(ElectLeadersResponse, answer)["replica_election_results"]
    for topic in rows:
        for row in topic["partition_result"]:
            name = f"{topic['topic']}-{row['partition_id']}"
            yield Change("partition", name, row["error_code"], {"change": "elect a leader"})


def reassigned_partitions(
    message: AlterPartitionReassignmentsRequest, answer: Answer
) -> Iterable[Change]:
    rows = () if answer is None else cast(AlterPartitionReassignmentsResponse, answer)["responses"]
    for topic in rows:
        for row in topic["partitions"]:
            name = f"{topic['name']}-{row['partition_index']}"
            yield Change("partition", name, row["error_code"], {"change": "reassign"})


def updated_features(message: UpdateFeaturesRequest, answer: Answer) -> Iterable[Change]:
    """Audit the requested levels, refused or accepted. No level changes."""
    if answer is None or message.validate_only:
        return
    error = cast(UpdateFeaturesResponse, answer)["error_code"]
    for update in message.feature_updates:
        yield Change("feature", update.feature, error, {"level": update.max_version_level})


def _left_out(items: Sized) -> dict[str, object]:
    """Return the number of items that `_first` does not show."""
    return {"left_out": len(items) - DETAILS_MAX} if len(items) > DETAILS_MAX else {}


def _first(items: Iterable[T]) -> Iterator[T]:
    return islice(items, DETAILS_MAX)
