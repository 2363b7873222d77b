"""The archive that takes the Spark source to a cluster, for `spark-submit --py-files`.

    python scripts/spark_package.py [dist/bucketlog-spark.zip]

The archive holds the package `bucketlog` alone, with the folders that it links to. What they need
besides (docs/spark.md) must be in the executors' own
Python, or come as an archive of a venv. The same sources give the same bytes.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

ROOT = Path(__file__).parents[1]
PACKAGE = "bucketlog"
DEFAULT = Path("dist") / "bucketlog-spark.zip"


def sources() -> Iterator[Path]:
    for folder, folders, names in os.walk(ROOT / PACKAGE, followlinks=True):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(names):
            yield Path(folder) / name


def write(target: Path) -> int:
    """How many files went in."""
    target.parent.mkdir(parents=True, exist_ok=True)
    found = list(sources())
    with ZipFile(target, "w") as archive:
        for path in found:
            info = ZipInfo(path.relative_to(ROOT).as_posix())  # of 1980, whoever makes it
            info.compress_type = ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            archive.writestr(info, path.read_bytes())
    return len(found)


if __name__ == "__main__":
    chosen = Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT
    sys.stdout.write(f"{chosen}: {write(chosen)} files\n")
