"""The version of this package: from the installed distribution, else from the source tree."""

import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

UNKNOWN = "0+unknown"
"""For sources without pyproject.toml, such as the archive for `spark-submit --py-files`."""


def package_version(pyproject: Path = Path(__file__).parents[1] / "pyproject.toml") -> str:
    """`pyproject` is read if bucketlog is not installed."""
    try:
        return version("bucketlog")
    except PackageNotFoundError:
        pass
    try:
        project = tomllib.loads(pyproject.read_text())["project"]
    except (OSError, KeyError):
        return UNKNOWN
    return str(project["version"]) if project.get("name") == "bucketlog" else UNKNOWN
