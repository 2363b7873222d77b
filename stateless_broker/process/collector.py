"""Settings of Python's search for reference cycles in a broker.

A full collection visits every object. With 5,000 groups and their offsets, this takes 70 ms in
which nobody is answered. With the default thresholds, every third ListGroups caused a full
collection. A broker frees its objects by reference counts. Cycles are few and small (tasks,
exceptions), so they may wait.

A collection of the middle generation visits all objects that were made since the last such
collection and still exist. With at most 6,000 objects, the collection takes 1 to 2 ms. A large
request makes hundreds of thousands of objects. With 55,000 objects in each collection, the
collector blocked the event loop for up to 13 ms at a time.
"""

import gc

YOUNG_OBJECTS = 1_000
YOUNG_ROUNDS = 5
MIDDLE_ROUNDS = 10_000
"""At most one full collection comes for each 50 million objects that were made and not dropped."""


def collect_seldom() -> None:
    gc.set_threshold(YOUNG_OBJECTS, YOUNG_ROUNDS, MIDDLE_ROUNDS)
