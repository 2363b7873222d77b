"""A broker for chaos: `python -m` of this module. Its clock jumps, and a rule of it may be broken.

Everything else is the product's code. While the folder `CHAOS_CLOCKS` has a file of seconds for the
broker, its wall clock is ahead by these seconds. `CHAOS_BREAK` names a rule of
tests/servers/broken_rules.py.
"""

import os
import sys
import threading
import time
from pathlib import Path
from unittest import mock

from bucketlog.stateless_broker.process.main import run
from tests.rigs.patience import let_pass
from tests.servers.broken_rules import break_rule

CLOCK = "CHAOS_CLOCKS"
BREAK = "CHAOS_BREAK"
LOOK_S = 0.1


def clock_file(folder: str, node_id: int) -> Path:
    return Path(folder, f"broker-{node_id}")


def set_clock(folder: str, node_id: int, seconds: float) -> None:
    """The broker's wall clock is ahead by `seconds`, from its next look on."""
    path = clock_file(folder, node_id)
    written = path.with_suffix(".new")
    written.write_text(str(seconds))
    written.replace(path)


class JumpingClock:
    """A wall clock that is ahead by what its file says, as of the last look."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._ahead_s = 0.0
        self._time, self._time_ns = time.time, time.time_ns

    def look(self) -> None:
        if self._path.exists():
            self._ahead_s = float(self._path.read_text())

    def look_on(self) -> None:
        while True:
            self.look()
            let_pass(LOOK_S)

    def time(self) -> float:
        return self._time() + self._ahead_s

    def time_ns(self) -> int:
        return self._time_ns() + int(self._ahead_s * 1e9)


def main() -> int:
    folder = os.environ.get(CLOCK)
    if folder is not None:
        clock = JumpingClock(clock_file(folder, int(os.environ["BUCKETLOG_NODE_ID"])))
        mock.patch.object(time, "time", clock.time).start()
        mock.patch.object(time, "time_ns", clock.time_ns).start()
        threading.Thread(target=clock.look_on, name="chaos clock", daemon=True).start()
    rule = os.environ.get(BREAK)
    if rule is not None:
        break_rule(rule)
    return run()


if __name__ == "__main__":
    sys.exit(main())
