"""Changes of topics: to create, alter and delete a topic, and to add partitions."""

from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

from bucketlog.console.changes import (
    ChangePlan,
    ChangeScene,
    FieldKind,
    FormField,
    LogChange,
    PlanRow,
    assignments,
    lines_of,
    optional_number,
    repeated,
    required,
    required_name,
)
from bucketlog.console.figures_text import count_text, size_text
from bucketlog.console.log_view import LogView
from bucketlog.log_format.errors import ConfigurationError

TOPIC = FormField("topic", "Topic")
PARTITIONS = FormField(
    "partitions", "Partitions", FieldKind.NUMBER, "Empty: the default of the brokers."
)
SETTINGS = FormField(
    "settings",
    "Settings",
    FieldKind.LINES,
    "One NAME=VALUE on each line, as retention.ms=604800000.",
)
UNSET = FormField("unset", "Settings to reset", FieldKind.LINES, "One name on each line.")
TOTAL = FormField("total", "Partitions afterwards", FieldKind.NUMBER)
TYPED_NAME = FormField(
    "typed", "Type the topic's name", hint="Its records cannot be restored.", by_hand=True
)
PARTITIONS_MAX = 1_000_000
DEFAULT = "(default)"


def topic_page(name: str) -> str:
    return f"topic?{urlencode({'name': name})}"


def create_topic(scene: ChangeScene) -> ChangePlan:
    name, settings = required_name(scene.values, TOPIC), assignments(scene.values, SETTINGS)
    partitions = optional_number(scene.values, PARTITIONS, least=1, most=PARTITIONS_MAX)
    topics = scene.log.topics
    topics.create(name, partitions=partitions, configs=settings, dry_run=True)
    words = [] if partitions is None else ["--partitions", str(partitions)]

    def apply() -> str:
        made = topics.create(name, partitions=partitions, configs=settings)
        return f"The topic {made.name} exists. Number of partitions: {made.partitions}."

    return ChangePlan(
        title=f"Create the topic {name}",
        button="Create the topic",
        rows=[
            PlanRow("partitions", "", DEFAULT if partitions is None else str(partitions)),
            *(PlanRow(setting, "", value) for setting, value in settings.items()),
        ],
        command=scene.command("topic", "create", *words, *repeated("-c", settings), name=name),
        apply=apply,
        page=topic_page(name),
    )


def alter_topic(scene: ChangeScene) -> ChangePlan:
    name, settings = required_name(scene.values, TOPIC), assignments(scene.values, SETTINGS)
    unset = list(dict.fromkeys(lines_of(scene.values, UNSET)))
    topics = scene.log.topics
    details = topics.describe(name)
    removed = [setting for setting in unset if setting in details.overrides]
    rows = _setting_rows(details.configs, settings, removed)
    if not rows:
        raise ConfigurationError(
            f"no setting of the topic {name!r} would change",
            remedy=f"fill in {SETTINGS.label}, or {UNSET.label}",
        )
    topics.configure(name, settings, unset=unset, dry_run=True)
    words = [*repeated("-c", settings), *(word for each in unset for word in ("--unset", each))]

    def apply() -> str:
        topics.configure(name, settings, unset=unset)
        return f"The settings of the topic {name} are changed."

    return ChangePlan(
        title=f"Change settings of the topic {name}",
        button="Change the settings",
        rows=rows,
        command=scene.command("topic", "alter", *words, name=name),
        apply=apply,
        page=topic_page(name),
        warnings=_retention_warnings(details.configs, settings),
    )


def _setting_rows(
    before: Mapping[str, str], settings: Mapping[str, str], removed: Sequence[str]
) -> list[PlanRow]:
    rows = [
        PlanRow(setting, before.get(setting, ""), value)
        for setting, value in settings.items()
        if before.get(setting) != value
    ]
    return [*rows, *(PlanRow(setting, before.get(setting, ""), DEFAULT) for setting in removed)]


def _retention_warnings(before: Mapping[str, str], settings: Mapping[str, str]) -> list[str]:
    """Return a warning if brokers may delete records that they keep now."""
    for setting in ("retention.ms", "retention.bytes"):
        has, wanted = before.get(setting, ""), settings.get(setting, "")
        try:
            is_less = int(wanted) >= 0 and (int(has) < 0 or int(wanted) < int(has))
        except ValueError:
            continue
        if is_less:
            return [f"Brokers will delete records beyond the new {setting}."]
    return []


def add_partitions(scene: ChangeScene) -> ChangePlan:
    name = required_name(scene.values, TOPIC)
    required(scene.values, TOTAL)
    total = scene.values.number(TOTAL.name, 0, least=1, most=PARTITIONS_MAX)
    topics = scene.log.topics
    has = topics.partition_count(name)
    if total <= has:
        raise ConfigurationError(
            f"the topic {name!r} has {has} partitions",
            remedy=f"give a number above {has}; partitions of a topic are never removed",
        )
    topics.add_partitions(name, total, dry_run=True)

    def apply() -> str:
        made = topics.add_partitions(name, total)
        return f"Number of partitions of the topic {name}: {made.partitions}."

    return ChangePlan(
        title=f"Add partitions to the topic {name}",
        button="Add the partitions",
        rows=[PlanRow("partitions", str(has), str(total))],
        command=f"{scene.command('topic', 'add-partitions', name=name)} {total}",
        apply=apply,
        page=topic_page(name),
        warnings=[
            "Later records of a key may go to another partition.",
            "The number of partitions can never be reduced.",
        ],
    )


def delete_topic(scene: ChangeScene) -> ChangePlan:
    name = required_name(scene.values, TOPIC)
    if required(scene.values, TYPED_NAME) != name:
        raise ConfigurationError(
            f"the typed name is not {name!r}", remedy="type the name of the topic to delete"
        )
    topics = scene.log.topics
    details = topics.describe(name)
    offsets = sum(each.latest - each.earliest for each in details.partitions)
    groups = _groups_of(scene.view, name)
    planned = scene.view.state.names.get(name)

    def apply() -> str:
        found = scene.look().state.names.get(name)
        if planned is not None and found not in (None, planned):
            raise ConfigurationError(
                f"the topic {name!r} was deleted and created again since this plan",
                remedy="look at the new topic, and make another plan",
            )
        topics.delete(name)
        return f"The topic {name} is deleted."

    return ChangePlan(
        title=f"Delete the topic {name}",
        button="Delete the topic and its records",
        rows=[
            PlanRow("partitions", count_text(len(details.partitions)), ""),
            PlanRow("records, at most", count_text(offsets), ""),
            PlanRow("stored bytes", size_text(_stored_bytes(scene.view, name)), ""),
            PlanRow("groups with offsets in the topic", count_text(groups), ""),
        ],
        command=scene.command("topic", "delete", name=name),
        apply=apply,
        page="topics",
        warnings=["The records and the groups' offsets in this topic cannot be restored."],
    )


def _stored_bytes(view: LogView, name: str) -> int:
    found = view.topic(name)
    if found is None:
        return 0
    return sum(view.figures[key].size_bytes for key in view.partitions_of(found))


def _groups_of(view: LogView, name: str) -> int:
    topic_id = view.state.names.get(name)
    return sum(any(key.topic_id == topic_id for key in rows) for rows in view.state.groups.values())


TOPIC_CHANGES = (
    LogChange("create-topic", "Create a topic", (TOPIC, PARTITIONS, SETTINGS), create_topic),
    LogChange("alter-topic", "Change a topic's settings", (TOPIC, SETTINGS, UNSET), alter_topic),
    LogChange("add-partitions", "Add partitions", (TOPIC, TOTAL), add_partitions),
    LogChange("delete-topic", "Delete a topic", (TOPIC, TYPED_NAME), delete_topic),
)
