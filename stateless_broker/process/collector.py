"""How often Python looks for reference cycles in a broker.

A full collection visits every object: with 5,000 groups and their offsets that is 70 ms in which
nobody is answered, and by the default thresholds it came with every third ListGroups. What a broker
drops, it drops by reference counts; cycles are few and small (tasks, exceptions), so that they may
wait.
"""

import gc

YOUNG_OBJECTS = 5_000
YOUNG_ROUNDS = 10
MIDDLE_ROUNDS = 1_000
"""A full collection comes after 50 million objects that were made and not dropped, at most."""


def collect_seldom() -> None:
    gc.set_threshold(YOUNG_OBJECTS, YOUNG_ROUNDS, MIDDLE_ROUNDS)
