"""Which fault affects which broker at which time: a pure function of a seed and a length.

A slot has one fault, or two at once; its last quarter is quiet. Faults are drawn like cards from a
shuffled deck, so that a long plan has all of them about equally often.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from random import Random
from typing import Any, NamedTuple

WARM_UP_S = 4.0
SHORTEST_S, LONGEST_S = 3.0, 12.0
QUIET_SHARE = 0.25
PAIR_SHARE = 0.15


class Target(StrEnum):
    """The broker that a fault affects: the leader of partition 0, the coordinator of the group, the
    broker that claimed the epoch, the one that wrote the most checkpoints, or any. ALL: the fault
    affects the whole cluster."""

    LEADER = "leader"
    COORDINATOR = "coordinator"
    CLAIMANT = "claimant"
    CHECKPOINTER = "checkpointer"
    ANY = "any"
    ALL = "all"


ONE_BROKER = (
    Target.LEADER,
    Target.COORDINATOR,
    Target.CLAIMANT,
    Target.CHECKPOINTER,
    Target.ANY,
)


class PlannedFault(NamedTuple):
    """Times are seconds since the plan began. `broker` is affected if the target is ANY, or if no
    broker has the role."""

    fault: str
    target: Target
    broker: int
    begins_s: float
    ends_s: float


def plan_faults(
    seed: int,
    seconds: float,
    kinds: Mapping[str, Sequence[Target]],
    *,
    brokers: int,
    alone: Collection[str] = (),
) -> list[PlannedFault]:
    """`kinds` are the possible faults with their possible targets. Two faults at once have
    different brokers as far as the plan knows. At most one of them affects the whole cluster, and
    none of them is in `alone`."""
    source = Random(seed)
    deck: list[str] = []

    def drawn() -> str:
        if not deck:
            deck.extend(source.sample(sorted(kinds), len(kinds)))
        return deck.pop()

    planned: list[PlannedFault] = []
    at_s = WARM_UP_S
    while True:
        lasts_s = source.uniform(SHORTEST_S, LONGEST_S)
        slot_s = lasts_s / (1 - QUIET_SHARE)
        if at_s + slot_s > seconds:
            return planned
        names = [drawn()]
        if source.random() < PAIR_SHARE and len(kinds) > 1:
            pair = [names[0], drawn()]
            if _go_together(pair, kinds, alone):
                names = pair
        victims = source.sample(range(brokers), len(names))
        for name, broker in zip(names, victims, strict=True):
            target = source.choice(kinds[name])
            span = round(at_s, 2), round(at_s + lasts_s, 2)
            planned.append(PlannedFault(name, target, broker, *span))
        at_s += slot_s


def _go_together(
    names: Sequence[str], kinds: Mapping[str, Sequence[Target]], alone: Collection[str]
) -> bool:
    meet_all = sum(Target.ALL in kinds[name] for name in names)
    return len({*names}) == len(names) and meet_all <= 1 and not {*names} & {*alone}


def encode_plan(planned: Sequence[PlannedFault]) -> str:
    """One line of JSON for each fault, to be printed and replayed."""
    return "\n".join(json.dumps(each._asdict()) for each in planned)


def decode_plan(text: str) -> list[PlannedFault]:
    rows: list[dict[str, Any]] = [json.loads(line) for line in text.splitlines() if line.strip()]
    return [PlannedFault(**{**row, "target": Target(row["target"])}) for row in rows]
