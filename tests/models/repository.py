"""This repository for tests: its root, its rooms, and the files that git tracks or would add."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = tuple(sorted(link.name for link in (ROOT / "bucketlog").iterdir() if link.is_symlink()))
"""The top-level folders that are importable only under `bucketlog.`."""
PRODUCT = ("bucketlog", *ROOMS)


def listed_files(*folders: str) -> list[str]:
    """Paths from the root, with slashes, of the whole repository or within `folders`. Excludes
    paths that git ignores, links to folders, and deleted files."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *folders],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    return [path for path in listed if (ROOT / path).is_file()]
