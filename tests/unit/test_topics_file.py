"""`topics.yaml`: what it may say, and which line a complaint names; what comes of it as a plan."""

import pytest

from bucketlog.cli.topic_plan import Action, plan_of, summary
from bucketlog.cli.topics_file import WantedTopic, read_topics
from bucketlog.cli.yaml_document import FILE_BYTES_MAX
from bucketlog.client.topics import PartitionInfo, TopicDetails
from bucketlog.log_format.errors import ConfigurationError

DAY_MS = 86_400_000


def read(text: str) -> list[WantedTopic]:
    return read_topics("t.yaml", text.encode())


def test_all_that_it_may_say() -> None:
    first, second = read(
        """
topics:
  - name: orders
    partitions: 12
    retention: 7d
    configs:
      cleanup.policy: delete
      max.message.bytes: 1000000
      preallocate: on
      segment.jitter.ms: 010
  - {name: 0123, retention: forever}
"""
    )
    assert (first.name, first.partitions) == ("orders", 12)
    assert first.all_configs() == {
        "retention.ms": str(7 * DAY_MS),
        "cleanup.policy": "delete",
        "max.message.bytes": "1000000",
        "preallocate": "on",
        "segment.jitter.ms": "010",
    }, "as they are written"
    assert second == WantedTopic(name="0123", retention="forever")
    assert second.all_configs() == {"retention.ms": "-1"}


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("", 1, "empty"),
        ("topics: [\n", 2, "no YAML"),
        ("- a\n", 1, "dictionary"),
        ("topics:\n  - name: a\ntopic: []\n", 3, "unknown key 'topic': there are topics"),
        (
            "topics:\n  - name: a\n    partition: 3\n",
            3,
            "unknown key 'partition': there are name, partitions, retention, configs",
        ),
        ("topics:\n  - partitions: 3\n", 2, "'name' is missing"),
        ("topics:\n  - name: a\n    name: b\n", 3, "'name' appears twice"),
        ("topics:\n  - name: a\n  - name: b\n  - name: a\n", 4, "is already in line 2"),
        ("topics:\n  - name: a\n    partitions: 0\n", 3, "greater than or equal to 1"),
        ("topics:\n  - name: a\n    partitions: many\n", 3, "partitions"),
        ("topics:\n  - name: a\n\n    retention: 7 days\n", 4, "write it as 7d"),
        ("topics:\n  - name: a\n    configs:\n      x:\n", 4, "give it a value"),
        ("topics:\n  - name: a\n    configs:\n      x: [1]\n", 4, "configs.x"),
        (
            "topics:\n  - name: a\n    retention: 1d\n    configs: {retention.ms: 1}\n",
            2,
            "say the same",
        ),
        ("topics:\n  - &a {name: a}\n  - *a\n", 3, "aliases"),
        ("topics:\n  - ? [a]\n    : b\n", 2, "a key must be a word"),
        ("topics: !!python/object:os.system x\n", 1, "list"),
        ("[" * 5000 + "]" * 5000, 1, "nested more than 100 levels deep"),
        ("topics:\n" + "- a: b\n" * 300_000, 166_667, "more than 500,000 keys and values"),
    ],
)
def test_complaints_name_the_line(text: str, line: int, said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read(text)
    assert f"t.yaml, line {line}: " in caught.value.message
    assert said in caught.value.message


def test_bounds() -> None:
    with pytest.raises(ConfigurationError, match="bytes"):
        read_topics("t.yaml", b" " * (FILE_BYTES_MAX + 1))
    with pytest.raises(ConfigurationError, match="line 2: no UTF-8"):
        read_topics("t.yaml", b"topics:\n  - name: \xff\n")


def there(name: str, partitions: int, configs: dict[str, str], *overrides: str) -> TopicDetails:
    infos = tuple(PartitionInfo(number, 0, 0) for number in range(partitions))
    return TopicDetails(name, infos, configs, frozenset(overrides))


def test_a_plan() -> None:
    wanted = read(
        """
topics:
  - {name: new, partitions: 3, retention: 1d}
  - {name: same, partitions: 2, configs: {a: 1}}
  - {name: more, partitions: 4, configs: {a: 2, b: 1}}
  - {name: fewer, partitions: 1}
  - {name: bare}
"""
    )
    found = {
        "same": there("same", 2, {"a": "1", "b": "5"}, "b"),
        "more": there("more", 2, {"a": "1", "b": "1"}),
        "fewer": there("fewer", 2, {}),
        "bare": there("bare", 7, {"a": "1"}),
    }
    steps = plan_of(wanted, found, ["old"])
    assert "".join(step.action.sign for step in steps) == "+=~!=-"
    new, same, more, fewer, _, old = steps
    assert list(map(str, new.changes)) == ["partitions 3", "retention.ms 86400000 (1d)"]
    assert (new.partitions, new.configs) == (3, {"retention.ms": "86400000"})
    assert same.remark == "also set, and left: b=5"
    assert list(map(str, more.changes)) == ["partitions 2 → 4", "a 1 → 2"]
    assert (more.partitions, more.configs) == (4, {"a": "2"}), "what is the same is not set again"
    assert "cannot become fewer" in fewer.remark
    assert old.action is Action.DELETE
    assert summary(steps) == "1 to create, 1 to change, 1 to delete, 2 as it is, 1 impossible"
