"""Every verb of the command line in a terminal of 80 columns.

Each command runs in a pseudo-terminal. Standard output and standard error have one each, so that
their lines can be told apart: data must fit, and an error stays one line, which a terminal folds.
"""

import errno
import fcntl
import os
import pty
import re
import shlex
import struct
import subprocess
import termios
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Thread
from typing import NamedTuple

from tests.rigs.shell import COMMAND

COLUMNS, ROWS = 80, 1000
TIMEOUT_S = 300.0
_READ_BYTES = 1 << 16
_BARS = re.compile(r"(\x1b\[\?25l)?[^\n]*\x1b\[2K.*?\x1b\[1A\x1b\[2K", re.DOTALL)
"""A progress bar, which erases itself at its end."""
_SEQUENCES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")

SESSIONS: Mapping[str, Sequence[str]] = {
    "topics": (
        "topic create orders -p 3 -c retention.ms=604800000",
        "topic create old",
        "topic list",
        "produce orders orders.txt -K :",
        "group reset billing --topic orders --to start --yes",
        "topic describe orders",
        "topic alter orders --retention 1d -c segment.ms=3600000",
        "topic add-partitions orders 4 --yes",
        "topic trim orders --before 1 --dry-run",
        "topic delete old --yes",
        "apply topics.yaml --dry-run",
    ),
    "records": (
        "produce orders more.txt -k ann -H source=shop",
        "consume orders --from start --until-end",
        "consume orders --from start --until-end -o jsonl",
        "consume orders --from start --until-end --format '%t[%p]@%o %k %v %h'",
        "consume nowhere",
    ),
    "groups": (
        "group list",
        "group describe billing",
        "group reset billing --topic orders --to end --dry-run",
        "group reset invoices --topic orders --to 1 --yes",
        "group delete invoices --yes",
        "transaction list",
        "transaction describe billing-1",
        "transaction abort billing-1 --yes",
    ),
    "deadletters": (
        "topic create orders-dead",
        "produce orders-dead dead.jsonl --jsonl",
        "deadletter list orders-dead",
        "deadletter show orders-dead",
        "deadletter replay orders-dead --dry-run",
    ),
    "cluster": (
        "cluster info",
        "cluster health",
        "cluster health --http http://127.0.0.1:1",
        "broker list",
        "client list",
        "top --once --interval-s 0.5",
        "topic list -b 127.0.0.1:1",
    ),
    "users": (
        "user add ann --new-password-file password.txt",
        "user list",
        "user password ann --new-password-file password.txt",
        "acl add --allow-principal User:ann --topic orders --producer --dry-run",
        "acl add --allow-principal User:ann --topic orders --producer",
        "acl list",
        "acl wait",
        "acl delete --principal User:ann --topic orders --yes",
        "user delete ann --yes",
    ),
    "bucket": (
        "segment ls BUCKET --topic orders-dead",
        "segment facts BUCKET",
        "segment inspect BUCKET KEY",
        "segment verify BUCKET",
        "segment gc BUCKET --dry-run",
        "locate BUCKET orders-dead 0 0",
        "doctor BUCKET",
        "cost BUCKET",
        "replay BUCKET orders-dead",
    ),
    "bench": (
        "bench produce load --create --records 2000 --seconds 5",
        "bench consume load",
        "bench end-to-end load --records 200 --rate 200",
    ),
    "settings": (
        "--profile shop config set bootstrap broker-1:9092",
        "config list",
        "config use shop",
        "config show",
    ),
    "help": ("--help", "topic --help", "topic trim --help"),
    "help-servers": ("dev --help", "broker --help", "console --help", "completion --help"),
    "help-jobs": ("top --help", "demo --help", "spark replay --help", "spark ingest --help"),
    "help-copies": ("mirror --help", "export --help", "cluster init --help"),
}
"""By the name of their picture. BUCKET is the bucket's URL, KEY the key of a segment."""
CODES: Mapping[str, int] = {
    "apply topics.yaml --dry-run": 3,
    "consume nowhere": 1,
    "transaction describe billing-1": 1,
    "transaction abort billing-1 --yes": 1,
    "cluster health --http http://127.0.0.1:1": 1,
    "topic list -b 127.0.0.1:1": 1,
}
"""Exit codes other than 0."""
FILES: Mapping[str, str] = {
    "orders.txt": "ann:2 apples\nbob:1 pear\ncleo:12 plums\n",
    "more.txt": "3 quinces\n",
    "topics.yaml": "topics:\n  - {name: orders, partitions: 4, retention: 7d}\n"
    "  - {name: users, configs: {cleanup.policy: compact}}\n",
    "dead.jsonl": '{"key": "k1", "value": "12 EUR", "headers": [["__connect.errors.topic", '
    '"orders"], ["__connect.errors.exception.class.name", "OutOfStock"]]}\n',
    "credentials.keys": f"{'5a' * 32}\n",
    "password.txt": "a long secret\n",
}


class Shown(NamedTuple):
    """What a command showed: the bytes of standard output and of standard error."""

    command: str
    code: int
    out: str
    error: str

    def wide_lines(self) -> list[str]:
        """The lines of standard output that the terminal had to fold, but for lines of JSON."""
        lines = (line.rstrip("\r") for line in _SEQUENCES.sub("", self.out).split("\n"))
        return [line for line in lines if len(line) > COLUMNS and not line.startswith("{")]


def write_files(folder: Path) -> None:
    for name, text in FILES.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o600)


def shown(command: str, folder: Path, environment: Mapping[str, str], bucket: str) -> Shown:
    """Run a command in `folder`, in a terminal. Raises `TimeoutExpired`."""
    words = shlex.split(command)
    if "KEY" in words:
        words[words.index("KEY")] = _newest_key(bucket, environment)
    words = [bucket if word == "BUCKET" else word for word in words]
    terminals = [_terminal(), _terminal()]
    texts: list[bytes] = [b"", b""]

    def read(at: int) -> None:
        texts[at] = _all_of(terminals[at][0])

    readers = [Thread(target=read, args=(at,)) for at in (0, 1)]
    with subprocess.Popen(
        [*COMMAND, *words],
        cwd=folder,
        env={**os.environ, **environment, "TERM": "xterm-256color"},
        stdin=terminals[0][1],
        stdout=terminals[0][1],
        stderr=terminals[1][1],
        start_new_session=True,
    ) as process:
        for _, ours in terminals:
            os.close(ours)
        for reader in readers:
            reader.start()
        try:
            code = process.wait(TIMEOUT_S)
        finally:
            process.kill()
            for reader in readers:
                reader.join()
            for theirs, _ in terminals:
                os.close(theirs)
    out, error = (text.decode().replace("\r\n", "\n") for text in texts)
    return Shown(command, code, out, _BARS.sub("", error))


def _terminal() -> tuple[int, int]:
    theirs, ours = pty.openpty()
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    return theirs, ours


def _all_of(terminal: int) -> bytes:
    data = bytearray()
    while True:
        try:
            part = os.read(terminal, _READ_BYTES)
        except OSError as error:
            if error.errno == errno.EIO:  # nobody has its other side any more
                return bytes(data)
            raise
        if not part:
            return bytes(data)
        data += part


def _newest_key(bucket: str, environment: Mapping[str, str]) -> str:
    listed = subprocess.run(
        [*COMMAND, "segment", "ls", bucket, "--topic", "orders-dead", "-o", "jsonl"],
        env={**os.environ, **environment},
        capture_output=True,
        check=True,
    )
    found = re.findall(rb'"key": "([^"]+)"', listed.stdout)
    return str(found[-1].decode())
