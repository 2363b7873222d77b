"""Administration of consumer groups: list, describe, reset, delete.

A reset moves what a group has committed, and only while it has no members, because those would
not notice. It never leaves the offsets that a partition has.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias

from confluent_kafka import ConsumerGroupState, ConsumerGroupTopicPartitions, KafkaError
from confluent_kafka import TopicPartition as KafkaPartition

from bucketlog.client.admin import EARLIEST, LATEST, Admin, at_time
from bucketlog.client.kafka_errors import log_error
from bucketlog.client.topic import Topic
from bucketlog.client.topics import Topics, name_of
from bucketlog.log_format.errors import ConfigurationError, LogError

Position: TypeAlias = Literal["earliest", "latest"] | datetime | int | Mapping[int, int]
"""An end, the first record at or after a time, an offset, or offsets by partition."""

_STATES = {
    ConsumerGroupState.PREPARING_REBALANCING: "PreparingRebalance",
    ConsumerGroupState.COMPLETING_REBALANCING: "CompletingRebalance",
    ConsumerGroupState.STABLE: "Stable",
    ConsumerGroupState.EMPTY: "Empty",
    ConsumerGroupState.DEAD: "Dead",
}


@dataclass(frozen=True, slots=True)
class GroupInfo:
    """`state` is Kafka's word: Stable, Empty, PreparingRebalance, CompletingRebalance."""

    group: str
    state: str


@dataclass(frozen=True, slots=True)
class MemberInfo:
    """`partitions` are the topics and partitions that it was assigned."""

    member_id: str
    client_id: str
    host: str
    instance_id: str | None
    partitions: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class GroupPosition:
    """`committed` is the next offset to read, and `lag` how many records wait between it and
    `latest`; both are None where nothing is committed. `member_id`: who reads it now."""

    topic: str
    partition: int
    committed: int | None
    latest: int
    lag: int | None
    member_id: str | None


@dataclass(frozen=True, slots=True)
class GroupDetails:
    """`assignor` is empty without members; `coordinator` is a broker's id and address."""

    group: str
    state: str
    assignor: str
    coordinator: str
    members: tuple[MemberInfo, ...]
    positions: tuple[GroupPosition, ...]

    @property
    def lag(self) -> int | None:
        """The sum over the partitions with a committed offset; None where none has one."""
        known = [position.lag for position in self.positions if position.lag is not None]
        return sum(known) if known else None


@dataclass(frozen=True, slots=True)
class Reset:
    """What becomes of one partition's committed offset; `before` None: there was none."""

    topic: str
    partition: int
    before: int | None
    after: int


class Groups:
    """`log.groups`. Raises `LogError`, GROUP_ID_NOT_FOUND where there is no such group."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._topics = Topics(admin)

    def list(self) -> list[GroupInfo]:
        """All groups, by name."""
        future = self._admin.client.list_consumer_groups(request_timeout=self._admin.timeout_s)
        found = self._admin.wait(future, "listing groups")
        for error in found.errors:
            raise log_error(error.args[0], "listing groups")
        rows = [GroupInfo(each.group_id, _state(each.state)) for each in found.valid]
        return sorted(rows, key=lambda row: row.group)

    def describe(self, group: str) -> GroupDetails:
        """Members and positions: of every partition of the topics that it has offsets or readers
        in."""
        doing = f"describing group {group!r}"
        found = self._description(group, doing)
        members = tuple(
            MemberInfo(
                each.member_id,
                each.client_id,
                each.host.removeprefix("/"),  # Java's way to write an address without a name
                each.group_instance_id,
                tuple(sorted((tp.topic, tp.partition) for tp in each.assignment.topic_partitions)),
            )
            for each in found.members
        )
        committed = self._committed(group, doing)
        if found.state is ConsumerGroupState.DEAD and not committed:
            raise _not_found(doing)
        readers = {spot: member.member_id for member in members for spot in member.partitions}
        return GroupDetails(
            group,
            _state(found.state),
            found.partition_assignor,
            str(found.coordinator).strip(),
            members,
            self._positions(committed, readers, doing),
        )

    def reset(
        self,
        group: str,
        topic: str | Topic[Any, Any] | None = None,
        *,
        to: Position | None = None,
        shift: int | None = None,
        partitions: Iterable[int] | None = None,
        dry_run: bool = False,
    ) -> tuple[Reset, ...]:
        """Move the group's committed offsets, in `topic` or in all that it has offsets in.

        `to` is where, or `shift` by how much from what is committed (negative: back). What lies
        outside of a partition's offsets becomes its earliest or latest one. `dry_run` changes
        nothing, and may be asked while the group has members. Returns what was, or would be, done.
        Raises `LogError` NON_EMPTY_GROUP while the group has members, GROUP_ID_NOT_FOUND.
        """
        if to is None and shift is None:
            raise ConfigurationError("a reset needs a target", remedy="give either to or shift")
        if to is not None and shift is not None:
            raise ConfigurationError("a reset has one target", remedy="give to or shift, not both")
        doing = f"resetting group {group!r}"
        found = self._description(group, doing)
        if found.members and not dry_run:
            raise in_use(doing)
        committed = self._committed(group, doing)
        names = sorted({name for name, _ in committed}) if topic is None else [name_of(topic)]
        if not names:
            raise _not_found(doing)
        plan: tuple[Reset, ...] = ()
        for name in names:
            mine = {part: offset for (at, part), offset in committed.items() if at == name}
            named = mine if shift is not None and partitions is None else partitions
            chosen = self._chosen(name, named, to)
            targets = self._targets(name, chosen, mine, to, shift, doing)
            plan = (*plan, *(Reset(name, part, mine.get(part), targets[part]) for part in chosen))
        if not dry_run:
            self._alter(group, plan, doing)
        return plan

    def delete(self, group: str) -> None:
        """Delete a group without members, and all its offsets. Raises `LogError`."""
        futures = self._admin.client.delete_consumer_groups(
            [group], request_timeout=self._admin.timeout_s
        )
        self._admin.wait(futures[group], f"deleting group {group!r}")

    def _description(self, group: str, doing: str) -> Any:
        futures = self._admin.client.describe_consumer_groups(
            [group], request_timeout=self._admin.timeout_s
        )
        return self._admin.wait(futures[group], doing)

    def _committed(self, group: str, doing: str) -> dict[tuple[str, int], int]:
        futures = self._admin.client.list_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(group)],
            require_stable=True,
            request_timeout=self._admin.timeout_s,
        )
        rows = self._admin.wait(futures[group], doing).topic_partitions or ()
        for row in rows:
            if row.error is not None:
                raise log_error(row.error, doing)
        return {(row.topic, row.partition): row.offset for row in rows if row.offset >= 0}

    def _positions(
        self,
        committed: Mapping[tuple[str, int], int],
        readers: Mapping[tuple[str, int], str],
        doing: str,
    ) -> tuple[GroupPosition, ...]:
        positions: list[GroupPosition] = []
        for name in sorted({topic for topic, _ in committed.keys() | readers.keys()}):
            mine = range(self._topics.partition_count(name))
            latest = self._admin.offsets(name, mine, LATEST, doing)
            for part in mine:
                offset = committed.get((name, part))
                lag = None if offset is None else max(0, latest[part] - offset)
                reader = readers.get((name, part))
                positions.append(GroupPosition(name, part, offset, latest[part], lag, reader))
        return tuple(positions)

    def _chosen(
        self, topic: str, wanted: Iterable[int] | None, to: Position | None
    ) -> Sequence[int]:
        count = self._topics.partition_count(topic)
        if wanted is None:
            wanted = to if isinstance(to, Mapping) else range(count)
        chosen = sorted(set(wanted))
        unnamed = set(chosen) - set(to) if isinstance(to, Mapping) else set()
        if missing := [part for part in chosen if not 0 <= part < count]:
            raise ConfigurationError(
                f"topic {topic!r} has no partition {missing[0]}",
                remedy=f"it has partitions 0 to {count - 1}",
            )
        if unnamed:
            raise ConfigurationError(
                f"no offset for partition {min(unnamed)}", remedy="name one for each partition"
            )
        return chosen

    def _targets(
        self,
        topic: str,
        partitions: Sequence[int],
        committed: Mapping[int, int],
        to: Position | None,
        shift: int | None,
        doing: str,
    ) -> dict[int, int]:
        earliest = self._admin.offsets(topic, partitions, EARLIEST, doing)
        latest = self._admin.offsets(topic, partitions, LATEST, doing)
        if shift is not None:
            if fresh := [part for part in partitions if part not in committed]:
                raise ConfigurationError(
                    f"{doing}: {topic}[{fresh[0]}] has no committed offset to shift",
                    remedy="name the partitions that have one, or reset to an offset",
                )
            wanted = {part: committed[part] + shift for part in partitions}
        elif to == "earliest":
            return earliest
        elif to == "latest":
            return latest
        elif isinstance(to, datetime):
            found = self._admin.offsets(topic, partitions, at_time(to), doing)
            wanted = {part: latest[part] if at < 0 else at for part, at in found.items()}
        elif isinstance(to, Mapping):
            wanted = {part: to[part] for part in partitions}
        elif isinstance(to, int):
            wanted = dict.fromkeys(partitions, to)
        else:
            raise ConfigurationError(
                f"{to!r} is no position",
                remedy='"earliest", "latest", a datetime, an offset, or offsets by partition',
            )
        return {part: min(max(at, earliest[part]), latest[part]) for part, at in wanted.items()}

    def _alter(self, group: str, plan: Sequence[Reset], doing: str) -> None:
        rows = [KafkaPartition(row.topic, row.partition, row.after) for row in plan]
        if not rows:
            return
        futures = self._admin.client.alter_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(group, rows)], request_timeout=self._admin.timeout_s
        )
        for row in self._admin.wait(futures[group], doing).topic_partitions or ():
            if row.error is not None:
                raise log_error(row.error, doing)


def _state(state: ConsumerGroupState) -> str:
    return _STATES.get(state, "Unknown")


def in_use(doing: str) -> LogError:
    """The group has members, which forbids it."""
    return log_error(KafkaError(KafkaError.NON_EMPTY_GROUP), doing)


def _not_found(doing: str) -> LogError:
    return log_error(KafkaError(KafkaError.GROUP_ID_NOT_FOUND), doing)
