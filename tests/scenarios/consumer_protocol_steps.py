"""Requests of the consumer protocol (KIP-848) to one broker, and its answers in comparable form.

Member ids are the test's, and what a broker chooses (topic ids, its own member ids) is replaced.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.models.groups import subscription
from tests.rigs.patience import eventually
from tests.rigs.wire_client import WireClient

TOPIC, PARTITIONS = "consumer-protocol", 4
OTHER = "consumer-protocol-other"
MINUTE_MS = 60_000
ALL = {TOPIC: tuple(range(PARTITIONS))}
JOINS: Mapping[str, Any] = {
    "rebalance_timeout": MINUTE_MS,
    "subscribed_topic_names": (TOPIC,),
    "topic_partitions": (),
}
NO_USER_DATA = b"\xff" * 4
Answer = tuple[Any, ...]


class Steps:
    """Asks one broker; `answers` by the name of the step."""

    def __init__(self, bootstrap: str) -> None:
        self._client = WireClient(bootstrap)
        self.answers: dict[str, Answer] = {}
        self._topic_ids: dict[str, UUID] = {}
        self._told: dict[str, Sequence[Mapping[str, Any]]] = {}
        """The partitions that each member was given last."""

    def __enter__(self) -> "Steps":
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def call(self, key: ApiKey, version: int, **fields: Any) -> Any:
        return self._client.call(key, version, **fields)

    def create_topics(self) -> None:
        rows = [
            {"name": name, "num_partitions": PARTITIONS, "replication_factor": 1}
            | {"assignments": [], "configs": []}
            for name in (TOPIC, OTHER)
        ]
        self.call(ApiKey.CREATE_TOPICS, 7, topics=rows, timeout=20_000, validate_only=False)
        eventually(self._sees_topics, what="the topics are there")

    def _sees_topics(self) -> bool:
        wanted = [{"topic_id": None, "name": name} for name in (TOPIC, OTHER)]
        found = self.call(
            ApiKey.METADATA,
            12,
            topics=wanted,
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=False,
        )
        self._topic_ids = {each.name: each.topic_id for each in found.topics}
        return all(each.error_code is ErrorCode.none for each in found.topics)

    def coordinator(self, group: str) -> None:
        """Wait until the broker coordinates the group."""

        def found() -> bool:
            answer = self.call(ApiKey.FIND_COORDINATOR, 4, key_type=0, coordinator_keys=[group])
            if any(each.error_code is not ErrorCode.none for each in answer.coordinators):
                return False
            return bool(self.describe_classic(group, 5)[0] == ErrorCode.none.name)

        eventually(found, what="a coordinator")

    def heartbeat(
        self, group: str, member: str, epoch: int, *, version: int = 1, **fields: Any
    ) -> Answer:
        if (owned := fields.get("topic_partitions")) and isinstance(owned, Mapping):
            fields["topic_partitions"] = [
                {"topic_id": self._topic_ids[name], "partitions": numbers}
                for name, numbers in owned.items()
            ]
        given = {"topic_partitions": None} | fields
        answer = self.call(
            ApiKey.CONSUMER_GROUP_HEARTBEAT,
            version,
            group_id=group,
            member_id=member,
            member_epoch=epoch,
            **given,
        )
        told = answer.assignment
        count = None
        if told is not None:
            count = sum(len(each.partitions) for each in told.topic_partitions)
            self._told[member] = tuple(
                {"topic_id": each.topic_id, "partitions": each.partitions}
                for each in told.topic_partitions
            )
        interval_ms = round(answer.heartbeat_interval.total_seconds() * 1000)
        is_mine = answer.member_id in (member, None)
        error, epoch = answer.error_code.name, answer.member_epoch
        return error, answer.error_message, is_mine, epoch, interval_ms, count

    def reports(self, group: str, member: str, epoch: int) -> Answer:
        """A heartbeat with the partitions that the member was given last."""
        return self.heartbeat(group, member, epoch, topic_partitions=self._told[member])

    def until_epoch(self, group: str, member: str, epoch: int, wanted: int) -> Answer:
        """The heartbeat by which the member comes to the epoch: targets have an interval."""
        answers: list[Answer] = []

        def comes() -> bool:
            answers.append(self.heartbeat(group, member, answers[-1][3] if answers else epoch))
            return bool(answers[-1][3] == wanted)

        eventually(comes, what=f"epoch {wanted}")
        return answers[-1]

    def commit(
        self, group: str, member: str, epoch: int, version: int = 9, instance: str | None = None
    ) -> str:
        row = {"partition_index": 0, "committed_offset": 0, "committed_leader_epoch": -1}
        answer = self.call(
            ApiKey.OFFSET_COMMIT,
            version,
            group_id=group,
            generation_id_or_member_epoch=epoch,
            member_id=member,
            group_instance_id=instance,
            topics=[{"name": TOPIC, "partitions": [row | {"committed_metadata": ""}]}],
        )
        return str(answer.topics[0].partitions[0].error_code.name)

    def fetch(self, group: str, member: str | None, epoch: int) -> Answer:
        wanted = {"group_id": group, "member_id": member, "member_epoch": epoch}
        topics = [{"name": TOPIC, "partition_indexes": (0,)}]
        answer = self.call(
            ApiKey.OFFSET_FETCH, 9, groups=[wanted | {"topics": topics}], require_stable=True
        )
        found = answer.groups[0]
        return found.error_code.name, len(found.topics)

    def describe(self, group: str) -> Answer:
        answer = self.call(
            ApiKey.CONSUMER_GROUP_DESCRIBE,
            1,
            group_ids=[group],
            include_authorized_operations=False,
        )
        found = answer.groups[0]
        members = sorted(
            (each.member_id, each.member_epoch, each.member_type, each.subscribed_topic_names)
            for each in found.members
            if "-" in each.member_id[:3]
        )
        return (
            found.error_code.name,
            found.error_message,
            found.group_state,
            found.group_epoch,
            found.assignment_epoch,
            found.assignor_name,
            members,
        )

    def describe_classic(self, group: str, version: int) -> Answer:
        answer = self.call(
            ApiKey.DESCRIBE_GROUPS, version, groups=[group], include_authorized_operations=False
        )
        found = answer.groups[0]
        text = getattr(found, "error_message", None)
        return found.error_code.name, text, found.group_state, len(found.members)

    def listed(self, group: str, *kinds: str) -> Answer:
        answer = self.call(ApiKey.LIST_GROUPS, 5, states_filter=[], types_filter=kinds)
        return tuple(
            (each.protocol_type, each.group_state, each.group_type)
            for each in answer.groups
            if each.group_id == group
        )

    def join(
        self, group: str, member: str = "", version: int = 9, instance: str | None = None
    ) -> Any:
        return self.call(
            ApiKey.JOIN_GROUP,
            version,
            group_id=group,
            session_timeout=30_000,
            rebalance_timeout=MINUTE_MS,
            member_id=member,
            group_instance_id=instance,
            protocol_type="consumer",
            protocols=[{"name": "range", "metadata": subscription(TOPIC) + NO_USER_DATA}],
            reason=None,
        )

    def sync(self, group: str, member: str, generation: int) -> Answer:
        answer = self.call(
            ApiKey.SYNC_GROUP,
            5,
            group_id=group,
            generation_id=generation,
            member_id=member,
            group_instance_id=None,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[],
        )
        return answer.error_code.name, len(answer.assignment) > 0

    def classic_heartbeat(self, group: str, member: str, generation: int) -> str:
        answer = self.call(
            ApiKey.HEARTBEAT,
            4,
            group_id=group,
            generation_id=generation,
            member_id=member,
            group_instance_id=None,
        )
        return str(answer.error_code.name)

    def leave(self, group: str, member: str) -> Answer:
        rows = [{"member_id": member, "group_instance_id": None, "reason": None}]
        answer = self.call(ApiKey.LEAVE_GROUP, 5, group_id=group, members=rows)
        return answer.error_code.name, [each.error_code.name for each in answer.members]

    def delete(self, group: str) -> str:
        answer = self.call(ApiKey.DELETE_GROUPS, 2, groups_names=[group])
        return str(answer.results[0].error_code.name)


def invalid_requests(steps: Steps) -> dict[str, Answer]:
    ask = steps.heartbeat
    for group in ("g", "g-0", "nothing"):
        steps.coordinator(group)
    return {
        "no member id": ask("g", "", 0, **JOINS),
        "no member id, version 0": ask("g-0", "", 0, version=0, **JOINS)[:1],
        "no group id": ask("", "m-1", 0, **JOINS),
        "no instance id": ask("g", "m-1", 0, instance_id="", **JOINS),
        "no rack id": ask("g", "m-1", 0, rack_id="", **JOINS),
        "no rebalance timeout": ask("g", "m-1", 0, subscribed_topic_names=(TOPIC,)),
        "no partitions": ask(
            "g", "m-1", 0, rebalance_timeout=MINUTE_MS, subscribed_topic_names=(TOPIC,)
        ),
        "partitions at the start": ask(
            "g", "m-1", 0, **{**JOINS, "topic_partitions": {TOPIC: (0,)}}
        ),
        "no subscription": ask("g", "m-1", 0, rebalance_timeout=MINUTE_MS, topic_partitions=()),
        "an epoch of -3": ask("g", "m-1", -3),
        "left for a while without an instance": ask("g", "m-1", -2),
        "an unknown assignor": ask("g", "m-1", 0, server_assignor="sticky", **JOINS),
        "describe nothing": steps.describe("nothing"),
        "heartbeat to nothing": ask("nothing", "m-1", 3),
        "leave from nothing": ask("nothing", "m-1", -1),
        "fetch of nobody": steps.fetch("nothing", "m-1", 3),
    }


def one_group(steps: Steps) -> dict[str, Answer]:
    """Two members come, one goes: epochs, states and errors."""
    ask, said = steps.heartbeat, dict[str, Any]()
    steps.coordinator("g")
    said["first"] = ask("g", "m-1", 0, **JOINS)
    said["again"] = ask("g", "m-1", 2)
    said["a full request"] = ask("g", "m-1", 2, **{**JOINS, "topic_partitions": ALL})
    said["joins twice"] = ask("g", "m-1", 0, **JOINS)
    said["stable"] = steps.describe("g")
    said["listed"] = steps.listed("g")
    said["listed as classic"] = steps.listed("g", "classic")
    said["described as classic"] = steps.describe_classic("g", 6)
    said["described as classic, version 5"] = steps.describe_classic("g", 5)
    said["greater epoch"] = ask("g", "m-1", 9)

    said["unknown member"] = ask("g", "m-9", 2)
    said["unknown instance"] = ask("g", "m-9", 2, instance_id="i")
    said["commit"] = steps.commit("g", "m-1", 2)
    said["commit of a newer epoch"] = steps.commit("g", "m-1", 7)
    said["commit of an older epoch"] = steps.commit("g", "m-1", 1)
    said["commit by version 8"] = steps.commit("g", "m-1", 2, version=8)
    said["commit of a stranger"] = steps.commit("g", "m-9", 1)
    said["commit of nobody"] = steps.commit("g", "", -1)
    said["fetch"] = steps.fetch("g", "m-1", 2)
    said["fetch of a newer epoch"] = steps.fetch("g", "m-1", 7)
    said["fetch of a stranger"] = steps.fetch("g", "m-9", 1)
    said["fetch of an administrator"] = steps.fetch("g", None, -1)
    said["bad regex"] = ask("g", "m-1", 2, subscribed_topic_regex="(")[:1]
    said["backtracking regex"] = ask("g", "m-1", 2, subscribed_topic_regex=r"(a)\1")[:1]
    said["delete with members"] = steps.delete("g")
    said["leave"] = ask("g", "m-1", -1)
    said["leave twice"] = ask("g", "m-1", -1)
    said["empty"] = steps.describe("g")
    said["commit to the empty group"] = steps.commit("g", "", -1)
    said["delete"] = steps.delete("g")
    said["described after its deletion"] = steps.describe("g")
    return said


def reconciliation(steps: Steps) -> dict[str, Answer]:
    """A second member comes: the first one revokes, and then the second one gets its part."""
    ask, said = steps.heartbeat, dict[str, Any]()
    steps.coordinator("r")
    ask("r", "m-1", 0, **JOINS)
    epoch = ask("r", "m-2", 0, **JOINS)[3]
    said["the second comes"] = steps.until_epoch("r", "m-2", epoch, 3)[:2]
    said["states while it waits"] = steps.describe("r")
    said["the first is to revoke"] = ask("r", "m-1", 2)
    said["it does not say what it has"] = ask("r", "m-1", 2)
    said["it still has all"] = ask("r", "m-1", 2, topic_partitions=ALL)
    said["the second waits"] = ask("r", "m-2", 3)
    said["the first commits meanwhile"] = steps.commit("r", "m-1", 2)
    said["the first has revoked"] = steps.reports("r", "m-1", 2)
    said["the first missed the answer"] = steps.reports("r", "m-1", 2)
    said["the second gets its part"] = ask("r", "m-2", 3)
    said["stable"] = steps.describe("r")
    said["a commit of the epoch before"] = steps.commit("r", "m-1", 2)
    said["a commit of no epoch"] = steps.commit("r", "m-1", 1)
    said["a commit of another's partition"] = steps.commit("r", "m-2", 2)
    said["another subscription"] = ask("r", "m-2", 3, subscribed_topic_names=(OTHER,))[:1]
    said["by LeaveGroup"] = steps.leave("r", "m-2")
    said["fenced by it"] = ask("r", "m-2", 3)
    return said


def static_members(steps: Steps) -> dict[str, Answer]:
    ask, said = steps.heartbeat, dict[str, Any]()
    steps.coordinator("s")
    said["joins"] = ask("s", "m-1", 0, instance_id="i", **JOINS)
    said["another with the instance"] = ask("s", "m-2", 0, instance_id="i", **JOINS)
    said["heartbeat of another"] = ask("s", "m-2", 1, instance_id="i")
    said["leaves for a while"] = ask("s", "m-1", -2, instance_id="i")
    said["while it is away"] = steps.describe("s")
    said["comes back"] = ask("s", "m-2", 0, instance_id="i", **JOINS)
    said["its former self"] = ask("s", "m-1", 1, instance_id="i")
    said["leaves"] = ask("s", "m-2", -1, instance_id="i")
    return said


def both_protocols(steps: Steps) -> dict[str, Answer]:
    """A classic group changes to the consumer protocol and back."""
    ask, said = steps.heartbeat, dict[str, Any]()
    steps.coordinator("b")
    member = steps.join("b").member_id
    joined = steps.join("b", member)
    said["classic joins"] = (joined.error_code.name, joined.generation_id)
    said["a consumer before its sync"] = ask("b", "m-1", 0, **JOINS)[:1]
    said["classic heartbeat"] = steps.classic_heartbeat("b", member, joined.generation_id)
    said["classic sync"] = steps.sync("b", member, joined.generation_id)
    again = steps.join("b", member)
    said["classic joins again"] = (again.error_code.name, again.protocol_name, again.leader)
    said["its sync"] = steps.sync("b", member, again.generation_id)
    said["an older generation"] = steps.sync("b", member, again.generation_id - 1)
    said["two types"] = steps.describe("b")
    said["consumer leaves by LeaveGroup"] = steps.leave("b", "m-9")
    said["consumer leaves"] = ask("b", "m-1", -1)[:1]
    said["classic again"] = steps.listed("b")
    said["consumer group not found"] = steps.describe("b")
    return said


SCRIPTS: Mapping[str, Callable[[Steps], dict[str, Answer]]] = {
    "invalid requests": invalid_requests,
    "one group": one_group,
    "reconciliation": reconciliation,
    "static members": static_members,
    "both protocols": both_protocols,
}


def run_all(bootstrap: str) -> dict[str, Answer]:
    with Steps(bootstrap) as steps:
        steps.create_topics()
        return {
            f"{script}: {step}": answer
            for script, run in SCRIPTS.items()
            for step, answer in run(steps).items()
        }
