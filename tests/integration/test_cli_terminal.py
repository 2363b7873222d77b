"""Each verb as a person has it, in a terminal, and in pipes that break: counted, and one line."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pexpect
import pytest
from confluent_kafka import Consumer, TopicPartition

from bucketlog.embedded.cluster import EmbeddedCluster
from bucketlog.log_format.printable import printable_lines
from tests.rigs.patience import PATIENCE_S, eventually
from tests.rigs.shell import COMMAND, Shell
from tests.servers.stand_in_registry import ONE_SUBJECT, served_registry

pytestmark = pytest.mark.long

NOBODY = "127.0.0.1:1"
_numbers = count()


@pytest.fixture
def name() -> str:
    return f"terminal-{next(_numbers)}"


@pytest.fixture
def registry() -> Iterator[str]:
    with served_registry(ONE_SUBJECT) as url:
        yield url


@contextmanager
def terminal(shell: Shell, *arguments: str, columns: int = 200) -> Iterator[Any]:
    """It does not outlive the block."""
    child = pexpect.spawn(
        COMMAND[0],
        [*COMMAND[1:], *arguments],
        env={**shell.environment, "TERM": "xterm", "COLUMNS": str(columns)},
        encoding="utf-8",
        timeout=PATIENCE_S,
        dimensions=(40, columns),
    )
    try:
        yield child
    finally:
        child.close(force=True)


def ended(child: Any) -> tuple[int | None, str]:
    """Exit code, and what was shown since the last expectation."""
    child.expect(pexpect.EOF)
    child.wait()
    return child.exitstatus, child.before


def piped(shell: Shell, line: str) -> "subprocess.CompletedProcess[bytes]":
    """A line of the shell, in which `bucketlog` is this one; the code is the first program's."""
    ours = f'bucketlog() {{ {sys.executable} -m bucketlog.cli "$@"; }}'
    command = ["bash", "-c", f"{ours}; {line}; exit ${{PIPESTATUS[0]}}"]
    return subprocess.run(
        command, capture_output=True, env=shell.environment, timeout=PATIENCE_S, check=False
    )


def records_of(shell: Shell, name: str) -> int:
    described = json.loads(shell.ok("topic", "describe", name, "-o", "json"))
    return sum(part["records"] for part in described["partitions"])


def test_typed_lines_are_records(shell: Shell, name: str) -> None:
    shell.ok("topic", "create", name)
    with terminal(shell, "produce", name) as child:
        child.sendline("one")
        child.sendline("two")
        child.sendeof()
        code, shown = ended(child)
    assert code == 0
    assert f"2 records written to {name}" in shown
    assert shell.ok("consume", name, "-f", "start", "--until-end") == b"one\ntwo\n"


def test_ctrl_c_ends_typing_and_keeps_what_was_typed(shell: Shell, name: str) -> None:
    shell.ok("topic", "create", name)
    with terminal(shell, "produce", name) as child:
        child.sendline("one")
        child.sendline("two")
        wait_for_records(shell, name, 2)
        child.sendintr()
        code, shown = ended(child)
    assert code == 130
    assert "stopped at line 2: 2 records are acknowledged; to continue, send the rest" in shown
    assert "sed -n '3,$p'" in shown
    assert "Traceback" not in shown


def wait_for_records(shell: Shell, name: str, wanted: int) -> None:
    for _ in range(50):
        if records_of(shell, name) == wanted:
            return
    pytest.fail(f"{name} has {records_of(shell, name)} records, not {wanted}")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_a_stopped_produce_says_is_what_is_there(
    shell: Shell, name: str, number: signal.Signals
) -> None:
    """Of a stream without an end, wherever the signal finds it."""
    shell.ok("topic", "create", name, "-p", "3")
    with shell.start("produce", name) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        for at in range(50_000):
            process.stdin.write(b"%d\n" % at)
        process.stdin.flush()
        process.send_signal(number)
        told = process.stderr.read().decode()
        assert process.wait(PATIENCE_S) == 128 + number
    found = re.search(r"stopped at line (\d+): ([\d,]+) records? (is|are) acknowledged", told)
    if found is None:  # it came before the first line
        assert told == ""
        assert records_of(shell, name) == 0
        return
    there = shell.ok("consume", name, "-f", "start", "--until-end").split()
    assert len(there) == int(found[2].replace(",", ""))
    assert len(set(there)) == len(there)
    assert told.count("\n") == 1


def test_tail_f_in_a_terminal_until_ctrl_c(shell: Shell, name: str) -> None:
    shell.ok("topic", "create", name)
    with terminal(shell, "consume", name, "-f", "0") as child:
        shell.ok("produce", name, stdin=b"hello\n")
        child.expect_exact("hello\r\n")
        child.sendintr()
        code, shown = ended(child)
    assert code == 130
    assert "Traceback" not in shown


def test_tables_and_questions_in_a_terminal(shell: Shell, name: str, tmp_path: Path) -> None:
    file = tmp_path / "topics.yaml"
    file.write_text(f"topics:\n  - {{name: {name}, partitions: 2}}\n")
    with terminal(shell, "apply", str(file)) as child:
        child.expect_exact(f"+ {name}  partitions 2")
        child.expect_exact("[y/N]: ")
        child.sendline("y")
        code, shown = ended(child)
        assert code == 0
        assert f"+ {name}: done" in shown
    with terminal(shell, "topic", "describe", name) as child:
        code, shown = ended(child)
        assert code == 0
        assert "PARTITION  EARLIEST  LATEST  RECORDS" in shown
    with terminal(shell, "topic", "delete", name) as child:
        child.expect_exact("[y/N]: ")
        child.sendline("")
        assert ended(child)[0] == 130
    with terminal(shell, "topic", "delete", name) as child:
        child.expect_exact("[y/N]: ")
        child.sendintr()
        code, shown = ended(child)
        assert code == 130
        assert "Traceback" not in shown
    assert records_of(shell, name) == 0, "still there"
    with terminal(shell, "topic", "delete", name, "--yes") as child:
        assert ended(child)[0] == 0


def test_load_in_a_terminal_until_ctrl_c(shell: Shell, name: str) -> None:
    shell.ok("topic", "create", name)
    with terminal(shell, "bench", "end-to-end", name, "-s", "60") as child:
        child.expect(r"\d s +[\d,]+ records  p50 [\d.]+ ms")
        child.sendintr()
        code, shown = ended(child)
    assert code == 130
    assert "RECORDS/S" in shown
    assert "end to end" in shown
    assert "Traceback" not in shown


def test_dev_in_a_terminal(shell: Shell) -> None:
    seed = ("--seed", "flights", "--seed-records", "50")
    with terminal(shell, "dev", "--port", "0", *seed) as child:
        child.expect_exact("Ctrl-C stops it.")
        child.expect_exact("topic flights: 50 records loaded")
        child.expect_exact('until="end"): ...')
        child.sendintr()
        code, shown = ended(child)
    assert code == 0
    assert shown.endswith("stopped\r\n")


def test_a_broker_in_a_terminal(tmp_path: Path, redis_url: str) -> None:
    there = Shell(NOBODY)
    there.environment |= {
        "BUCKETLOG_BUCKET_URL": f"file://{tmp_path}/bucket",
        "BUCKETLOG_REDIS_URL": redis_url,
        "BUCKETLOG_PORT": "0",
    }
    with terminal(there, "broker") as child:
        child.expect("ready")
        child.sendintr()
        code, shown = ended(child)
    assert code == 0
    assert "Traceback" not in shown


def test_groups_in_a_terminal(shell: Shell, name: str) -> None:
    shell.ok("topic", "create", name)
    shell.ok("produce", name, stdin=b"one\ntwo\n")
    with terminal(shell, "consume", name, "-g", name, "-f", "start") as child:
        child.expect_exact("one\r\ntwo\r\n")
        child.sendintr()
        assert ended(child)[0] == 130
    with terminal(shell, "group", "describe", name) as child:
        code, shown = ended(child)
        assert code == 0
        assert "lag 0" in shown, "what was shown is committed on Ctrl-C"
    with terminal(shell, "group", "reset", name, "--to", "start") as child:
        child.expect_exact(f"Reset 1 offset of group {name}? [y/N]: ")
        child.sendline("y")
        assert ended(child)[0] == 0
    assert shell.ok("consume", name, "-g", name, "--until-end") == b"one\ntwo\n"
    with terminal(shell, "group", "delete", name) as child:
        child.expect_exact("[y/N]: ")
        child.sendline("yes")
        assert ended(child)[0] == 0


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("topic list", "PARTITIONS"),
        ("group list", "STATE"),
        ("replay {bucket} {name}", '"value": "x"'),
        ("schema list --registry-url {registry}", "VERSIONS"),
        ("schema show s --registry-url {registry}", "string"),
        ("schema delete s --dry-run --registry-url {registry}", "REFERENCED BY"),
        ("segment ls {bucket}", "BATCHES"),
        ("segment verify {bucket}", "all sound"),
        ("segment gc {bucket} --dry-run", "REASON"),
        ("cost {bucket}", "prices in USD"),
        ("bench consume {name}", "RECORDS/S"),
        ("config show", "BUCKETLOG_BOOTSTRAP"),
        ("config list", "IN USE"),
        ("completion zsh", "compdef"),
    ],
)
def test_what_is_shown_in_a_terminal(
    shell: Shell, name: str, broker: EmbeddedCluster, registry: str, line: str, shown: str
) -> None:
    shell.ok("topic", "create", name)
    shell.ok("produce", name, stdin=b"x\n")
    command = line.format(
        name=name, bucket=broker.bucket_url, address=broker.bootstrap, registry=registry
    )
    with terminal(shell, *command.split()) as child:
        code, text = ended(child)
    assert code == 0, text
    assert shown in text
    assert "Traceback" not in text


@pytest.mark.parametrize(
    "line",
    [
        "topic list",
        "replay {bucket} {name}",
        "topic describe {name} --groups-max 100000 -o json",
        "group list",
        "consume {name} -f start --until-end -o jsonl",
        "schema list --registry-url {registry}",
        "segment ls {bucket}",
        "segment verify {bucket}",
        "bench consume {name}",
        "cost {bucket}",
        "config show --all",
        "completion bash",
        "--help",
    ],
)
def test_a_reader_that_is_gone_is_no_error_of_ours(
    shell: Shell, name: str, broker: EmbeddedCluster, registry: str, line: str
) -> None:
    shell.ok("topic", "create", name)
    shell.ok("produce", name, stdin=b"x\n" * 100)
    command = line.format(name=name, bucket=broker.bucket_url, registry=registry)
    done = piped(shell, f"bucketlog {command} | true")
    assert done.returncode in (0, 141), done.stderr
    assert done.stderr == b""
    done = piped(shell, f"bucketlog {command} | head -1")
    assert done.returncode in (0, 141), done.stderr
    assert done.stdout.count(b"\n") == 1
    assert done.stderr == b""


def test_consume_pipes_into_produce_and_counts_agree(shell: Shell, name: str) -> None:
    for topic in (name, f"{name}-copy"):
        shell.ok("topic", "create", topic, "-p", "2")
    shell.ok("produce", name, stdin=b"".join(b"%d\n" % at for at in range(20_000)))
    done = piped(
        shell,
        f"bucketlog consume {name} -f start --until-end -o jsonl"
        f" | bucketlog produce {name}-copy --jsonl",
    )
    assert done.returncode == 0
    assert done.stderr.decode() == f"20,000 records written to {name}-copy\n"
    assert records_of(shell, f"{name}-copy") == 20_000


@pytest.mark.parametrize(
    "arguments",
    [
        ("produce", "t"),
        ("consume", "t"),
        ("bench", "produce", "t"),
        ("topic", "list"),
        ("group", "list"),
        ("user", "list"),
        ("apply", "-", "--yes"),
        ("doctor", NOBODY),
    ],
)
def test_nobody_there_is_one_line(arguments: tuple[str, ...]) -> None:
    complaint = Shell(NOBODY).failing(1, *arguments, stdin=b"topics: []\n")
    assert f"{NOBODY}: Connection refused" in complaint
    with terminal(Shell(NOBODY), *arguments) as child:
        child.sendline("topics: []")
        child.sendeof()
        code, shown = ended(child)
    assert code == 1
    assert "Connection refused" in shown


def test_bad_json_in_a_pipe(shell: Shell, name: str) -> None:
    shell.ok("topic", "create", name)
    done = piped(shell, f"printf '%s\\n' 1 2 | bucketlog produce {name} --jsonl")
    assert done.stderr.count(b"\n") == 1
    assert b"stdin, line 1: no object with a 'value'; 0 records are acknowledged" in done.stderr
    assert records_of(shell, name) == 0


STYLES = re.compile(r"\x1b\[[0-9;]*m")
TITLE = "\x1b]0;pwned\x07"
"""An escape sequence that sets the title of a terminal."""
SHOWN = r"\x1b]0;pwned\x07"


def test_names_by_others_do_not_steer_the_terminal(shell: Shell, name: str) -> None:
    shell.ok("topic", "create", name)
    shell.ok(
        "produce", name, "-K", "=", stdin=b"\xff%b=1\r2%b\n" % (TITLE.encode(), TITLE.encode())
    )
    group = f"{name}{TITLE}\x9b"
    member = Consumer(
        {
            "bootstrap.servers": shell.environment["BUCKETLOG_BOOTSTRAP"],
            "group.id": group,
            "client.id": f"me{TITLE}",
        }
    )
    try:
        member.subscribe([name])
        eventually(lambda: member.poll(0.1) is None and bool(member.assignment()), "it joins")
        member.commit(offsets=[TopicPartition(name, 0, 1, metadata=TITLE)], asynchronous=False)
        told = [
            shown_by(shell, *arguments)
            for arguments in (
                ("group", "list"),
                ("group", "describe", group),
                ("group", "describe", group, "-o", "json"),
                ("group", "delete", group, "--yes"),
                ("consume", name, "-f", "start", "--until-end", "-K", "="),
                ("topic", "describe", f"{name}{TITLE}"),
            )
        ]
    finally:
        member.close()
    assert [printable_lines(shown) for shown in told] == told
    assert all(SHOWN in shown for at, shown in enumerate(told) if at != 2)
    assert "me" in told[1]
    raw = shell.ok("consume", name, "-f", "start", "--until-end")
    assert raw == f"1\r2{TITLE}\n".encode()


def shown_by(shell: Shell, *arguments: str) -> str:
    """The output on a terminal, with the line ends of a pipe, and without bold and colours."""
    with terminal(shell, *arguments) as child:
        return STYLES.sub("", ended(child)[1].replace("\r\n", "\n"))
