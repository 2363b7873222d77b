"""The server-side assignors by name, the default first (group.consumer.assignors)."""

from collections.abc import Callable, Mapping

from bucketlog.consumers.assignor_input import Assignments, AssignorInput
from bucketlog.consumers.range_assignor import assign_range
from bucketlog.consumers.uniform_assignor import assign_uniform

Assignor = Callable[[AssignorInput], Assignments]

ASSIGNORS: Mapping[str, Assignor] = {"uniform": assign_uniform, "range": assign_range}
DEFAULT_ASSIGNOR = next(iter(ASSIGNORS))
