"""The documentation site, built by MkDocs as `make docs` builds it."""

import os
import subprocess
import sys
from pathlib import Path

from tests.models.repository import ROOT


def build_site(folder: Path) -> subprocess.CompletedProcess[str]:
    """Build the site in `folder`. A warning is an error of the build. The caller checks the exit
    code and the output."""
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "--quiet", "build", "--strict", "-d", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
