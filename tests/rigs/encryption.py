"""Files with the keys of encrypted topics."""

import secrets
from pathlib import Path


def write_keys(path: Path, *names: str, known: str = "") -> Path:
    """A file with keys of these names. Those that are there, or in `known`, stay; others are
    new."""
    path.touch(0o600)
    before = dict(line.split() for line in (path.read_text() + known).splitlines())
    path.write_text("".join(f"{n} {before.get(n) or secrets.token_hex(32)}\n" for n in names))
    return path
