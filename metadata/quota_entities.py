"""Client quotas as values: entities, keys, and which changes are valid. Pure.

Source: KIP-546, KIP-599, KIP-612; Kafka's ClientQuotaControlManager, QuotaConfig and
ClientQuotaManager.
"""

from collections.abc import Iterator, Sequence
from ipaddress import ip_address
from math import isfinite
from typing import Annotated, NamedTuple

from pydantic import Field

from bucketlog.metadata.host_addresses import canonical_host

DEFAULT = ""
"""The name of an entity for all names without their own quota. Clients cannot name an entity
so: Kafka refuses empty names."""
USER, CLIENT_ID, IP = "user", "client-id", "ip"
PRODUCER_BYTE_RATE = "producer_byte_rate"
CONSUMER_BYTE_RATE = "consumer_byte_rate"
REQUEST_PERCENTAGE = "request_percentage"
CONTROLLER_MUTATION_RATE = "controller_mutation_rate"
CONNECTION_CREATION_RATE = "connection_creation_rate"
CLIENT_KEYS = frozenset(
    {PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, REQUEST_PERCENTAGE, CONTROLLER_MUTATION_RATE}
)
IP_KEYS = frozenset({CONNECTION_CREATION_RATE})
_WHOLE_NUMBERS = {
    PRODUCER_BYTE_RATE: ("a LONG", 2.0**63),
    CONSUMER_BYTE_RATE: ("a LONG", 2.0**63),
    CONNECTION_CREATION_RATE: ("an INT", 2.0**31 - 1),
}
_EPSILON = 1e-6


class QuotaEntity(NamedTuple):
    """Entity that a quota is for. Each part is a name, `DEFAULT`, or None if the entity does not
    have it."""

    user: str | None = None
    client_id: str | None = None
    ip: str | None = None

    def parts(self) -> list[tuple[str, str]]:
        named = ((USER, self.user), (CLIENT_ID, self.client_id), (IP, self.ip))
        return [(kind, name) for kind, name in named if name is not None]


class QuotaChange(NamedTuple):
    """A change of a quota. `value` None removes the quota."""

    user: str | None
    client_id: str | None
    ip: str | None
    key: str
    value: Annotated[float, Field(allow_inf_nan=False)] | None

    @property
    def entity(self) -> QuotaEntity:
        return QuotaEntity(self.user, self.client_id, self.ip)


def entity_of(parts: Sequence[tuple[str, str | None]]) -> QuotaEntity | str:
    """The entity of a request, or why it is invalid. A name of None is the default. If a type is
    named twice, the last name counts, as in Kafka."""
    found: dict[str, str] = {}
    for kind, name in dict(parts).items():
        if kind not in (USER, CLIENT_ID, IP):
            return f"Unhandled client quota entity type: {kind}"
        if name == "":
            return f"Empty {kind} not supported"
        found[kind] = DEFAULT if name is None else name
    if not found:
        return "Invalid empty client quota entity"
    if IP not in found:
        return QuotaEntity(found.get(USER), found.get(CLIENT_ID))
    if len(found) > 1:
        return (
            "Invalid quota entity combination, IP entity shouldnot be combined with User or "
            "ClientId"
        )
    ip = canonical_ip(found[IP])
    if ip is None:
        return f"{found[IP]} is not a valid IP address; host names are not resolved."
    return QuotaEntity(ip=ip)


def canonical_ip(text: str) -> str | None:
    """An address in the notation of `canonical_host`; None if it is not an address. Names of hosts
    are not resolved: brokers could disagree about them."""
    if text == DEFAULT:
        return DEFAULT
    try:
        ip_address(text)
    except ValueError:
        return None
    return canonical_host(text)


def problem_of_value(entity: QuotaEntity, key: str, value: float) -> str | None:
    """Why the entity cannot have this quota."""
    if key not in (CLIENT_KEYS if entity.ip is None else IP_KEYS):
        return f"Invalid configuration key {key}"
    if value <= 0:
        return f"Quota {key} must be greater than 0"
    if key in _WHOLE_NUMBERS:
        kind, limit = _WHOLE_NUMBERS[key]
        if value > limit:
            return f"Proposed value for {key} is too large for {kind}."
        if value % 1.0 > _EPSILON:
            return f"{key} cannot be a fractional value."
    if not isfinite(value):
        return f"{key} must be a finite number."
    return None


def entities_by_precedence(user: str, client_id: str) -> Iterator[QuotaEntity]:
    """The entities whose quotas a client may have; the first that has a quota decides."""
    for each in dict.fromkeys((user, DEFAULT)):
        for client in dict.fromkeys((client_id, DEFAULT)):
            yield QuotaEntity(each, client)
        yield QuotaEntity(each)
    for client in dict.fromkeys((client_id, DEFAULT)):
        yield QuotaEntity(client_id=client)
