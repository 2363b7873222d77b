"""What a check of the log found. Only the check writes here."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Damage:
    """`position` is the first byte of the object that cannot be trusted."""

    key: str
    position: int
    reason: str


@dataclass(slots=True)
class VerifyReport:
    """What was checked and what was found. `unfinished` objects are past a hole in their chain;
    `void` ones past a seal, where they never count. `batches` and `records` are those of log
    segments; `unreferenced` objects of tiers are named by no tier."""

    segments: int = 0
    seals: int = 0
    checkpoints: int = 0
    partition_segments: int = 0
    manifests: int = 0
    batches: int = 0
    records: int = 0
    size_bytes: int = 0
    topics: int = 0
    partitions: int = 0
    unfinished: int = 0
    void: int = 0
    unreferenced: int = 0
    damage: list[Damage] = field(default_factory=list)

    def found(self, key: str, position: int, reason: str) -> None:
        self.damage.append(Damage(key, position, reason))
