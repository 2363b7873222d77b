"""DescribeClientQuotas and AlterClientQuotas.

Invariant: a change is answered once this broker's view shows it. Source: KIP-546; Kafka's
ClientQuotaControlManager and ClientQuotasImage. An entity with one invalid value is not changed.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from kio.schema.errors import ErrorCode

from bucketlog.log_format.model import WallClock
from bucketlog.log_format.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntryData,
    OpData,
)
from bucketlog.log_format.wire.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from bucketlog.metadata.client_quotas import ClientQuotas
from bucketlog.metadata.quota_entities import (
    CLIENT_ID,
    CLIENT_KEYS,
    DEFAULT,
    IP,
    IP_KEYS,
    USER,
    QuotaChange,
    QuotaEntity,
    canonical_ip,
    entity_of,
    problem_of_value,
)
from bucketlog.metadata.security_facts import ClientQuotasAltered
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.authorization.needs import CLUSTER_NOT_AUTHORIZED
from bucketlog.stateless_broker.handlers.security_changes import DONE, Refusal, SecurityChanges
from bucketlog.stateless_broker.network.apis import Request
from bucketlog.stateless_broker.network.turns import Slices, Turns

ENTITIES_A_UNIT = 20
EXACT, OF_DEFAULT, SPECIFIED = 0, 1, 2
"""The match types of a filter."""
BEHIND = Refusal(
    ErrorCode.request_timed_out,
    "This broker cannot tell whether it knows all quotas: try again.",
)


_Named = tuple[tuple[str, str | None], ...]
"""The parts of an entity, as the request names them."""


class QuotaLimits(NamedTuple):
    entities_max: int
    name_bytes_max: int


class ClientQuotasHandler:
    """`catch_up` waits until the view shows all that is visible now."""

    def __init__(
        self,
        *,
        view: View,
        changes: SecurityChanges,
        limits: QuotaLimits,
        catch_up: Callable[[], Awaitable[bool]],
        now_ms: WallClock,
        turns: Turns,
    ) -> None:
        self._view = view
        self._changes = changes
        self._limits = limits
        self._catch_up = catch_up
        self._now_ms = now_ms
        self._turns = turns

    async def describe(
        self, request: Request, message: DescribeClientQuotasRequest
    ) -> DescribeClientQuotasResponse:
        refusal = _problem_of_filter(message.components)
        if refusal is not None:
            return _not_described(refusal)
        if not await self._catch_up():
            return _not_described(BEHIND)
        found = matching(self._view.client_quotas, message.components, strict=message.strict)
        await Slices(self._turns).spend(1 + len(self._view.client_quotas) // ENTITIES_A_UNIT)
        return {
            "error_code": ErrorCode.none,
            "error_message": "",
            "entries": [
                {
                    "entity": [
                        {"entity_type": kind, "entity_name": name or None}
                        for kind, name in entity.parts()
                    ],
                    "values": [{"key": key, "value": value} for key, value in values.items()],
                }
                for entity, values in found.items()
            ],
        }

    async def alter(
        self, request: Request, message: AlterClientQuotasRequest
    ) -> AlterClientQuotasResponse:
        """Make the changes of all valid entries of the request at once, or none. As in Kafka, the
        response has one row for each entity. Of entries for the same entity, only the first one is
        applied, and the row says that the others are not."""
        is_current, slices = await self._catch_up(), Slices(self._turns)
        changes: dict[QuotaEntity, list[QuotaChange]] = {}
        outcomes: dict[_Named, Refusal] = {}
        for entry in message.entries:
            named = _named(entry)
            checked = self._checked(entry, changes)
            if isinstance(checked, QuotaEntity):
                changes[checked] = list(self._changed(checked, entry.ops, is_current=is_current))
                outcomes[named] = DONE
            else:
                outcomes[named] = Refusal(ErrorCode.invalid_request, checked)
            await slices.spend(1)
        outcome = self._too_many(changes)
        rows = tuple(change for each in changes.values() for change in each)
        if outcome is None and rows and not message.validate_only:
            by = request.connection.principal
            outcome = await self._changes.commit(
                ClientQuotasAltered(changes=rows, by=by, at_ms=self._now_ms())
            )
        return _altered(
            {named: outcome or DONE if each is DONE else each for named, each in outcomes.items()}
        )

    def _checked(
        self, entry: EntryData, changes: dict[QuotaEntity, list[QuotaChange]]
    ) -> QuotaEntity | str:
        """The entity, or why it cannot be changed so."""
        limit = self._limits.name_bytes_max
        if any(len((each.entity_name or "").encode()) > limit for each in entry.entity):
            return (
                f"A name of the entity has more than {limit} bytes "
                "(BUCKETLOG_CLIENT_QUOTA_NAME_BYTES_MAX)"
            )
        parts = [(each.entity_type, each.entity_name) for each in entry.entity]
        entity = entity_of(parts)
        if isinstance(entity, str):
            return entity
        keys = [op.key for op in entry.ops]
        if entity in changes or len(keys) != len(set(keys)):
            named = ", ".join(f"{kind}={'null' if n is None else n}" for kind, n in parts)
            return f"Ignoring duplicate entity ClientQuotaEntity(entries={{{named}}})"
        for op in entry.ops:
            problem = None if op.remove else problem_of_value(entity, op.key, op.value)
            if problem is not None:
                return problem
        return entity

    def _changed(
        self, entity: QuotaEntity, ops: Sequence[OpData], *, is_current: bool
    ) -> Iterator[QuotaChange]:
        """Return the changes that the operations make. Removing a quota that does not exist is
        allowed, as in Kafka. It has no effect, whatever the key."""
        known = self._view.client_quotas.by_entity.get(entity, {})
        for op in ops:
            value = None if op.remove else op.value
            may_be_there = op.key in known or (not is_current and op.key in CLIENT_KEYS | IP_KEYS)
            if value is None and not may_be_there:
                continue
            if value is None or not is_current or known.get(op.key) != value:
                yield QuotaChange(*entity, op.key, value)

    def _too_many(self, changes: dict[QuotaEntity, list[QuotaChange]]) -> Refusal | None:
        known, limit = self._view.client_quotas.by_entity, self._limits.entities_max
        added = [
            entity
            for entity, rows in changes.items()
            if entity not in known and any(row.value is not None for row in rows)
        ]
        if not added or len(known) + len(added) <= limit:
            return None
        text = (
            f"The cluster may have quotas of {limit} entities (BUCKETLOG_CLIENT_QUOTA_ENTITIES_MAX)"
        )
        return Refusal(ErrorCode.policy_violation, text)


def matching(
    quotas: ClientQuotas, wanted: Sequence[ComponentData], *, strict: bool
) -> dict[QuotaEntity, dict[str, float]]:
    """A strict filter matches only entities with no other part than those it names."""
    asked: dict[str, str | None] = {}
    for each in wanted:
        name = DEFAULT if each.match is None else each.match
        if each.entity_type == IP:
            name = canonical_ip(name) or name
        asked[each.entity_type] = None if each.match_type == SPECIFIED else name
    found = {}
    for entity, values in quotas.by_entity.items():
        parts = dict(entity.parts())
        if strict and parts.keys() != asked.keys():
            continue
        if all(kind in parts and name in (None, parts[kind]) for kind, name in asked.items()):
            found[entity] = dict(values)
    return found


def _problem_of_filter(wanted: Sequence[ComponentData]) -> Refusal | None:
    invalid, seen = ErrorCode.invalid_request, set[str]()
    for each in wanted:
        kind = each.entity_type
        if not kind:
            return Refusal(invalid, "Invalid empty entity type.")
        if kind in seen:
            text = f"Entity type {kind} cannot appear more than once in the filter."
            return Refusal(invalid, text)
        if kind not in (USER, CLIENT_ID, IP):
            return Refusal(ErrorCode.unsupported_version, f"Unsupported entity type {kind}")
        if each.match_type not in (EXACT, OF_DEFAULT, SPECIFIED):
            return Refusal(invalid, f"Unknown match type {each.match_type}")
        if each.match_type == EXACT and each.match is None:
            text = "Request specified MATCH_TYPE_EXACT, but set match string to null."
            return Refusal(invalid, text)
        if each.match_type != EXACT and each.match is not None:
            name = "DEFAULT" if each.match_type == OF_DEFAULT else "SPECIFIED"
            text = f"Request specified MATCH_TYPE_{name}, but also specified a match string."
            return Refusal(invalid, text)
        seen.add(kind)
    if IP in seen and len(seen) > 1:
        text = (
            "Invalid entity filter component combination. IP filter component should not be used "
            "with user or clientId filter component."
        )
        return Refusal(invalid, text)
    return None


def _not_described(refusal: Refusal) -> DescribeClientQuotasResponse:
    return {"error_code": refusal.error, "error_message": refusal.message, "entries": None}


def _named(entry: EntryData) -> _Named:
    return tuple({each.entity_type: each.entity_name for each in entry.entity}.items())


def _altered(outcomes: Mapping[_Named, Refusal]) -> AlterClientQuotasResponse:
    return {
        "entries": [
            {
                "error_code": outcome.error,
                "error_message": outcome.message,
                "entity": [{"entity_type": kind, "entity_name": name} for kind, name in named],
            }
            for named, outcome in outcomes.items()
        ]
    }


def deny_describe_quotas(message: DescribeClientQuotasRequest) -> DescribeClientQuotasResponse:
    return _not_described(Refusal(ErrorCode.cluster_authorization_failed, CLUSTER_NOT_AUTHORIZED))


def deny_alter_quotas(message: AlterClientQuotasRequest) -> AlterClientQuotasResponse:
    denied = Refusal(ErrorCode.cluster_authorization_failed, CLUSTER_NOT_AUTHORIZED)
    return _altered({_named(entry): denied for entry in message.entries})
