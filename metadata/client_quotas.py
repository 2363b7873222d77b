"""Client quotas in the fold. Pure.

Invariant: an entity without quotas is not here. Changes of different keys by two administrators do
not undo one another.
"""

from collections.abc import Iterable
from typing import NamedTuple

from bucketlog.metadata.quota_entities import (
    DEFAULT,
    QuotaChange,
    QuotaEntity,
    entities_by_precedence,
)
from bucketlog.metadata.security_facts import ClientQuotasAltered


class QuotaName(NamedTuple):
    entity: QuotaEntity
    key: str


class Quota(NamedTuple):
    """A limit, and the entity that has it."""

    entity: QuotaEntity
    limit: float


class ClientQuotas:
    """All quotas of the log. `version` grows with each change."""

    def __init__(self) -> None:
        self.by_entity: dict[QuotaEntity, dict[str, float]] = {}
        self.version = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClientQuotas) and self.by_entity == other.by_entity

    __hash__ = None  # type: ignore[assignment]  # values change

    def __len__(self) -> int:
        return len(self.by_entity)

    def apply(self, fact: ClientQuotasAltered) -> None:
        for change in fact.changes:
            self.put(change)

    def put(self, change: QuotaChange) -> None:
        self.version += 1
        entity = change.entity
        values = self.by_entity.setdefault(entity, {})
        if change.value is None:
            values.pop(change.key, None)
        else:
            values[change.key] = change.value
        if not values:
            del self.by_entity[entity]

    def rows(self) -> dict[QuotaName, float]:
        return {
            QuotaName(entity, key): value
            for entity, values in self.by_entity.items()
            for key, value in values.items()
        }

    def of_client(self, key: str, user: str, client_id: str) -> Quota | None:
        """The quota that applies to a client, by Kafka's precedence of entities."""
        return self._first(key, entities_by_precedence(user, client_id))

    def of_ip(self, key: str, ip: str) -> Quota | None:
        return self._first(key, (QuotaEntity(ip=ip), QuotaEntity(ip=DEFAULT)))

    def _first(self, key: str, entities: Iterable[QuotaEntity]) -> Quota | None:
        if not self.by_entity:
            return None
        for entity in entities:
            limit = self.by_entity.get(entity, {}).get(key)
            if limit is not None:
                return Quota(entity, limit)
        return None
