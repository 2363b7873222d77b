"""What the pages in docs/ tell a reader to run, run as it stands there."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bucketlog.embedded.cluster import EmbeddedCluster
from tests.servers.schema_registry import Registry

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
ADDRESS = "localhost:9092"
BUCKET = "s3://bucket/prefix"
REGISTRY = "http://localhost:8081"


def blocks(document: str, language: str) -> list[str]:
    text = (ROOT / "docs" / document).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def test_every_snippet_of_the_sdk_runs(tmp_path: Path, schema_registry: Registry) -> None:
    snippets = blocks("sdk.md", "python")
    assert len(snippets) >= 15
    with EmbeddedCluster(tmp_path, settings={"transactions": "true"}) as cluster:
        for snippet in snippets:
            script = snippet.replace(ADDRESS, cluster.bootstrap).replace(BUCKET, cluster.bucket_url)
            script = script.replace(REGISTRY, schema_registry.url)
            done = subprocess.run(
                [sys.executable, "-W", "error", "-c", script],
                cwd=tmp_path,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, f"{snippet}\n{done.stderr}\n{cluster.log_path.read_text()}"


def test_the_tests_of_the_testing_page_pass(tmp_path: Path, broker: EmbeddedCluster) -> None:
    for snippet in blocks("testing.md", "python"):
        first, _, _ = snippet.partition("\n")
        (tmp_path / first.removeprefix("# ")).write_text(snippet)
    (options,) = blocks("testing.md", "toml")
    (tmp_path / "pyproject.toml").write_text(
        options.replace(ADDRESS, broker.bootstrap) + 'addopts = "-W error --strict-config"\n'
    )
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "no:asyncio",
            "-p",
            "no:hypothesispytest",
            "-k",
            "not trio",
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "5 passed" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0
    assert f"bucketlog: the cluster at {broker.bootstrap}" in done.stdout


def test_every_line_of_the_cli_runs(tmp_path: Path) -> None:
    shell = shutil.which("bash")
    if shell is None:
        pytest.skip("no bash on this machine")
    script = "\n".join(["set -euo pipefail", *blocks("cli.md", "sh")])
    started, count = re.subn(r"^bucketlog dev .*\n", "", script, flags=re.MULTILINE)
    assert count == 1
    with EmbeddedCluster(tmp_path / "bucketlog-data") as cluster:
        done = subprocess.run(
            [shell, "-c", started.replace(ADDRESS, cluster.bootstrap)],
            cwd=tmp_path,
            env={
                **os.environ,
                "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
                "BUCKETLOG_BOOTSTRAP": cluster.bootstrap,
            },
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert '"key": "de", "value": "hallo"' in done.stdout
    assert "all sound" in done.stdout
    assert "2 records written to copy" in done.stderr
    assert "2 records written to again" in done.stderr
    assert '"engine": "local"' in done.stdout
