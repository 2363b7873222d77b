"""This repository as tests see it: its root, its rooms, the files that git knows or would add."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = tuple(sorted(link.name for link in (ROOT / "bucketlog").iterdir() if link.is_symlink()))
"""The folders at the top that are importable under `bucketlog.` only."""
PRODUCT = ("bucketlog", *ROOMS)


def listed_files(*folders: str) -> list[str]:
    """Paths from the root, with slashes: of the whole repository, or within `folders`. A path that
    git ignores, a link to a folder and a file that was deleted are not among them."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *folders],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    return [path for path in listed if (ROOT / path).is_file()]
