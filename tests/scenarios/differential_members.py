"""Random steps of members of groups, classic and of the consumer protocol, from a seed. Pure.

Invariant: whoever joins or leaves is remembered here, so that a rebalance has the requests of all
members. A classic member asks for its id first: the broker would wait for a member that only asks.
"""

from collections.abc import Callable
from random import Random
from typing import Any

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.models.groups import subscription
from tests.scenarios.differential_model import Generation, MemberEpoch, MemberId, Step

CLASSIC, CONSUMER = "@j0", "@n0"
JOINED_GROUPS = (CLASSIC, CONSUMER)
ALIASES = ("m0", "m1")
MEMBERS = ("@c0", "@c1")
SESSION_MS, REBALANCE_MS = 60_000, 20_000
ASSIGNED = (b"\0\0\0\0\0\0", b"a", b"")


class Members:
    """The members that one sequence believes to have."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._joined: list[str] = []
        self._consumers: list[str] = []
        self._join_version = random.randint(5, 9)
        self._protocols = random.choice((("range",), ("range", "sticky"), ("sticky", "range")))

    def steps(self) -> list[Step]:
        return self._random.choice(self._kinds())()

    def end(self) -> list[Step]:
        """All leave: a group with members cannot be deleted."""
        classic = [self._leaving(alias) for alias in self._joined]
        return [*classic, *(self._heartbeat_of(each, -1) for each in self._consumers)]

    def _kinds(self) -> tuple[Callable[[], list[Step]], ...]:
        return (
            *(self._join, self._join, self._sync, self._sync, self._beat, self._commit),
            *(self._leave, self._describe, self._meet, self._meet, self._meet, self._report),
            *(self._consumer_commit, self._consumer_offsets, self._part, self._consumer_describe),
        )

    def _join(self) -> list[Step]:
        random = self._random
        alias = random.choice(ALIASES)
        others = tuple(self._joining(each) for each in self._joined if each != alias)
        steps = [self._joining(alias)._replace(others=others)]
        if alias not in self._joined:
            self._joined.append(alias)
            steps = [self._joining(alias, has_id=False), *steps]
        return steps

    def _joining(self, alias: str, has_id: bool = True) -> Step:
        values: dict[str, Any] = {
            "group_id": CLASSIC,
            "session_timeout": SESSION_MS,
            "rebalance_timeout": REBALANCE_MS,
            "member_id": MemberId(CLASSIC, alias) if has_id else "",
            "group_instance_id": None,
            "protocol_type": "consumer",
            "protocols": [
                {"name": name, "metadata": subscription("t")} for name in self._protocols
            ],
        }
        if self._join_version >= 8:
            values["reason"] = None
        return Step(ApiKey.JOIN_GROUP, self._join_version, values, alias)

    def _sync(self) -> list[Step]:
        """All members, in any order: followers wait for the leader, which is the oldest."""
        version = self._random.randint(3, 5)
        rows = [
            {"member_id": MemberId(CLASSIC, alias), "assignment": self._random.choice(ASSIGNED)}
            for alias in self._joined
        ]
        steps = [self._syncing(version, alias, []) for alias in self._joined or ALIASES[:1]]
        steps[0] = self._syncing(version, steps[0].by, rows)
        self._random.shuffle(steps)
        return [steps[0]._replace(others=tuple(steps[1:]))]

    def _syncing(self, version: int, alias: str, rows: list[dict[str, Any]]) -> Step:
        values: dict[str, Any] = {
            "group_id": CLASSIC,
            "generation_id": Generation(CLASSIC),
            "member_id": MemberId(CLASSIC, alias),
            "group_instance_id": None,
            "assignments": rows,
        }
        if version >= 5:
            values |= {"protocol_type": "consumer", "protocol_name": self._protocols[0]}
        return Step(ApiKey.SYNC_GROUP, version, values, alias)

    def _beat(self) -> list[Step]:
        values = {
            "group_id": CLASSIC,
            "generation_id": self._random.choice((Generation(CLASSIC), Generation(CLASSIC), 77)),
            "member_id": MemberId(CLASSIC, self._random.choice(ALIASES)),
            "group_instance_id": None,
        }
        return [Step(ApiKey.HEARTBEAT, self._random.choice((3, 4)), values)]

    def _commit(self) -> list[Step]:
        alias = self._random.choice(ALIASES)
        generation = self._random.choice((Generation(CLASSIC), Generation(CLASSIC), -1, 77))
        return [self._committing(CLASSIC, MemberId(CLASSIC, alias), generation)]

    def _committing(self, group: str, member: object, generation: object) -> Step:
        row = {
            "partition_index": 0,
            "committed_offset": self._random.choice((0, 3)),
            "committed_leader_epoch": -1,
            "committed_metadata": "",
        }
        values = {
            "group_id": group,
            "generation_id_or_member_epoch": generation,
            "member_id": member,
            "group_instance_id": None,
            "topics": [{"name": "@t0", "partitions": [row]}],
        }
        return Step(ApiKey.OFFSET_COMMIT, self._random.choice((8, 9)), values)

    def _leave(self) -> list[Step]:
        alias = self._random.choice(ALIASES)
        if alias in self._joined:
            self._joined.remove(alias)
        return [self._leaving(alias)]

    def _leaving(self, alias: str) -> Step:
        version = self._random.randint(3, 5)
        row: dict[str, Any] = {"member_id": MemberId(CLASSIC, alias), "group_instance_id": None}
        if version >= 5:
            row["reason"] = "done"
        return Step(ApiKey.LEAVE_GROUP, version, {"group_id": CLASSIC, "members": [row]})

    def _describe(self) -> list[Step]:
        group = self._random.choice(JOINED_GROUPS)
        values = {"groups": [group], "include_authorized_operations": False}
        return [Step(ApiKey.DESCRIBE_GROUPS, self._random.choice((4, 5, 6)), values)]

    def _meet(self) -> list[Step]:
        """A member of the consumer protocol joins."""
        member = self._random.choice(MEMBERS)
        if member not in self._consumers:
            self._consumers.append(member)
        topics = self._random.choice((["@t0"], ["@t0"], ["@t0", "@t1"], ["@missing"], []))
        values = {
            "rebalance_timeout": self._random.choice((REBALANCE_MS, REBALANCE_MS, -1)),
            "subscribed_topic_names": topics,
            "topic_partitions": [],
            "server_assignor": self._random.choice((None, None, "uniform", "range", "none")),
        }
        return [self._heartbeat_of(member, 0, **values)]

    def _report(self) -> list[Step]:
        member = self._random.choice(MEMBERS)
        epoch = MemberEpoch(CONSUMER, member)
        return [self._heartbeat_of(member, self._random.choice((epoch, epoch, epoch, 99, -3)))]

    def _part(self) -> list[Step]:
        member = self._random.choice(MEMBERS)
        if member in self._consumers:
            self._consumers.remove(member)
        return [self._heartbeat_of(member, -1)]

    def _heartbeat_of(self, member: str, epoch: object, **values: Any) -> Step:
        ours = {
            "group_id": CONSUMER,
            "member_id": member,
            "member_epoch": epoch,
            "topic_partitions": None,
        }
        return Step(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, ours | values)

    def _consumer_commit(self) -> list[Step]:
        member = self._random.choice(MEMBERS)
        epoch = MemberEpoch(CONSUMER, member)
        return [self._committing(CONSUMER, member, self._random.choice((epoch, epoch, 99, -1)))]

    def _consumer_offsets(self) -> list[Step]:
        member = self._random.choice((*MEMBERS, None))
        row = {
            "group_id": CONSUMER,
            "member_id": member,
            "member_epoch": -1 if member is None else MemberEpoch(CONSUMER, member),
            "topics": [{"name": "@t0", "partition_indexes": [0]}],
        }
        return [Step(ApiKey.OFFSET_FETCH, 9, {"groups": [row], "require_stable": False})]

    def _consumer_describe(self) -> list[Step]:
        group = self._random.choice((CONSUMER, CONSUMER, CLASSIC, "@missing"))
        values = {"group_ids": [group], "include_authorized_operations": False}
        return [Step(ApiKey.CONSUMER_GROUP_DESCRIBE, 1, values)]
