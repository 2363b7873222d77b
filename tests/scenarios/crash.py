"""`bucketlog dev` killed with kill -9 under load, and started again on the same data.

At full size, from the repository's root: `make prove WHAT=crash`. Killed are all processes of it:
broker, Valkey, guard and the command itself, in another order each time. Idempotent producers go
on through all of it with their own retries.
"""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

from tests.models.history import History, Log
from tests.models.promises import check
from tests.rigs.patience import PATIENCE_S
from tests.scenarios.load import Load, read_to_end
from tests.scenarios.round_trip import create_topic

TOPIC = "crash"
PARTITIONS = 3
PRODUCERS = 2


@dataclass(frozen=True, slots=True)
class CrashFigures:
    kills: int
    acknowledged: int
    in_log: int
    broken_promises: int
    slowest_restart_s: float
    seconds: float

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


class DevCommand:
    """`bucketlog dev --data …` as a person starts it."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._port = 0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self._port}"

    def start(self) -> float:
        """Returns the seconds until it said that it is ready. Its port stays the same."""
        began = time.perf_counter()
        command = str(Path(sys.executable).with_name("bucketlog"))
        self._process = subprocess.Popen(
            [command, "dev", "--data", str(self._data), "--port", str(self._port)],
            stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
        )
        output = self._process.stdout
        assert output is not None
        ready, _, _ = select.select([output], [], [], PATIENCE_S)
        line = output.readline().decode() if ready else ""
        if "ready at" not in line:
            raise AssertionError(f"`bucketlog dev` did not come up: {line!r}")
        self._port = int(line.strip().rpartition(":")[2])
        return time.perf_counter() - began

    def kill(self, turn: int) -> int:
        """kill -9 of the command and every process under it; returns how many there were."""
        assert self._process is not None
        process = psutil.Process(self._process.pid)
        family = [process, *process.children(recursive=True)]
        turn %= len(family)
        for member in family[turn:] + family[:turn]:
            try:
                os.kill(member.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # it ended with one that was killed before
        psutil.wait_procs(family, PATIENCE_S)
        self._reap()
        return len(family)

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._reap()

    def _reap(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        self._process.wait(PATIENCE_S)
        self._process.stdout.close()
        self._process = None


def crash(data: Path, kills: int, *, records_between: int) -> CrashFigures:
    """`kills` times: let both producers get `records_between` acknowledged, kill, start again and
    hold the log against all acknowledgements so far. Raises `AssertionError`; nothing is left
    running."""
    began = time.perf_counter()
    command = DevCommand(data)
    history = History()
    try:
        slowest = command.start()
        create_topic(command.bootstrap, TOPIC, PARTITIONS)
        loads = [
            Load(f"producer-{n}", command.bootstrap, history, topic=TOPIC, partitions=PARTITIONS)
            for n in range(PRODUCERS)
        ]
        restart_s = _under_load(command, loads, kills, records_between)
        failures = [text for load in loads for text in load.failures]
        log = _read(command, history)
    finally:
        command.stop()
    assert not failures, "\n".join(failures[:10])
    check(history, log)
    return CrashFigures(
        kills=kills,
        acknowledged=len(history.acknowledged),
        in_log=sum(len(rows) for rows in log.values()),
        broken_promises=0,
        slowest_restart_s=round(max(slowest, restart_s), 2),
        seconds=round(time.perf_counter() - began, 1),
    )


def _read(command: DevCommand, history: History) -> Log:
    return read_to_end(command.bootstrap, history, topic=TOPIC, partitions=PARTITIONS)


def _under_load(
    command: DevCommand, loads: Sequence[Load], kills: int, records_between: int
) -> float:
    """The slowest restart in seconds. After each one the log is read."""
    slowest = 0.0
    for load in loads:
        load.start()
    try:
        for turn in range(kills):
            for load in loads:
                load.wait_for(records_between)
            command.kill(turn)
            slowest = max(slowest, command.start())
            _read(command, loads[0].history)
        for load in loads:
            load.wait_for(records_between)
    finally:
        for load in loads:
            load.stop()
    return slowest
