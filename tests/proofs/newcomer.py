"""The claim about whoever comes new: from a clone to a typed record, by the README alone; a target
of `tests.proofs`.

The commands, the program and what they print are taken from README.md of the clone.
"""

import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Timer

import psutil

from tests.models.readme import read_start, said_to_print
from tests.proofs.shortfall import Figures, ShortfallError
from tests.servers.cluster import free_port, is_free

ROOT = Path(__file__).parents[2]
ADDRESS = "localhost:9092"
PORT = 9092
LIMIT_S = 120
"""From the clone until the record is printed."""
GIVE_UP_S = 600
MARK = "@@"
DOWNLOAD = re.compile(r"(?:Downloading|Using cached) ([\w.]+)-\S+ \(([\d.]+) ([kM]B)\)")
READY = "is ready at"
KEPT = ("PATH", "LANG", "TMPDIR")
HOW_TO_REACH_PACKAGES = re.compile(
    r"(?i)(https?|all|no)_proxy|.*_ca_(bundle|certs)|ssl_cert_.*|pip_(cert|index_url|.*timeout)"
)


class Terminal:
    """A shell that runs a script, line by line; its last line goes on running."""

    def __init__(self, script: str, folder: Path, environment: dict[str, str]) -> None:
        lines = script.strip().splitlines()
        marked = [f"printf '%s\\n' {shlex.quote(MARK + line)}\n{line}" for line in lines]
        self.begun: list[tuple[str, float]] = []
        """Each line, and when it began."""
        self.printed: list[str] = []
        self._process = subprocess.Popen(
            ["bash", "-e", "-c", "\n".join(marked)],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def read_until(self, word: str) -> None:
        """Raises `ShortfallError` where the script ends before, or takes too long."""
        assert self._process.stdout is not None
        limit = Timer(GIVE_UP_S, self._signal, [signal.SIGKILL])
        limit.start()
        try:
            for line in self._process.stdout:
                if line.startswith(MARK):
                    self.begun.append((line.removeprefix(MARK).strip(), time.perf_counter()))
                else:
                    self.printed.append(line.rstrip())
                if word in line:
                    return
        finally:
            limit.cancel()
        raise ShortfallError("the README's commands failed", {"output_tail": self.printed[-20:]})

    def interrupt(self) -> list[str]:
        """Ctrl-C. Returns the processes that are left."""
        if self._process.poll() is not None:
            return []
        started = psutil.Process(self._process.pid).children(recursive=True)
        self._signal(signal.SIGINT)
        self._process.communicate()
        _, left = psutil.wait_procs(started, timeout=1)
        return [str(process) for process in left]

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)


def prove_newcomer(short: bool) -> Figures:
    """Clone, install, start, send and read a typed record by the README: within 2 minutes."""
    with tempfile.TemporaryDirectory(prefix="bucketlog-newcomer-") as folder:
        home, clone = Path(folder) / "home", Path(folder) / "bucketlog"
        home.mkdir()
        environment = clean_environment(home, short)
        began = time.perf_counter()
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        start = read_start((clone / "README.md").read_text())
        if not is_free(PORT):  # on a clean machine it is
            environment["BUCKETLOG_PORT"] = port = str(free_port())
            environment["BUCKETLOG_BOOTSTRAP"] = f"localhost:{port}"
            start = start._replace(program=start.program.replace(ADDRESS, f"localhost:{port}"))
        terminal = Terminal(start.install, clone, environment)
        try:
            terminal.read_until(READY)
            ready = time.perf_counter()
            (clone / start.program_name).write_text(start.program)
            done = subprocess.run(
                ["bash", "-ec", start.first + start.run],
                cwd=clone,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            ended = time.perf_counter()
        finally:
            left = terminal.interrupt()
    begun = [("git clone", began), *terminal.begun, ("records", ready)]
    ends = [at for _, at in begun[1:]] + [ended]
    figures: Figures = {
        "limit_s": LIMIT_S,
        "took_s": round(ended - began, 1),
        "steps_s": {name: round(end - at, 1) for (name, at), end in zip(begun, ends, strict=True)},
        "with_pip_cache": short,
        **downloads(terminal.printed),
    }
    if done.returncode or done.stdout != said_to_print(start.first) + said_to_print(start.run):
        raise ShortfallError(f"the README's programs: {done.stdout}{done.stderr}", figures)
    if left:
        raise ShortfallError(f"Ctrl-C left {left}", figures)
    if ended - began > LIMIT_S and not short:  # machines of CI are shared
        raise ShortfallError(f"it took {ended - began:.0f} s", figures)
    return figures


def downloads(printed: list[str]) -> Figures:
    """Of pip's lines."""
    kib = {"kB": 1 / 1000, "MB": 1.0}
    sizes = {
        found[1]: round(float(found[2]) * kib[found[3]], 1)
        for line in printed
        if (found := DOWNLOAD.search(line))
    }
    largest = sorted(sizes, key=lambda name: -sizes[name])[:5]
    return {
        "packages": len(sizes),
        "packages_mb": round(sum(sizes.values())),
        "largest_mb": {name: sizes[name] for name in largest},
    }


def clean_environment(home: Path, short: bool) -> dict[str, str]:
    """Nothing of whoever runs this but how packages are reached from here."""
    kept = {
        name: text
        for name, text in os.environ.items()
        if name in KEPT or HOW_TO_REACH_PACKAGES.fullmatch(name)
    }
    own = str(Path(sys.prefix) / "bin")
    path = os.pathsep.join(part for part in kept["PATH"].split(os.pathsep) if part != own)
    kept |= {"HOME": str(home), "PATH": path, "PIP_PROGRESS_BAR": "off"}
    if not short:
        return kept | {"PIP_NO_CACHE_DIR": "1"}
    caches = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    cache = os.environ.get("BUCKETLOG_CACHE") or f"{caches}/bucketlog"
    return kept | {"PIP_CACHE_DIR": f"{cache}/pip"}


NEWCOMER_TARGETS: dict[str, Callable[[bool], Figures]] = {"newcomer": prove_newcomer}
