"""`make up` and `make down`: what is up can be used, what is down is gone."""

import os
import signal
from pathlib import Path
from typing import NoReturn

import psutil
import pytest

import bucketlog
from bucketlog import Topic
from bucketlog.embedded.folder import is_alive
from bucketlog.log_format.errors import ConfigurationError
from localstack.keeper import FILE, Deployment, keep, keeper_of
from localstack.up import DeploymentError, down, main, up
from tests.rigs.file_modes import exposed
from tests.rigs.patience import PATIENCE_S

pytestmark = pytest.mark.long

WORDS = Topic("words", value=str)


def write(found: Deployment, text: str) -> list[str]:
    with bucketlog.connect(found.bootstrap) as log:
        log.topics.ensure(WORDS)
        with log.producer() as producer:
            producer.send(WORDS, text)
        with log.consumer(WORDS, start="earliest", until="end") as consumer:
            return [record.value for record in consumer]


def test_up_twice_down_twice_and_up_again(tmp_path: Path, no_umask: None) -> None:
    tmp_path /= "data"
    first = up(FILE, tmp_path, 0)
    try:
        assert len(first.bootstrap.split(",")) == 2
        assert up(FILE, tmp_path, 0) == first
        with pytest.raises(ConfigurationError, match="a deployment on file is up"):
            up("minio", tmp_path, 0)
        assert write(first, "one") == ["one"]
        assert exposed(tmp_path) == []
    finally:
        assert down(tmp_path)
    assert [pid for pid in first.pids.values() if is_alive(pid)] == []
    assert not down(tmp_path)
    second = up(FILE, tmp_path, 0)
    try:
        assert write(second, "two") == ["one", "two"]
        os.kill(second.pids["keeper"], signal.SIGKILL)
        psutil.wait_procs([psutil.Process(second.pids["guard"])], timeout=PATIENCE_S)
        third = up(FILE, tmp_path, 0)
        assert write(third, "three") == ["one", "two", "three"]
    finally:
        down(tmp_path)


def test_what_does_not_start_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BUCKETLOG_FLUSH_BYTES", "0")
    with pytest.raises(DeploymentError, match="BUCKETLOG_FLUSH_BYTES"):
        up(FILE, tmp_path, 0)
    assert not down(tmp_path)


def test_the_folder_is_held_before_a_store_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else two would start a store on the same data, and `down` would find nothing to end."""
    holders: list[int | None] = []

    def running(*_: object) -> NoReturn:
        holders.append(keeper_of(tmp_path))
        raise ConfigurationError("enough")

    monkeypatch.setattr("localstack.keeper.running", running)
    with pytest.raises(ConfigurationError, match="enough"):
        keep("minio", tmp_path, 0)
    assert holders == [os.getpid()]
    assert keeper_of(tmp_path) is None


@pytest.mark.parametrize("what", [["file", "--port", "0"], ["--down"]])
def test_a_folder_that_cannot_be_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], what: list[str]
) -> None:
    (tmp_path / "file").touch()
    assert main([*what, "--data", str(tmp_path / "file" / "below")]) == 1
    assert "cannot hold a deployment" in capsys.readouterr().err
