"""What a person is told who names a topic that does not exist, or one that exists already."""

from collections.abc import Iterator
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
    """`is_wanted`: a topic that does not exist may well be created, for its user wants to use it;
    who deletes or describes one wants another name."""
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
                "`bucketlog apply` gives a topic more; later records of a key may then come to "
                "another partition"
            )
        raise


def _alike(log: "Log", name: str) -> str | None:
    try:
        names = [info.name for info in log.topics.list()]
    except LogError:
        return None
    return next(iter(get_close_matches(name, names, 1)), None)


def _remedy(name: str, alike: str | None, *, is_wanted: bool) -> str:
    meant = f"is {alike!r} meant? " if alike else ""
    if is_wanted:
        return f"{meant}`bucketlog topic create {quote(name)}` creates it"
    return f"{meant}`bucketlog topic list` shows those that there are"
