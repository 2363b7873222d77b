"""Changes of consumer groups: to reset the offsets of a group, and to delete a group."""

from collections.abc import Sequence
from datetime import UTC, datetime
from urllib.parse import urlencode

from bucketlog.client.groups import MemberInfo, Position, Reset
from bucketlog.console.changes import (
    ChangePlan,
    ChangeScene,
    FieldKind,
    FormField,
    LogChange,
    PlanRow,
    optional_name,
    required,
    required_name,
)
from bucketlog.console.figures_text import count_text
from bucketlog.log_format.errors import ConfigurationError

GROUP = FormField("group", "Group")
TOPIC = FormField("topic", "Topic", hint="Empty: all topics in which the group has offsets.")
PLACES = ("earliest", "latest", "offset", "time")
TO = FormField("to", "New position", FieldKind.CHOICE, choices=PLACES)
OFFSET = FormField("offset", "Offset", FieldKind.NUMBER, "Only for the new position offset.")
TIME = FormField("time", "Time", hint="Only for the new position time, as 2026-01-31T12:00 (UTC).")
MEMBERS_NAMED = 3


def group_page(name: str) -> str:
    return f"group?{urlencode({'name': name})}"


def reset_group(scene: ChangeScene) -> ChangePlan:
    name, topic = required_name(scene.values, GROUP), optional_name(scene.values, TOPIC)
    position, word = _position(scene)
    groups = scene.log.groups
    plan = groups.reset(name, topic or None, to=position, dry_run=True)
    members = groups.members(name)
    moved = [row for row in plan if row.before != row.after]
    again, skipped = _moved_records(moved)
    words = [f"--topic={topic}"] if topic else []  # the name may begin with a dash

    def apply() -> str:
        groups.apply(name, moved)
        return f"The offsets of the group {name} are reset in {count_text(len(moved))} partitions."

    return ChangePlan(
        title=f"Reset the offsets of the group {name}",
        button="Reset the offsets",
        rows=[
            PlanRow(
                f"{row.topic} [{row.partition}]",
                "" if row.before is None else str(row.before),
                str(row.after),
            )
            for row in moved
        ],
        command=scene.command("group", "reset", "--to", word, *words, name=name),
        apply=apply,
        page=group_page(name),
        warnings=[
            *([f"The group will read up to {count_text(again)} records again."] if again else []),
            *([f"The group will skip up to {count_text(skipped)} records."] if skipped else []),
        ],
        obstacle=_obstacle(members) or ("" if moved else "No offset of the group would change."),
    )


def _position(scene: ChangeScene) -> tuple[Position, str]:
    """The new position, for the SDK and for the command line."""
    place = scene.values.choice(TO.name, PLACES)
    if place == "offset":
        required(scene.values, OFFSET)
        offset = scene.values.number(OFFSET.name, 0)
        return offset, str(offset)
    if place == "time":
        time_ms = scene.values.time_ms(TIME.name)
        if time_ms is None:
            raise ConfigurationError(f"{TIME.label} is empty", remedy="fill in this field")
        if time_ms < 0:
            raise ConfigurationError(f"{TIME.label} is before 1970", remedy="use earliest")
        when = datetime.fromtimestamp(time_ms / 1000, UTC)
        return when, when.isoformat()
    return ("earliest", "start") if place == "earliest" else ("latest", "end")


def _moved_records(rows: Sequence[Reset]) -> tuple[int, int]:
    """The number of offsets that the group reads again, and the number that the group skips."""
    steps = [row.after - row.before for row in rows if row.before is not None]
    return -sum(step for step in steps if step < 0), sum(step for step in steps if step > 0)


def _obstacle(members: Sequence[MemberInfo]) -> str:
    if not members:
        return ""
    named = ", ".join(f"{each.client_id} at {each.host}" for each in members[:MEMBERS_NAMED])
    more = f", and {len(members) - MEMBERS_NAMED} others" if len(members) > MEMBERS_NAMED else ""
    return f"The group has members: {named}{more}. Stop them first."


def delete_group(scene: ChangeScene) -> ChangePlan:
    name = required_name(scene.values, GROUP)
    groups = scene.log.groups
    details = groups.describe(name)
    committed = [row for row in details.positions if row.committed is not None]

    def apply() -> str:
        groups.delete(name)
        return f"The group {name} is deleted."

    return ChangePlan(
        title=f"Delete the group {name}",
        button="Delete the group and its offsets",
        rows=[
            PlanRow(f"{row.topic} [{row.partition}]", str(row.committed), "") for row in committed
        ],
        command=scene.command("group", "delete", name=name),
        apply=apply,
        page="groups",
        warnings=["The committed offsets cannot be restored."],
        obstacle=_obstacle(details.members),
    )


GROUP_CHANGES = (
    LogChange(
        "reset-group", "Reset a group's offsets", (GROUP, TOPIC, TO, OFFSET, TIME), reset_group
    ),
    LogChange("delete-group", "Delete a group", (GROUP,), delete_group),
)
