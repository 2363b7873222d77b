"""The typed messages are what kio's schemas say."""

import subprocess
import sys

from tests.models.repository import ROOT

CHECK = """
from scripts.messages import TARGET, render

made = render()
written = {path.name: path.read_text() for path in TARGET.glob("*.py")}
print(*(name for name in written.keys() | made.keys() if written.get(name) != made.get(name)))
"""


def test_the_modules_are_what_the_script_writes() -> None:
    outdated = subprocess.run(
        [sys.executable, "-c", CHECK], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    ).stdout
    assert outdated.split() == [], "run: python scripts/messages.py"
