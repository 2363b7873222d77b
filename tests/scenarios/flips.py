"""Damage by one flipped byte, anywhere in the log: is it found, and is the right object named?

At full size, from the repository's root: `make prove WHAT=damage`.
"""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bucketlog.inspect.verify import verify_log
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.location import open_sync_bucket

EDGE_BYTES = 200


class Flip(NamedTuple):
    path: Path
    key: str
    position: int
    mask: int


def choose_flips(folder: Path, count: int, *, seed: int) -> Iterator[Flip]:
    """Half anywhere, half near an object's ends, where headers and footers stand. `folder` is a
    file bucket's."""
    source = random.Random(seed)
    objects = [path for path in sorted(folder.rglob(f"{keys.LOG}*/*")) if path.is_file()]
    sizes = [path.stat().st_size for path in objects]
    for number in range(count):
        (path,) = source.choices(objects, sizes if number % 2 else None)
        size = path.stat().st_size
        edge = min(EDGE_BYTES, size)
        near = source.choice((source.randrange(edge), size - 1 - source.randrange(edge)))
        position = source.randrange(size) if number % 2 else near
        key = path.relative_to(path.parents[2]).as_posix()
        yield Flip(path, key, position, 1 << source.randrange(8))


def undetected(folder: Path, count: int, *, seed: int) -> list[str]:
    """Flip one bit at a time, verify, put it back; what was not found or not named."""
    bucket = open_sync_bucket(f"file://{folder}")
    missed = []
    try:
        before = verify_log(bucket)
        if before.damage:
            return [f"damage before any flip: {before.damage[:3]}"]
        for flip in choose_flips(folder, count, seed=seed):
            _flip(flip)
            try:
                named = {damage.key for damage in verify_log(bucket).damage}
            finally:
                _flip(flip)
            if flip.key not in named:
                missed.append(f"{flip.key} at byte {flip.position}: found {named or 'nothing'}")
        if verify_log(bucket).damage:
            missed.append("the flips were not put back")
    finally:
        bucket.close()
    return missed


def _flip(flip: Flip) -> None:
    mode = flip.path.stat().st_mode
    flip.path.chmod(0o644)
    with flip.path.open("r+b") as file:
        file.seek(flip.position)
        byte = file.read(1)[0]
        file.seek(flip.position)
        file.write(bytes([byte ^ flip.mask]))
    flip.path.chmod(mode)
