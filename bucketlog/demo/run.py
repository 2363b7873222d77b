"""placeholder"""

from pathlib import Path


def run_demo(data: Path | None, *, partitions: int, limit: int | None, with_spark: bool) -> int:
    return 0
