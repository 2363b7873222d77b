"""What README.md tells a newcomer to run, without the installation: unchanged but for addresses."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bucketlog.embedded.cluster import EmbeddedCluster
from tests.models.readme import read_start, said_to_print

pytestmark = pytest.mark.long

README = Path(__file__).parents[2] / "README.md"


def test_the_quick_start_runs(tmp_path: Path) -> None:
    """In order: what the program writes, the Spark snippet reads."""
    text = README.read_text()
    start = read_start(text)
    _, spark = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    with EmbeddedCluster(tmp_path) as cluster:
        assert run_shell(start.first, cluster) == said_to_print(start.first)
        printed = run(start.program, "localhost:9092", cluster.bootstrap)
        assert printed == said_to_print(start.run)
        counted = run(spark, "file:///path/to/bucketlog-data/bucket", cluster.bucket_url)
    assert counted.splitlines()[-1] == "1"


def run_shell(script: str, cluster: EmbeddedCluster) -> str:
    programs = f"{Path(sys.executable).parent}/"
    assert ".venv/bin/" in script
    done = subprocess.run(
        ["bash", "-ec", script.replace(".venv/bin/", programs)],
        env={**os.environ, "BUCKETLOG_BOOTSTRAP": cluster.bootstrap},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{script}\n{done.stderr}"
    return done.stdout


def run(snippet: str, placeholder: str, actual: str) -> str:
    assert placeholder in snippet
    done = subprocess.run(
        [sys.executable, "-c", snippet.replace(placeholder, actual)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{snippet}\n{done.stderr}"
    return done.stdout
