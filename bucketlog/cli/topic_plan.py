"""What `apply` would do: topics as they shall be, compared with those that there are.

Pure: values in, a plan out. Invariant: nothing is taken away that was not asked for: partitions
never become fewer, configs that the file does not name stay, topics that it does not name go only
where the caller says so.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from bucketlog.cli.topics_file import RETENTION, WantedTopic
from bucketlog.client.retention import format_retention

if TYPE_CHECKING:
    from bucketlog.client.topics import TopicDetails


class Action(StrEnum):
    CREATE = "create"
    CHANGE = "change"
    SAME = "same"
    REFUSED = "refused"
    DELETE = "delete"

    @property
    def sign(self) -> str:
        return {"create": "+", "change": "~", "same": "=", "refused": "!", "delete": "-"}[self]


class TopicSettingChange(NamedTuple):
    """Of the number of partitions or one config; `before` is None for a topic that is new."""

    what: str
    before: str | None
    after: str

    def __str__(self) -> str:
        if self.before is None:
            return f"{self.what} {self._shown(self.after)}"
        return f"{self.what} {self._shown(self.before)} → {self._shown(self.after)}"

    def _shown(self, value: str) -> str:
        if self.what != RETENTION:
            return value
        try:
            return f"{value} ({format_retention(int(value))})"
        except ValueError:
            return value


@dataclass(frozen=True, slots=True)
class TopicPlanStep:
    """`partitions` is None where it stays or is the broker's to choose, `configs` are to be set.
    `remark` says why it is refused, or what else is to be known."""

    action: Action
    topic: str
    changes: tuple[TopicSettingChange, ...] = ()
    partitions: int | None = None
    configs: Mapping[str, str] | None = None
    remark: str = ""

    def refused(self, reason: str) -> "TopicPlanStep":
        return replace(self, action=Action.REFUSED, remark=reason)

    def row(self) -> dict[str, Any]:
        changes = [change._asdict() for change in self.changes]
        return {"action": self.action, "topic": self.topic, "changes": changes, "why": self.remark}


def plan_of(
    wanted: Sequence[WantedTopic], there: Mapping[str, "TopicDetails"], unwanted: Iterable[str] = ()
) -> list[TopicPlanStep]:
    """In the order of the file; the deletions of what is `unwanted` come last."""
    return [
        *(_step(topic, there.get(topic.name)) for topic in wanted),
        *(
            TopicPlanStep(
                Action.DELETE, name, remark="with all its records: the file does not name it"
            )
            for name in unwanted
        ),
    ]


def _step(topic: WantedTopic, found: "TopicDetails | None") -> TopicPlanStep:
    configs = topic.all_configs()
    if found is None:
        changes = [TopicSettingChange(name, None, value) for name, value in configs.items()]
        if topic.partitions is not None:
            changes.insert(0, TopicSettingChange("partitions", None, str(topic.partitions)))
        return TopicPlanStep(Action.CREATE, topic.name, tuple(changes), topic.partitions, configs)
    differing = {name: value for name, value in configs.items() if found.configs.get(name) != value}
    changes = [
        TopicSettingChange(name, found.configs.get(name, "(unknown)"), value)
        for name, value in differing.items()
    ]
    count = len(found.partitions)
    total = None if topic.partitions in (None, count) else topic.partitions
    if total is not None:
        changes.insert(0, TopicSettingChange("partitions", str(count), str(total)))
    if not changes:
        return TopicPlanStep(Action.SAME, topic.name, remark=_unnamed(found, configs))
    step = TopicPlanStep(Action.CHANGE, topic.name, tuple(changes), total, differing)
    if total is not None and total < count:
        return step.refused(
            "partitions cannot become fewer: their records would go; "
            "create another topic and copy what is needed"
        )
    remark = "later records of a key may come to another partition" if total else ""
    return replace(step, remark=remark)


def _unnamed(found: "TopicDetails", configs: Mapping[str, str]) -> str:
    others = sorted(found.overrides - configs.keys())
    if not others:
        return ""
    return "also set, and left: " + ", ".join(f"{name}={found.configs[name]}" for name in others)


def summary(steps: Sequence[TopicPlanStep]) -> str:
    words = {
        Action.CREATE: "to create",
        Action.CHANGE: "to change",
        Action.DELETE: "to delete",
        Action.SAME: "as it is",
        Action.REFUSED: "impossible",
    }
    counts = {action: sum(step.action is action for step in steps) for action in words}
    told = [f"{count} {words[action]}" for action, count in counts.items() if count]
    return ", ".join(told) or "no topics"
