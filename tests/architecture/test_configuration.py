"""docs/configuration.md says what the settings say."""

import subprocess
import sys

from tests.models.repository import ROOT


def test_the_page_is_what_the_script_writes() -> None:
    made = subprocess.run(
        [sys.executable, "-c", "from scripts.configuration import render; print(render(), end='')"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    written = (ROOT / "docs/configuration.md").read_text()
    assert made == written, "run: python scripts/configuration.py"
