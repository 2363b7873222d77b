"""Counts of the work of a broker's background duties, for its figures. Only the duties write
here."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class UpkeepCounts:
    checkpoints: int = 0
    """Written by this broker."""
    checkpoint_bytes: int = 0
    """Size of the last checkpoint that this broker wrote."""
    checkpoint_segments: int = 0
    """Number of segments that the last checkpoint covers."""
    checkpoint_ms: int = 0
    """Time that the last checkpoint took."""
    split_segments: int = 0
    """Log segments that this broker has split by partition."""
    split_bytes: int = 0
    """Size of the batches in the split log segments."""
    merged_segments: int = 0
    """Partition segments that were merged into larger ones."""
    merged_bytes: int = 0
    cleaned_bytes: int = 0
    """Size of the batches that key compaction has read."""
    cleaned_away_bytes: int = 0
    """Number of bytes that key compaction has removed."""
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
