"""What README.md tells a newcomer to run in Python, run as it stands there."""

import re
import subprocess
import sys
from pathlib import Path

from bucketlog.embedded.cluster import EmbeddedCluster

README = Path(__file__).parents[2] / "README.md"


def test_every_python_snippet_runs(tmp_path: Path) -> None:
    """In order: what the first one writes, the Spark one reads."""
    text = README.read_text()
    sdk, spark = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    with EmbeddedCluster(tmp_path) as cluster:
        placed, read = run(sdk, "localhost:9092", cluster.bootstrap).splitlines()
        assert placed.endswith(" 0"), "the first offset of some partition"
        assert read == "eu 9.5"
        counted = run(spark, "file:///path/to/bucketlog-data/bucket", cluster.bucket_url)
    assert counted.splitlines()[-1] == "1"


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
