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
    deleted_by_kind: dict[str, int] = field(default_factory=dict)

    @property
    def deleted(self) -> int:
        return sum(self.deleted_by_kind.values())

    def count_checkpoint(self, segments: int, size_bytes: int, took_ms: int) -> None:
        self.checkpoints += 1
        self.checkpoint_segments = segments
        self.checkpoint_bytes = size_bytes
        self.checkpoint_ms = took_ms

    def count_deleted(self, kind: str, count: int) -> None:
        self.deleted_by_kind[kind] = self.deleted_by_kind.get(kind, 0) + count
