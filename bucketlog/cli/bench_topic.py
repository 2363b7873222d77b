"""The topic of a load: one that is there, or one that `bucketlog bench` makes and may delete."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bucketlog.cli.topic_names import known_topic
from bucketlog.log_format.errors import ConfigurationError, LogError

if TYPE_CHECKING:
    from bucketlog.client.log import Log


class LoadTopic:
    """The topic, which must be there, unless it is to be created. Raises `ConfigurationError` for
    flags that would do nothing."""

    def __init__(self, name: str, *, create: bool, partitions: int | None, delete: bool) -> None:
        if not create and (partitions is not None or delete):
            flag = "--delete" if delete else "--partitions"
            raise ConfigurationError(
                f"{flag} without --create", remedy="only a topic that bench creates is its own"
            )
        self._name = name
        self._create = create
        self._partitions = partitions
        self._delete = delete

    @contextmanager
    def on(self, log: "Log") -> Iterator[None]:
        with known_topic(log, self._name, is_wanted=True):
            is_ours = self._create and self._created(log)
            log.topics.partition_count(self._name)
        try:
            yield
        except BaseException as error:
            if is_ours and self._delete:
                self._clean_up(log, error)
            raise
        if is_ours and self._delete:
            log.topics.delete(self._name)

    def _clean_up(self, log: "Log", error: BaseException) -> None:
        """What ended the load goes before what ends this."""
        try:
            log.topics.delete(self._name)
        except LogError as failure:
            error.add_note(f"and: {failure}")

    def _created(self, log: "Log") -> bool:
        try:
            log.topics.create(self._name, partitions=self._partitions)
        except LogError as error:
            if error.code != "TOPIC_ALREADY_EXISTS":
                raise
            return False
        return True
