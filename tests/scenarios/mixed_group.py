"""All kinds of clients in one consumer group, which come and go.

At full size, from the repository's root: `make prove WHAT=mixed-group`. One member comes after the
other, then all but the last go; after each step all that is there is read, once, and nobody has
what another has.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from confluent_kafka import Producer

from tests.scenarios.group_members import Ledger, Member, RunningMember
from tests.scenarios.round_trip import create_topic

PARTITIONS_A_MEMBER = 2
FLUSH_S = 60


@dataclass(frozen=True, slots=True)
class MixedGroupFigures:
    members: Sequence[str]
    rebalances: int
    records: int
    by_member: dict[str, int]
    seconds: float

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def mixed_group(
    bootstrap: str, topic: str, kinds: Mapping[str, Member], *, records: int
) -> MixedGroupFigures:
    """`records` at each step; the topic is created. Raises `AssertionError`; every member is
    stopped."""
    began = time.perf_counter()
    partitions = PARTITIONS_A_MEMBER * len(kinds)
    create_topic(bootstrap.partition(",")[0], topic, partitions)
    ledger, total, steps = Ledger(), 0, 0
    members: list[RunningMember] = []

    def step() -> None:
        nonlocal total, steps
        ledger.wait_for_owners([each.name for each in members], partitions)
        _produce(bootstrap, topic, partitions, records)
        total, steps = total + records, steps + 1
        ledger.wait_for_records(total)

    try:
        for name, make in kinds.items():
            where = (bootstrap, topic, f"group of {topic}")
            members.append(RunningMember(make, where, name=name, ledger=ledger))
            step()
        while len(members) > 1:
            members.pop(0).stop()
            step()
    finally:
        for member in members:
            member.stop()
    assert not ledger.wrong, "\n".join(ledger.wrong[:10])
    twice = [place for place, times in ledger.seen.items() if times > 1]
    assert not twice, f"processed twice: {twice[:10]}"
    idle = [name for name in kinds if not ledger.by_member[name]]
    assert not idle, f"did nothing: {idle}"
    return MixedGroupFigures(
        members=list(kinds),
        rebalances=steps,
        records=total,
        by_member=dict(ledger.by_member),
        seconds=round(time.perf_counter() - began, 1),
    )


def _produce(bootstrap: str, topic: str, partitions: int, records: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(records):
        producer.produce(topic, b"record %d" % number, partition=number % partitions)
        producer.poll(0)
    assert producer.flush(FLUSH_S) == 0
