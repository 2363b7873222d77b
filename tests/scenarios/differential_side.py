"""One of two brokers that get the same requests, as one sequence sees it.

Invariants: a sequence's names are unique, so that sequences on the same broker do not meet. Each
sender has a connection: a request may wait for another one of the same group.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from uuid import UUID

from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.rigs.patience import let_pass
from tests.rigs.wire_client import WireClient, build_batch
from tests.scenarios.differential_answers import Plain, flattened
from tests.scenarios.differential_model import (
    LOGGED_IN,
    PLAIN,
    Batch,
    Generation,
    MemberEpoch,
    MemberId,
    OwnedBy,
    Reference,
    Step,
    TopicId,
)

RETRIED = {
    ErrorCode.coordinator_load_in_progress,
    ErrorCode.coordinator_not_available,
    ErrorCode.not_coordinator,
    ErrorCode.leader_not_available,
    ErrorCode.not_leader_or_follower,
    ErrorCode.concurrent_transactions,
    ErrorCode.not_enough_replicas,
}
CLOSED = {"": "closed"}
RETRY_S = 15.0
"""The bound of waiting for a broker that is not ready."""
REBALANCE_S = 10.0
UNKNOWN_TOPIC, UNKNOWN_PRODUCER = UUID(int=7), 999_999_999_999


class Addresses(NamedTuple):
    """`login`: where a user logs in by `log_in`."""

    bootstrap: str
    login: str
    log_in: Callable[[WireClient], None]


class Side:
    """One broker, as one sequence sees it."""

    def __init__(self, addresses: Addresses) -> None:
        self._addresses = addresses
        self._clients: dict[str, WireClient] = {}
        self.prefix = ""
        self._known: dict[tuple[type[Any], Reference], Any] = {}
        self._names: dict[str, str] = {}
        """Of members, by the ids that the broker chose."""

    def begin(self, prefix: str) -> None:
        self.prefix, self._known, self._names = prefix, {}, {}

    def close(self) -> None:
        for client in self._clients.values():
            client.close()
        self._clients.clear()

    def ask(self, step: Step) -> Plain:
        self.send(step)
        return self.receive(step)

    def send(self, step: Step) -> None:
        """Its answer is what `receive` waits for."""
        try:
            client = self._client(step.by)
            client.send(step.api, step.version, **self._resolved(step.values))
        except ConnectionError:
            self._drop(step.by)
        if step.others and step.api is ApiKey.JOIN_GROUP:
            self._await_rebalance(step)
        for other in step.others:
            self.send(other)

    def receive(self, step: Step) -> Plain:
        """Asks again while the broker is not ready for the request."""
        merged = {
            f"[{other.by}]{path}": value
            for other in step.others
            for path, value in self.receive(other).items()
        }
        until_s = time.monotonic() + RETRY_S
        while True:
            client = self._clients.get(step.by)
            if client is None:
                return merged | CLOSED
            try:
                answer = client.receive(step.api, step.version)
            except ConnectionError:
                self._drop(step.by)
                return merged | CLOSED
            self._learn(step, answer)
            found = flattened(answer, self._names)
            if not is_not_ready(found) or time.monotonic() > until_s:
                break
            let_pass(0.02)
            self.send(step._replace(others=()))
        return merged | {
            path.replace(self.prefix, "@"): self._without_prefix(value)
            for path, value in found.items()
        }

    def _await_rebalance(self, step: Step) -> None:
        """Until the group knows of the member that joins; the others join after it."""
        other, group = step.others[0], step.values["group_id"]
        values = {
            "group_id": group,
            "generation_id": Generation(group),
            "member_id": MemberId(group, other.by),
            "group_instance_id": None,
        }
        until_s = time.monotonic() + REBALANCE_S
        while time.monotonic() < until_s:
            client = self._clients.get(step.by)
            if client is None or client.has_answer():
                return
            other_client = self._client(other.by)
            beat = other_client.call(ApiKey.HEARTBEAT, 3, **self._resolved(values))
            if beat.error_code is not ErrorCode.none:
                return
            let_pass(0.005)

    def _client(self, by: str) -> WireClient:
        if by not in self._clients:
            if by == LOGGED_IN:
                self._clients[by] = self._logged_in()
            else:
                self._clients[by] = WireClient(self._addresses.bootstrap)
        return self._clients[by]

    def _logged_in(self) -> WireClient:
        client = WireClient(self._addresses.login)
        self._addresses.log_in(client)
        return client

    def _drop(self, by: str) -> None:
        client = self._clients.pop(by, None)
        if client is not None:
            client.close()

    def _learn(self, step: Step, answer: Any) -> None:
        for reference, value in _facts(step, answer):
            self._known[type(reference), reference] = value
            if isinstance(reference, MemberId):
                self._names[value] = reference.alias

    def _value(self, reference: Reference) -> Any:
        if (type(reference), reference) in self._known:
            return self._known[type(reference), reference]
        if isinstance(reference, TopicId):
            found = self._topic_id(reference.topic)
            if found != UNKNOWN_TOPIC:  # Kafka may learn of the topic later
                self._known[type(reference), reference] = found
            return found
        if isinstance(reference, OwnedBy) and reference.part == 0:
            return UNKNOWN_PRODUCER + (reference.owner == PLAIN)
        return "" if isinstance(reference, MemberId) else 0

    def _topic_id(self, topic: str) -> UUID:
        row = {"topic_id": None, "name": topic.replace("@", self.prefix)}
        answer = self._client("").call(
            ApiKey.METADATA,
            12,
            topics=[row],
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=False,
        )
        return answer.topics[0].topic_id or UNKNOWN_TOPIC

    def _resolved(self, value: Any) -> Any:
        match value:
            case OwnedBy() | MemberId() | Generation() | MemberEpoch() | TopicId():
                return self._value(value)
            case Batch():
                return self._batch(value)
            case str():
                return value.replace("@", self.prefix)
            case dict():
                return {name: self._resolved(each) for name, each in value.items()}
            case list():
                return [self._resolved(each) for each in value]
        return value

    def _batch(self, batch: Batch) -> bytes:
        rows = [(b"k" if batch.has_keys else None, text.encode()) for text in batch.values]
        if batch.owner is None:
            return build_batch(rows)
        return build_batch(
            rows,
            producer_id=self._value(OwnedBy(batch.owner, 0)),
            producer_epoch=self._value(OwnedBy(batch.owner, 1)),
            base_sequence=batch.sequence,
            transactional=batch.is_transactional,
        )

    def _without_prefix(self, value: object) -> object:
        return value.replace(self.prefix, "@") if isinstance(value, str) else value


def is_not_ready(found: Plain) -> bool:
    return any(value in RETRIED for path, value in found.items() if path.endswith("error_code"))


def _facts(step: Step, answer: Any) -> Iterator[tuple[Reference, Any]]:
    """What later steps refer to."""
    if step.api is ApiKey.INIT_PRODUCER_ID and answer.error_code is ErrorCode.none:
        owner = str(step.values["transactional_id"])
        yield OwnedBy(owner, 0), answer.producer_id
        yield OwnedBy(owner, 1), answer.producer_epoch
    elif step.api is ApiKey.JOIN_GROUP and step.by:
        group = step.values["group_id"]
        if answer.member_id:
            yield MemberId(group, step.by), answer.member_id
        if answer.error_code is ErrorCode.none:
            yield Generation(group), answer.generation_id
    elif step.api is ApiKey.CONSUMER_GROUP_HEARTBEAT and answer.error_code is ErrorCode.none:
        yield MemberEpoch(step.values["group_id"], step.values["member_id"]), answer.member_epoch
