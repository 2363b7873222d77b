"""The claims about the command line; targets of `tests.proofs`."""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bucketlog.embedded.cluster import EmbeddedCluster
from tests.proofs.shortfall import Figures, ShortfallError
from tests.rigs.shell import Shell
from tests.scenarios.bad_input import ROWS, BadInput, complaints, kept, prepare
from tests.scenarios.terminal_pictures import write_pictures
from tests.scenarios.terminal_session import CODES, COLUMNS, SESSIONS, shown, write_files

ROOT = Path(__file__).parents[2]
BUCKETLOG = str(Path(sys.executable).with_name("bucketlog"))
SHORT_RUNS, FULL_RUNS = 3, 20
HELP_MS_MAX = 150.0
OTHER_PAGES = (("topic", "--help"), ("consume", "--help"))
"""Told, and not limited: typer reads a command's values by pydantic, which takes most of it."""

SHORT_STEP, SHORT_SESSIONS = 10, ("cluster",)
PICTURES = ROOT / "docs" / "pictures" / "terminal"
OPEN_TO_ALL = {"authorization": "true", "super_users": "User:ANONYMOUS", "transactions": "true"}

SHORT_STARTS, FULL_STARTS = 1, 9
READY_S_MAX = 2.0
STARTS = {
    "one broker": ("ready at",),
    "three brokers": ("ready at", "--brokers", "3"),
    "one broker and 10,000 flights": ("records loaded", "--seed", "flights"),
}
"""What is waited for, and the flags. Told but for the first: machines have two cores."""


def timed(command: list[str]) -> tuple[float, float]:
    """Milliseconds by the clock, and of CPU, of a process that ends with 0."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    done = subprocess.run(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False, env=environment
    )
    took_ms = (time.perf_counter() - began) * 1000
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr.decode()
    cpu_s = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return took_ms, cpu_s * 1000


def prove_cli_start(short: bool) -> Figures:
    """`bucketlog --help` within 150 ms (median), after a first run."""
    runs = SHORT_RUNS if short else FULL_RUNS
    python = [timed([sys.executable, "-c", "pass"]) for _ in range(runs)]
    figures: Figures = {"runs": runs, "limit_ms": HELP_MS_MAX, "python_alone_ms": _middle(python)}
    for page in (("--help",), *OTHER_PAGES):
        timed([BUCKETLOG, *page])  # whoever comes first compiles
        taken = [timed([BUCKETLOG, *page]) for _ in range(runs)]
        figures[" ".join(page)] = {
            "p50_ms": _middle(taken),
            "fastest_ms": round(min(wall for wall, _ in taken), 1),
            "cpu_ms": round(statistics.median(cpu for _, cpu in taken), 1),
        }
    median_ms = figures["--help"]["p50_ms"]
    if median_ms > HELP_MS_MAX and not short:  # machines of CI are shared
        raise ShortfallError(f"bucketlog --help took {median_ms:g} ms", figures)
    return figures


def _middle(taken: list[tuple[float, float]]) -> float:
    return round(statistics.median(wall for wall, _ in taken), 1)


def seconds_to(words: str, *flags: str) -> float:
    """From the start of `bucketlog dev` to the line with `words`. It has ended then."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    began = time.perf_counter()
    with subprocess.Popen(
        [BUCKETLOG, "dev", "--port", "0", *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    ) as process:
        assert process.stdout is not None
        try:
            if not any(words in line for line in process.stdout):
                raise ShortfallError(f"bucketlog dev {' '.join(flags)} never said: {words}", {})
            return time.perf_counter() - began
        finally:
            process.terminate()


def prove_dev_start(short: bool) -> Figures:
    """`bucketlog dev` is ready within 2 s (median): Valkey, a broker, an empty folder."""
    runs = SHORT_STARTS if short else FULL_STARTS
    figures: Figures = {"runs": runs, "limit_s": READY_S_MAX}
    for name, (words, *flags) in STARTS.items():
        taken = [seconds_to(words, *flags) for _ in range(runs)]
        figures[name] = {
            "p50_s": round(statistics.median(taken), 2),
            "fastest_s": round(min(taken), 2),
        }
    median_s = figures["one broker"]["p50_s"]
    if median_s > READY_S_MAX and not short:
        raise ShortfallError(f"bucketlog dev took {median_s:g} s", figures)
    return figures


def prove_cli(short: bool) -> Figures:
    """Each kind of bad input is answered by one line with reason and remedy, and loses nothing;
    each verb fits a terminal of 80 columns. The full form draws docs/pictures/terminal."""
    with tempfile.TemporaryDirectory(prefix="bucketlog-prove-") as name:
        folder = Path(name).resolve()
        figures = _answers(folder, ROWS[::SHORT_STEP] if short else ROWS)
        sessions = SHORT_SESSIONS if short else tuple(SESSIONS)
        return figures | _sessions(folder, sessions, None if short else PICTURES)


def _answers(folder: Path, rows: Sequence[BadInput]) -> Figures:
    with EmbeddedCluster(folder / "data") as cluster:
        shell = Shell(cluster.bootstrap)
        shell.environment["XDG_CONFIG_HOME"] = str(folder / "settings")
        prepare(shell, folder)
        before = kept(shell)
        places = {"folder": str(folder), "bucket": cluster.bucket_url}
        wrong = [
            f"{row.command}: {each}"
            for row in rows
            for each in complaints(row, shell(*row.arguments(places), stdin=row.stdin))
        ]
        is_kept = kept(shell) == before
    figures: Figures = {"bad_inputs": len(rows), "wrong_answers": wrong}
    if wrong or not is_kept:
        raise ShortfallError("; ".join(wrong) or "bad input changed the log", figures)
    return figures


def _sessions(folder: Path, names: Sequence[str], pictures: Path | None) -> Figures:
    figures: Figures = {"columns": COLUMNS, "sessions": len(names), "commands": 0}
    write_files(folder)
    settings = {**OPEN_TO_ALL, "credentials_key_file": str(folder / "credentials.keys")}
    with EmbeddedCluster(folder / "log", settings=settings) as cluster:
        environment = {
            "BUCKETLOG_BOOTSTRAP": cluster.bootstrap,
            "XDG_CONFIG_HOME": str(folder / "terminal"),
        }
        for name in names:
            session = [
                shown(command, folder, environment, cluster.bucket_url)
                for command in SESSIONS[name]
            ]
            figures["commands"] += len(session)
            for each in session:
                if each.code != CODES.get(each.command, 0) or each.wide_lines():
                    raise ShortfallError(f"{each}: {each.wide_lines()}", figures)
            if pictures is not None:
                size = write_pictures(pictures, name, session)
                figures["picture_bytes"] = figures.get("picture_bytes", 0) + size
    return figures


CLI_TARGETS: dict[str, Callable[[bool], Figures]] = {
    "cli": prove_cli,
    "cli-start": prove_cli_start,
    "dev-start": prove_dev_start,
}
