"""The plan of `topic trim`: which records each partition loses."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from bucketlog.client.log import Log


class TrimRow(NamedTuple):
    """`earliest` is the first offset before, `after` the one afterwards. `records`: offsets between
    them, gaps included."""

    partition: int
    earliest: int
    after: int
    records: int


def trim_plan(
    log: "Log",
    name: str,
    where: Literal["earliest", "latest"] | int | datetime,
    partitions: Sequence[int] | None,
) -> list[TrimRow]:
    """Return the plan. An offset outside of a partition's offsets becomes its first or last one.
    Raises `LogError`, `ConfigurationError`."""
    found = log.topics.offsets_of(name, partitions)
    chosen = [part.partition for part in found]
    times = log.topics.offsets_at(name, chosen, where) if isinstance(where, datetime) else {}
    rows = []
    for each in found:
        part, earliest, latest = each.partition, each.earliest, each.latest
        match where:
            case int():
                after = min(max(where, earliest), latest)
            case datetime():
                at = times[part]
                after = latest if at is None else at
            case "latest":
                after = latest
            case _:
                after = earliest
        rows.append(TrimRow(part, earliest, after, after - earliest))
    return rows
