"""What a form of the pages Replay and Query asks for: a topic, its partitions, and a range of them.

Invariant: the options of a range are those that `bucketlog.replay` makes of the same values, and
they name the id of the topic. A topic that was deleted and created again is therefore refused.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple
from uuid import UUID

from bucketlog.console.log_view import LogView
from bucketlog.console.page_query import PageQuery
from bucketlog.console.pages import Console
from bucketlog.log_format.durations import is_duration, parse_duration_ms
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_reader.options import ReadOptions
from bucketlog.log_reader.replay_plan import replay_options
from bucketlog.metadata.fold import TopicState
from bucketlog.replaying.selection import Selection, parse_offsets

ALL, TIME, OFFSETS = "all", "time", "offsets"
RANGES = (ALL, TIME, OFFSETS)
NUMBER = re.compile(r"\s*[0-9]{1,9}\s*")


class ReplayRange(NamedTuple):
    """A range of a topic. `given` has the options of the reader, by name."""

    topic: TopicState
    given: Mapping[str, str]

    def options(self, console: Console) -> ReadOptions:
        """The options, with the keys of the console. Raises `ConfigurationError`."""
        return replace(replay_options(self.given), encryption=console.access)


def replay_range(console: Console, view: LogView, query: PageQuery) -> ReplayRange:
    """The range of a form. Raises `UnknownNameError` and `ConfigurationError`."""
    topic = console.topic(view, query.text("topic"))
    kind = query.choice("seek", RANGES)
    numbers = _partitions(query.text("partitions"), topic.partitions)
    if kind == OFFSETS:
        offsets = parse_offsets(query.text("offsets"))
        _check_partitions(offsets, topic.partitions)
        chosen = Selection(topic.name, offsets=offsets, partitions=numbers)
    else:
        chosen = Selection(topic.name, partitions=numbers or range(topic.partitions))
    given = {
        "path": console.place,
        "includeHeaders": "true",
        "topicIds": json.dumps({topic.name: str(UUID(bytes=topic.topic_id))}),
        **chosen.options(console.now_ms),
    }
    if kind == TIME:
        given |= _times(query, console.now_ms())
    if console.access.key_file is not None:
        given["encryption.keyFile"] = str(console.access.key_file)
    return ReplayRange(topic, given)


def _partitions(text: str, partitions: int) -> Sequence[int] | None:
    """The numbers of a text such as "0, 2"; None for all."""
    if not text.strip():
        return None
    items = text.split(",")
    if not all(NUMBER.fullmatch(item) for item in items):
        raise ConfigurationError(
            f"partitions={text[:40]} are not numbers", remedy="use numbers and commas, as in 0, 2"
        )
    numbers = list(dict.fromkeys(map(int, items)))
    _check_partitions(numbers, partitions)
    return numbers


def _check_partitions(numbers: Sequence[int] | Mapping[int, object], partitions: int) -> None:
    unknown = [number for number in numbers if number >= partitions]
    if unknown:
        raise ConfigurationError(
            f"there is no partition {unknown[0]}", remedy=f"use 0 to {partitions - 1}"
        )


def _times(query: PageQuery, now_ms: int) -> dict[str, str]:
    """The options of a range between two times. As in a replay, `since` later than all records
    gives an empty range."""
    since_ms, until_ms = _moment_ms(query, "since", now_ms), _moment_ms(query, "until", now_ms)
    found: dict[str, str] = {}
    if since_ms is not None:
        found["startingTimestamp"] = str(since_ms)
        found["startingOffsetsByTimestampStrategy"] = "latest"
    if until_ms is not None:
        found["endingTimestamp"] = str(until_ms)
    if since_ms is not None and until_ms is not None and since_ms > until_ms:
        raise ConfigurationError("the range ends before it begins", remedy="swap the two times")
    return found


def _moment_ms(query: PageQuery, name: str, now_ms: int) -> int | None:
    """A time of `PageQuery.time_ms`, or a duration back from now, such as 7d."""
    text = query.text(name)
    if is_duration(text):
        return max(0, now_ms - parse_duration_ms(text))
    found = query.time_ms(name)
    if found is not None and found < 0:
        raise ConfigurationError(
            f"{name}={text[:40]} is before 1970", remedy="leave it out for the first record"
        )
    return found
