"""What a broker's background duties have done so far, for its figures. Only they write here."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class UpkeepCounts:
    checkpoints: int = 0
    """Written by this broker."""
    checkpoint_bytes: int = 0
    """Of the last one that it wrote."""
    checkpoint_segments: int = 0
    """How many the last one covers."""
    checkpoint_ms: int = 0
    """How long the last one took."""
    split_segments: int = 0
    """Log segments that this broker has split by partition."""
    split_bytes: int = 0
    """Of batches in them."""
    merged_segments: int = 0
    """Partition segments that were merged into larger ones."""
    merged_bytes: int = 0
    cleaned_bytes: int = 0
    """Of batches that key compaction has read."""
    cleaned_away_bytes: int = 0
    """Of them, those that it took away."""
    deleted_by_kind: dict[str, int] = field(default_factory=dict)

    @property
    def deleted(self) -> int:
        return sum(self.deleted_by_kind.values())

    def count_checkpoint(self, segments: int, size_bytes: int, took_ms: int) -> None:
        self.checkpoints += 1
        self.checkpoint_segments = segments
        self.checkpoint_bytes = size_bytes
        self.checkpoint_ms = took_ms

    def count_split(self, segments: int, batch_bytes: int) -> None:
        self.split_segments += segments
        self.split_bytes += batch_bytes

    def count_merge(self, segments: int, batch_bytes: int) -> None:
        self.merged_segments += segments
        self.merged_bytes += batch_bytes

    def count_cleaned(self, bytes_read: int, bytes_kept: int) -> None:
        self.cleaned_bytes += bytes_read
        self.cleaned_away_bytes += bytes_read - bytes_kept

    def count_deleted(self, kind: str, count: int) -> None:
        self.deleted_by_kind[kind] = self.deleted_by_kind.get(kind, 0) + count
