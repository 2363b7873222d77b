"""Bad input to the command line: one line with the reason and the remedy, and nothing is lost."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from bucketlog.embedded.cluster import EmbeddedCluster
from tests.rigs.own_shell import OwnShell
from tests.scenarios.bad_input import ROWS, BadInput, complaints, kept, prepare

pytestmark = pytest.mark.long

ROWS_MIN = 60


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(tmp_path_factory.mktemp("bad-input") / "data") as cluster:
        yield cluster


def test_each_bad_input_is_one_line_with_a_remedy(
    cluster: EmbeddedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    shell = OwnShell(cluster.bootstrap)
    prepare(shell, tmp_path)
    before = kept(shell)
    places = {"folder": str(tmp_path), "bucket": cluster.bucket_url}

    found = [
        f"{row.command}: {each}"
        for row in ROWS
        for each in complaints(row, shell(*row.arguments(places), stdin=row.stdin))
    ]
    assert found == []
    assert kept(shell) == before
    assert len(ROWS) >= ROWS_MIN


def test_a_bad_answer_is_noticed() -> None:
    row = BadInput("topic list", 1, "reason")

    def answer(code: int, error: bytes, out: bytes = b"") -> list[str]:
        return list(complaints(row, subprocess.CompletedProcess([], code, out, error)))

    assert answer(1, b"bucketlog: reason (remedy)\n") == []
    assert answer(2, b"bucketlog: reason (remedy)\n") == ["exit code 2, not 1"]
    assert answer(1, b"bucketlog: reason (remedy)\n", b"x") == ["stdout has b'x'"]
    assert "a traceback" in answer(1, b"Traceback (most recent call last):\nreason (remedy)\n")
    assert answer(1, b"bucketlog: reason\n") == ["no remedy"]
    assert answer(1, b"bucketlog: no (remedy)\n") == ["'reason' is missing"]
