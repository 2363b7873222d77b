"""The plan of `topic trim`: which records each partition loses."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Literal, NamedTuple

from bucketlog.log_format.errors import ConfigurationError

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
    """An offset outside of a partition's offsets becomes its earliest or latest one. Raises
    `LogError`, `ConfigurationError`."""
    details = {part.partition: part for part in log.topics.describe(name).partitions}
    chosen = sorted(details if partitions is None else set(partitions))
    for part in chosen:
        if part not in details:
            raise ConfigurationError(
                f"topic {name!r} has no partition {part}",
                remedy=f"it has partitions 0 to {len(details) - 1}",
            )
    times = log.topics.offsets_at(name, chosen, where) if isinstance(where, datetime) else {}
    rows = []
    for part in chosen:
        earliest, latest = details[part].earliest, details[part].latest
        match where:
            case int():
                after = min(max(where, earliest), latest)
            case datetime():
                found = times[part]
                after = latest if found is None else found
            case "latest":
                after = latest
            case _:
                after = earliest
        rows.append(TrimRow(part, earliest, after, after - earliest))
    return rows
