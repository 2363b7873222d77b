"""The groups that `bucketlog topic describe` looks at."""

from types import SimpleNamespace
from typing import Any, cast

from bucketlog.cli.topic_description import group_lags
from bucketlog.client.groups import GroupInfo
from bucketlog.client.topics import TopicDetails


def test_a_group_without_a_name_is_left_out() -> None:
    """librdkafka cannot ask for its offsets."""
    asked: list[str] = []

    def committed(group: str, topic: str) -> dict[int, Any]:
        asked.append(group)
        return {}

    groups = [GroupInfo("", "Empty"), GroupInfo("readers", "Empty")]
    log = SimpleNamespace(groups=SimpleNamespace(list=lambda: groups, committed=committed))
    details = cast(TopicDetails, SimpleNamespace(name="orders", partitions=()))
    assert group_lags(cast(Any, log), details, groups_max=10) == []
    assert asked == ["readers"]
