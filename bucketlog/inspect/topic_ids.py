"""The names of a log's topics by their ids, from the bucket alone. Deleted topics have none."""

from difflib import get_close_matches

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.metadata.checkpoint import restored
from bucketlog.metadata.fold import fold
from bucketlog.tiered_storage.bucket import SyncBucket
from bucketlog.tiered_storage.log_cut_reading import read_log


def topic_names(bucket: SyncBucket) -> dict[bytes, str]:
    """Raises `CorruptObjectError` and the bucket's errors."""
    snapshot = read_log(bucket)
    state = restored(snapshot.checkpoint, keep_producers=False)
    fold(snapshot.segments, onto=state)
    return {topic_id: topic.name for topic_id, topic in state.topics.items()}


def topic_id(bucket: SyncBucket, name: str) -> bytes:
    """Raises `ConfigurationError` if the log has no topic of this name."""
    names = topic_names(bucket)
    for found_id, found in names.items():
        if found == name:
            return found_id
    alike = get_close_matches(name, names.values(), 1)
    raise ConfigurationError(
        f"the log has no topic {name!r}",
        remedy=f"did you mean {alike[0]!r}?" if alike else "`bucketlog topic list` shows them",
    )
