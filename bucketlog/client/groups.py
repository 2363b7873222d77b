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
from bucketlog.client.names import whole_name
from bucketlog.client.topic import Topic
from bucketlog.client.topics import Topics, name_of
from bucketlog.client.unread import first_unread_ms
from bucketlog.log_format.display import Description, DisplayedObject
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
    """Name and state of a consumer group. Returned by `Groups.list`.

    Attributes:
        group: Name of the group.
        state: Kafka's name of the state: Stable, Empty, PreparingRebalance or CompletingRebalance.

    Examples:
        >>> log.groups.list()
        []
    """

    group: str
    state: str


@dataclass(frozen=True, slots=True)
class MemberInfo:
    """Member of a consumer group. Returned by `Groups.describe`.

    Attributes:
        member_id: Id that the coordinator has given to the member.
        client_id: Name that the member's program has chosen.
        host: Address of the member.
        instance_id: Name of a static member; None for a dynamic member.
        partitions: Names of topics and numbers of partitions that are assigned to the member.

    Examples:
        >>> with log.consumer(orders, group="billing", start="earliest") as consumer:
        ...     records = consumer.poll(timeout_s=30)
        ...     log.groups.describe("billing").members[0].partitions
        (('orders', 0),)
    """

    member_id: str
    client_id: str
    host: str
    instance_id: str | None
    partitions: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class GroupPosition:
    """Position of a group in one partition. Returned by `Groups.describe`.

    Attributes:
        topic: Name of the topic.
        partition: Number of the partition.
        committed: Offset of the next record to read; None if nothing is committed.
        latest: Offset of the next record to be written.
        lag: Number of offsets between both; None if nothing is committed.
        member_id: Id of the member that reads the partition now; None if no member does.

    Examples:
        >>> with log.consumer(orders, group="billing", start="earliest", until="end") as consumer:
        ...     records = list(consumer)
        >>> log.groups.describe("billing").positions
        (GroupPosition(topic='orders', partition=0, committed=2, latest=2, lag=0, member_id=None),)
    """

    topic: str
    partition: int
    committed: int | None
    latest: int
    lag: int | None
    member_id: str | None


@dataclass(frozen=True, slots=True, repr=False)
class GroupDetails(DisplayedObject):
    """State, members and positions of a group. Returned by `Groups.describe`.

    Attributes:
        group: Name of the group.
        state: Kafka's name of the state: Stable, Empty, PreparingRebalance or CompletingRebalance.
        assignor: Name of the members' assignor; empty without members.
        coordinator: Id and address of the broker that coordinates the group.
        members: Members, with their partitions.
        positions: Positions in all partitions of the topics that the group reads or has offsets in.

    Examples:
        >>> with log.consumer(orders, group="billing", start="earliest", until="end") as consumer:
        ...     records = list(consumer)
        >>> log.groups.describe("billing").state
        'Empty'
    """

    group: str
    state: str
    assignor: str
    coordinator: str
    members: tuple[MemberInfo, ...]
    positions: tuple[GroupPosition, ...]

    @property
    def lag(self) -> int | None:
        """Sum of the lags of all partitions with a committed offset; None if there are none."""
        known = [position.lag for position in self.positions if position.lag is not None]
        return sum(known) if known else None

    def _description(self) -> Description:
        return Description(
            {
                "group": self.group,
                "state": self.state,
                "assignor": self.assignor or None,
                "coordinator": self.coordinator,
                "members": len(self.members),
                "lag": self.lag,
            },
            ("topic", "partition", "committed", "latest", "lag", "member"),
            [
                (at.topic, at.partition, at.committed, at.latest, at.lag, at.member_id)
                for at in self.positions
            ],
        )


@dataclass(frozen=True, slots=True)
class Reset:
    """Change of one committed offset. Returned by `Groups.reset`.

    Attributes:
        topic: Name of the topic.
        partition: Number of the partition.
        before: Offset before the change; None if nothing was committed.
        after: Offset after the change.

    Examples:
        >>> with log.consumer(orders, group="billing", start="earliest", until="end") as consumer:
        ...     records = list(consumer)
        >>> log.groups.reset("billing", orders, shift=-1)
        (Reset(topic='orders', partition=0, before=2, after=1),)
    """

    topic: str
    partition: int
    before: int | None
    after: int


@dataclass(frozen=True, slots=True)
class GroupOffset:
    """Committed offset, and what the program keeps with it.

    Args:
        offset: Offset of the next record to read.
        metadata: Text of the program, up to 4,096 bytes by default.

    Examples:
        >>> from bucketlog.client.groups import GroupOffset
        >>> log.groups.commit("billing", orders, {0: GroupOffset(1)})
        >>> log.groups.committed("billing", orders)
        {0: GroupOffset(offset=1, metadata='')}
    """

    offset: int
    metadata: str = ""


class Groups:
    """Administration of consumer groups. Used for `log.groups`.

    Examples:
        >>> with log.consumer(orders, group="billing", start="earliest", until="end") as consumer:
        ...     records = list(consumer)
        >>> log.groups.describe("billing").lag
        0
        >>> log.groups.reset("billing", orders, to="earliest")[0].after
        0
    """

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._topics = Topics(admin)

    def list(self) -> list[GroupInfo]:
        """List all groups, by name.

        Returns:
            Name and state of each group.

        Raises:
            LogError: If a broker does not answer.
        """
        future = self._admin.client.list_consumer_groups(request_timeout=self._admin.timeout_s)
        found = self._admin.wait(future, "listing groups")
        for error in found.errors:
            raise log_error(error.args[0], "listing groups")
        rows = [GroupInfo(each.group_id, _state(each.state)) for each in found.valid]
        return sorted(rows, key=lambda row: row.group)

    def describe(self, group: str) -> GroupDetails:
        """Describe a group: its state, its members, and its positions in partitions.

        Args:
            group: Name of the group.

        Returns:
            State, members and positions.

        Raises:
            LogError: With the code GROUP_ID_NOT_FOUND if the group does not exist.
        """
        doing = f"describing group {group!r}"
        found = self._description(group, doing)
        members = _members(found)
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

    def members(self, group: str) -> tuple[MemberInfo, ...]:
        """List the members of a group.

        Args:
            group: Name of the group.

        Returns:
            The members; none if there is no such group.

        Raises:
            LogError: If brokers do not answer, or if this client may not describe the group.
        """
        return _members(self._description(group, f"listing the members of group {group!r}"))

    def unread_since_ms(self, details: GroupDetails) -> dict[tuple[str, int], int]:
        """Look up the timestamp of the first unread record of each partition.

        Reads one batch of each partition with a lag, and commits nothing.

        Args:
            details: The group, as `describe` returns it.

        Returns:
            The timestamp of the record by topic and partition, in ms since the Unix epoch. A
            partition is missing if this client may not read it, or if its record has no timestamp.

        Raises:
            LogError: If a consumer cannot be opened.
        """
        lagging = {
            (row.topic, row.partition): row.committed
            for row in details.positions
            if row.committed is not None and row.lag
        }
        return first_unread_ms(self._admin.config, lagging, self._admin.timeout_s)

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
        """Move the committed offsets of a group.

        An offset that a partition does not have becomes its earliest or latest offset.

        Args:
            group: Name of the group.
            topic: Name of the topic, or a `Topic`; None means all topics in which the group has
                offsets.
            to: New position: "earliest", "latest", an offset, a mapping of partitions to offsets,
                or a datetime; None if `shift` is given.
            shift: Number of offsets to move forward, or back if it is negative; None if `to` is
                given.
            partitions: Numbers of the partitions; None means all partitions.
            dry_run: Whether nothing is changed. The group may then have members.

        Returns:
            The offset of each partition before and after.

        Raises:
            ConfigurationError: If `to` or `shift` is missing or not valid.
            LogError: With the code NON_EMPTY_GROUP if the group has members, or GROUP_ID_NOT_FOUND
                if it does not exist.
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

    def apply(self, group: str, plan: Iterable[Reset]) -> None:
        """Commit the offsets of a plan that `reset` with `dry_run` returned.

        This method does not look up positions again.

        Args:
            group: Name of the group.
            plan: Rows of the plan.

        Raises:
            LogError: With the code NON_EMPTY_GROUP if the group has members.
        """
        doing = f"resetting group {group!r}"
        if self._description(group, doing).members:
            raise in_use(doing)
        self._alter(group, tuple(plan), doing)

    def committed(self, group: str, topic: str | Topic[Any, Any]) -> dict[int, GroupOffset]:
        """Return the offsets that a group has committed in a topic.

        Args:
            group: Name of the group.
            topic: Name of the topic, or a `Topic`.

        Returns:
            Committed offsets by partition; none if the group does not exist.

        Raises:
            LogError: If the coordinator does not answer.
        """
        name = name_of(topic)
        rows = self._committed_rows(group, f"reading the offsets of group {group!r}")
        return {
            row.partition: GroupOffset(row.offset, row.metadata or "")
            for row in rows
            if row.topic == name
        }

    def commit(
        self, group: str, topic: str | Topic[Any, Any], offsets: Mapping[int, GroupOffset]
    ) -> None:
        """Commit offsets for a group without members that read the topic.

        Args:
            group: Name of the group.
            topic: Name of the topic, or a `Topic`.
            offsets: Offsets by partition.

        Raises:
            LogError: With the code NON_EMPTY_GROUP if members of the group read the topic.
        """
        name = name_of(topic)
        rows = [
            KafkaPartition(name, part, row.offset, row.metadata) for part, row in offsets.items()
        ]
        self._commit_rows(group, rows, f"committing offsets of group {group!r}")

    def delete(self, group: str) -> None:
        """Delete a group without members, with all its offsets.

        Args:
            group: Name of the group.

        Raises:
            LogError: With the code NON_EMPTY_GROUP if the group has members, or GROUP_ID_NOT_FOUND
                if it does not exist.
        """
        futures = self._admin.client.delete_consumer_groups(
            [whole_name(group, "group")], request_timeout=self._admin.timeout_s
        )
        self._admin.wait(futures[group], f"deleting group {group!r}")

    def _description(self, group: str, doing: str) -> Any:
        futures = self._admin.client.describe_consumer_groups(
            [whole_name(group, "group")], request_timeout=self._admin.timeout_s
        )
        return self._admin.wait(futures[group], doing)

    def _committed(self, group: str, doing: str) -> dict[tuple[str, int], int]:
        rows = self._committed_rows(group, doing)
        return {(row.topic, row.partition): row.offset for row in rows}

    def _committed_rows(self, group: str, doing: str) -> Sequence[KafkaPartition]:
        futures = self._admin.client.list_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(whole_name(group, "group"))],
            require_stable=True,
            request_timeout=self._admin.timeout_s,
        )
        rows = self._admin.wait(futures[group], doing).topic_partitions or ()
        for row in rows:
            if row.error is not None:
                raise log_error(row.error, doing)
        return [row for row in rows if row.offset >= 0]

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
        if wanted is None and isinstance(to, Mapping):
            wanted = to
        chosen = self._topics.partitions_of(topic, wanted)
        unnamed = set(chosen) - set(to) if isinstance(to, Mapping) else set()
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
                f"{to!r} is not a position",
                remedy='"earliest", "latest", a datetime, an offset, or offsets by partition',
            )
        return {part: min(max(at, earliest[part]), latest[part]) for part, at in wanted.items()}

    def _alter(self, group: str, plan: Sequence[Reset], doing: str) -> None:
        rows = [KafkaPartition(row.topic, row.partition, row.after) for row in plan]
        self._commit_rows(group, rows, doing)

    def _commit_rows(self, group: str, rows: Sequence[KafkaPartition], doing: str) -> None:
        if not rows:
            return
        futures = self._admin.client.alter_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(whole_name(group, "group"), list(rows))],
            request_timeout=self._admin.timeout_s,
        )
        for row in self._admin.wait(futures[group], doing).topic_partitions or ():
            if row.error is not None:
                raise log_error(row.error, doing)


def _members(found: Any) -> tuple[MemberInfo, ...]:
    return tuple(
        MemberInfo(
            each.member_id,
            each.client_id,
            each.host.removeprefix("/"),  # Java's way to write an address without a name
            each.group_instance_id,
            tuple(sorted((tp.topic, tp.partition) for tp in each.assignment.topic_partitions)),
        )
        for each in found.members
    )


def _state(state: ConsumerGroupState) -> str:
    return _STATES.get(state, "Unknown")


def in_use(doing: str) -> LogError:
    """The group has members, which forbids it."""
    return log_error(KafkaError(KafkaError.NON_EMPTY_GROUP), doing)


def _not_found(doing: str) -> LogError:
    return log_error(KafkaError(KafkaError.GROUP_ID_NOT_FOUND), doing)
