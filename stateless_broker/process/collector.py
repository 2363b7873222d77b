"""Settings of Python's search for reference cycles in a broker.

A full collection visits every object. With 5,000 groups and their offsets, this takes 70 ms in
which nobody is answered. With the default thresholds, every third ListGroups caused a full
collection. A broker frees its objects by reference counts. Cycles are few and small (tasks,
exceptions), so they may wait.
"""

import gc

YOUNG_OBJECTS = 5_000
YOUNG_ROUNDS = 10
MIDDLE_ROUNDS = 1_000
"""A full collection comes after 50 million objects that were made and not dropped, at most."""


def collect_seldom() -> None:
    gc.set_threshold(YOUNG_OBJECTS, YOUNG_ROUNDS, MIDDLE_ROUNDS)
