"""The server-side assignors and Apache Kafka's: the same results on the same random groups.

A small Java program (tests/servers/java/KafkaAssignors.java) runs Kafka's assignors. Topic ids are
small numbers, so Kafka's hash tables have the order of ids, and even equal choices are the same.
"""

import random
import subprocess
from collections.abc import Iterator

from bucketlog.consumers.assignor_input import Assignments, AssignorInput, MemberSpec
from bucketlog.consumers.assignors import ASSIGNORS
from bucketlog.log_format.model import TopicId
from localstack.kafka_jars import installed_jars, java_program
from tests.models.repository import ROOT
from tests.rigs.patience import PATIENCE_S
from tests.servers.components import Components
from tests.servers.kafka_tools import participating_tools

PROGRAM = ROOT / "tests/servers/java/KafkaAssignors.java"
CASES = 3_000
TOPICS_MAX = 8  # the order of a hash table of small numbers
STEPS_MAX = 4


def topic_id(number: int) -> TopicId:
    return TopicId(number.to_bytes(16, "big"))


def a_group(chance: random.Random) -> AssignorInput:
    partitions = {
        topic_id(n): chance.randint(1, 9) for n in range(1, chance.randint(2, TOPICS_MAX))
    }
    same = chance.random() < 0.5
    subscription = topics_of(chance, partitions)
    members = {
        f"m{n:02}": MemberSpec(
            subscription if same else topics_of(chance, partitions),
            {},
            f"i{chance.randrange(100):02}-{n}" if chance.random() < 0.3 else None,
        )
        for n in range(chance.randint(1, 9))
    }
    return AssignorInput(members, partitions)


def topics_of(chance: random.Random, partitions: dict[TopicId, int]) -> frozenset[TopicId]:
    return frozenset(chance.sample(sorted(partitions), chance.randint(0, len(partitions))))


def changed(group: AssignorInput, found: Assignments, chance: random.Random) -> AssignorInput:
    """The group with its assignment, after members came and went and a topic grew."""
    members = {
        member_id: spec._replace(assigned=found[member_id])
        for member_id, spec in group.members.items()
        if chance.random() < 0.8
    }
    everywhere = next(iter(group.members.values())).topics
    for n in range(chance.randint(0, 3)):
        members[f"n{chance.randrange(1000):03}-{n}"] = MemberSpec(everywhere, {})
    if not members:
        members["last"] = MemberSpec(everywhere, {})
    if chance.random() < 0.3:
        name = chance.choice(list(members))
        members[name] = members[name]._replace(topics=topics_of(chance, dict(group.partitions)))
    more = {topic: count + (chance.random() < 0.2) for topic, count in group.partitions.items()}
    return AssignorInput(members, more)


def cases() -> Iterator[tuple[str, AssignorInput, Assignments]]:
    """With results of ours: each group's assignment is where its next case begins."""
    chance = random.Random(848)
    for _ in range(CASES // STEPS_MAX):
        name, group = chance.choice(sorted(ASSIGNORS)), a_group(chance)
        for _ in range(STEPS_MAX):
            found = ASSIGNORS[name](group)
            yield name, group, found
            group = changed(group, found, chance)


def line(name: str, group: AssignorInput) -> str:
    topics = ";".join(f"{number(id_)}={count}" for id_, count in group.partitions.items())
    members = ";".join(
        ",".join(
            (
                member_id,
                spec.instance_id or "",
                " ".join(str(number(each)) for each in sorted(spec.topics)),
                told(spec.assigned),
            )
        )
        for member_id, spec in group.members.items()
    )
    return f"{name}|{topics}|{members}"


def number(topic: TopicId) -> int:
    return int.from_bytes(topic, "big")


def told(assignment: object) -> str:
    assert isinstance(assignment, dict)
    return " ".join(
        f"{number(topic)}:{'.'.join(map(str, sorted(numbers)))}"
        for topic, numbers in sorted(assignment.items())
        if numbers
    )


def test_the_assignors_find_what_kafkas_find(components: Components) -> None:
    participating_tools("", components)
    asked = list(cases())
    done = subprocess.run(
        [java_program(), "-cp", f"{installed_jars()}/*", str(PROGRAM)],
        input="\n".join(line(name, group) for name, group, _ in asked),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    answers = done.stdout.splitlines()
    assert len(answers) == len(asked)
    for (name, group, found), answer in zip(asked, answers, strict=True):
        ours = ";".join(f"{member_id},{told(found[member_id])}" for member_id in group.members)
        assert ours == answer, line(name, group)
