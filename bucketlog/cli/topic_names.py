"""The error for a name of a topic that does not exist, or that exists already."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from shlex import quote
from typing import TYPE_CHECKING

from bucketlog.log_format.errors import ConfigurationError, LogError

if TYPE_CHECKING:
    from bucketlog.client.log import Log

UNKNOWN = frozenset({"UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC"})


@contextmanager
def known_topic(log: "Log", name: str, *, is_wanted: bool) -> Iterator[None]:
    """Give the error of a topic's name a remedy. With `is_wanted`, the remedy for a topic that does
    not exist is to create it; otherwise, the remedy is to list the topics."""
    try:
        yield
    except LogError as error:
        if error.code in UNKNOWN:
            error.remedy = _remedy(name, _alike(log, name), is_wanted=is_wanted)
        elif error.code == "TOPIC_ALREADY_EXISTS":
            error.remedy = "add --if-not-exists to leave it as it is, or choose another name"
        raise
    except ConfigurationError as error:
        if "topics.add_partitions" in error.remedy:
            error.remedy = (
                f"`bucketlog topic add-partitions {quote(name)} TOTAL` adds partitions; later "
                "records of a key may then go to another partition"
            )
        raise


@contextmanager
def known_config(names: Iterable[str]) -> Iterator[None]:
    """Name a similar config in the error for a config that a topic does not have."""
    try:
        yield
    except LogError as error:
        if error.code == "INVALID_CONFIG":
            quoted = re.findall(r"[a-z]+(?:\.[a-z]+)+", str(error))
            known = sorted(names)
            alike = next(
                (
                    one
                    for name in quoted
                    if name not in known
                    for one in get_close_matches(name, known, 1)
                ),
                None,
            )
            meant = f"did you mean {alike!r}? " if alike else ""
            error.remedy = f"{meant}docs/topic-settings.md lists the configs and their values"
        raise


def _alike(log: "Log", name: str) -> str | None:
    try:
        names = [info.name for info in log.topics.list()]
    except LogError:
        return None
    return next(iter(get_close_matches(name, names, 1)), None)


def _remedy(name: str, alike: str | None, *, is_wanted: bool) -> str:
    meant = f"did you mean {alike!r}? " if alike else ""
    if is_wanted:
        return f"{meant}`bucketlog topic create {quote(name)}` creates it"
    return f"{meant}`bucketlog topic list` shows the topics"
