"""The pages about settings say what the settings say."""

import subprocess
import sys

import pytest

from tests.models.repository import ROOT


@pytest.mark.parametrize(
    ("page", "script"),
    [
        ("configuration.md", "configuration"),
        ("topic-settings.md", "topic_settings"),
        ("broker-settings.md", "broker_settings"),
    ],
)
def test_the_page_is_what_the_script_writes(page: str, script: str) -> None:
    program = f"from scripts.{script} import render; print(render(), end='')"
    made = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    ).stdout
    written = (ROOT / "docs" / page).read_text()
    assert made == written, f"run: python scripts/{script}.py"
