"""The command line as a person and a pipe use it, against a real broker."""

import json
import os
import pty
import re
import select
import shlex
import signal
import subprocess
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import psutil
import pytest

import bucketlog
from bucketlog import Topic
from bucketlog.embedded.cluster import EmbeddedCluster
from tests.rigs.patience import PATIENCE_S, eventually
from tests.rigs.shell import COMMAND, Shell

pytestmark = pytest.mark.long

_numbers = count()


@pytest.fixture
def name() -> str:
    return f"cli-{next(_numbers)}"


def test_topics(shell: Shell, name: str) -> None:
    shell.ok("topic", "create", name, "-p", "3", "-c", "max.message.bytes=5000")
    complaint = shell.failing(1, "topic", "create", name)
    assert "TOPIC_ALREADY_EXISTS" in complaint
    assert "--if-not-exists" in complaint
    shell.ok("topic", "create", name, "--if-not-exists")
    complaint = shell.failing(2, "topic", "create", name, "--if-not-exists", "-p", "4")
    assert "has 3 partitions, not 4 (`bucketlog topic add-partitions" in complaint
    rows = json.loads(shell.ok("topic", "list", "-o", "json"))
    assert {"topic": name, "partitions": 3} in rows
    assert name.encode() in shell.ok("topic", "list")
    shell.ok("produce", name, stdin=b"a\nb\n")
    described = json.loads(shell.ok("topic", "describe", name, "-o", "json"))
    assert sum(part["records"] for part in described["partitions"]) == 2
    assert described["configs"]["max.message.bytes"] == "5000"
    assert b"EARLIEST" in shell.ok("topic", "describe", name)
    asked = shell("topic", "delete", name, stdin=b"n\n")
    assert asked.returncode == 130
    assert "nobody answered (add --yes)" in shell.failing(2, "topic", "delete", name)
    shell.ok("topic", "delete", name, "-y")
    assert "UNKNOWN_TOPIC" in shell.failing(1, "topic", "describe", name)


def test_lines_there_and_back(shell: Shell, name: str) -> None:
    shell.ok("topic", "create", name)
    shell.ok("produce", name, stdin=b"one\ntwo\r\n\nno newline")
    assert shell.ok("consume", name, "-f", "start", "--until-end") == b"one\ntwo\n\nno newline\n"
    assert shell.ok("consume", name, "-f", "start", "-n", "2") == b"one\ntwo\n"
    assert shell.ok("consume", name, "-f", "3", "-n", "1") == b"no newline\n"
    assert shell.ok("consume", name, "-n", "0") == b""


def test_keys_and_a_file(shell: Shell, name: str, tmp_path: Path) -> None:
    shell.ok("topic", "create", name, "-p", "2")
    lines = tmp_path / "lines"
    lines.write_bytes(b"k\tv\nl\tw\tx\n")
    shell.ok("produce", name, str(lines), "-K", r"\t", "--compression", "zstd")
    back = shell.ok("consume", name, "-f", "start", "--until-end", "-K", r"\t")
    assert sorted(back.splitlines()) == [b"k\tv", b"l\tw\tx"]


def test_a_key_and_headers_for_all_and_a_format(shell: Shell, name: str) -> None:
    shell.ok("topic", "create", name)
    shell.ok("produce", name, "-k", "ann", "-H", "source=test", "-H", "n=1", stdin=b"one\ntwo\n")
    shown = shell.ok("consume", name, "-f", "start", "-n", "2", "-F", "%t %p %o %k %v{hex} %h")
    assert shown.decode().splitlines() == [
        f"{name} 0 0 ann 6f6e65 source=test,n=1",
        f"{name} 0 1 ann 74776f source=test,n=1",
    ]


def test_jsonl_of_consume_pipes_into_produce(
    shell: Shell, name: str, broker: EmbeddedCluster
) -> None:
    first, second = Topic(f"{name}-a"), Topic(f"{name}-b")
    with bucketlog.connect(broker.bootstrap) as log:
        log.topics.create(first)
        log.topics.create(second)
        with log.producer() as producer:
            producer.send(first, b"\xff\x00", key=b"k", headers=[("a", b"\xfe"), ("b", "t")])
            producer.send(first, None, key=b"gone", timestamp_ms=1_700_000_000_000)
            producer.send(first, '{"ä": 1}\n'.encode())
        text = shell.ok("consume", first.name, "-f", "start", "--until-end", "-o", "jsonl")
        assert text.count(b"\n") == 3
        shell.ok("produce", second.name, "--jsonl", stdin=text)
        copies = []
        for topic in (first, second):
            with log.consumer(topic, start="earliest", until="end") as consumer:
                copies.append(
                    [
                        (r.key, r.is_tombstone or r.value, r.headers, r.timestamp_ms)
                        for r in consumer
                    ]
                )
    assert copies[0] == copies[1]


def test_bad_json_names_the_line_and_keeps_what_came_before(shell: Shell, name: str) -> None:
    shell.ok("topic", "create", name)
    complaint = shell.failing(1, "produce", name, "--jsonl", stdin=b'{"value": "good"}\n{bad\n')
    assert "stdin, line 2: not JSON" in complaint
    assert "; 1 record is acknowledged (" in complaint
    assert "sed -n '2,$p'" in complaint
    assert shell.ok("consume", name, "-f", "start", "--until-end") == b"good\n"


def test_a_line_without_the_separator_is_named(shell: Shell, name: str) -> None:
    shell.ok("topic", "create", name)
    assert "line 1" in shell.failing(1, "produce", name, "-K", ":", stdin=b"no key\n")


def test_a_wrong_topic(shell: Shell) -> None:
    for verb in ("produce", "consume"):
        complaint = shell.failing(1, verb, "nowhere", stdin=b"x\n")
        assert "'nowhere'" in complaint
        assert "`bucketlog topic create nowhere` creates it" in complaint
    shell.ok("topic", "create", "somewhere", "--if-not-exists")
    for arguments in (
        ("delete", "somwhere", "-y"),
        ("delete", "somwhere"),
        ("describe", "somwhere"),
    ):
        complaint = shell.failing(1, "topic", *arguments)
        assert "did you mean 'somewhere'? `bucketlog topic list` shows" in complaint
        assert "topic create" not in complaint
    assert "is not a topic name" in shell.failing(2, "produce", "no where", stdin=b"x\n")


def test_a_wrong_name_is_told_the_rule_once(shell: Shell, name: str) -> None:
    assert shell.failing(1, "topic", "create", "a b").count("letters, digits") == 1
    shell.ok("topic", "create", f"{name}.x")
    complaint = shell.failing(1, "topic", "create", f"{name}_x")
    assert f"collides with existing topic: {name}.x" in complaint
    assert complaint.endswith("(choose another name)\n")


def test_an_offset_past_the_end(shell: Shell, name: str) -> None:
    shell.ok("topic", "create", name)
    complaint = shell.failing(1, "consume", name, "-f", "100", "-n", "1")
    assert "start from the earliest or latest record" in complaint


def test_a_wrong_partition(shell: Shell, name: str) -> None:
    shell.ok("topic", "create", name)
    assert "no partition 7" in shell.failing(2, "consume", name, "-p", "7")


def test_a_record_too_large_is_one_line(shell: Shell, name: str) -> None:
    shell.ok("topic", "create", name, "-c", "max.message.bytes=1000")
    stdin = b"a\nb\n" + b"x" * 5000 + b"\nc\n"
    complaint = shell.failing(1, "produce", name, stdin=stdin)
    assert "MESSAGE_TOO_LARGE" in complaint
    assert re.search(r"stdin, line \d: ", complaint)


def sent_on(complaint: str, text: bytes) -> bytes:
    """What the remedy's command gives of the input."""
    found = re.search(r"sed -n (-f \S+|'[^']+')", complaint)
    assert found is not None, complaint
    command = ["sed", "-n", *shlex.split(found[1])]
    return subprocess.run(command, input=text, capture_output=True, check=True).stdout


def test_a_refused_record_loses_none_and_repeats_none(
    shell: Shell, name: str, tmp_path: Path
) -> None:
    """A compacted topic takes no record without a key: its batch is refused whole, and what came
    before and beside it stands. What the remedy sends, corrected, is exactly what is missing."""
    shell.ok("topic", "create", name, "-p", "4", "-c", "cleanup.policy=compact")
    rows = [json.dumps({"key": f"k{at}", "value": str(at)}) for at in range(30_000)]
    rows[20_000] = json.dumps({"value": "no key"})
    text = "\n".join(rows).encode() + b"\n"
    file = tmp_path / "it's.jsonl"
    file.write_bytes(text)
    complaint = shell.failing(1, "produce", name, str(file), "--jsonl")
    assert "line 20001 (without a key, for a compacted topic): " in complaint
    assert "INVALID_RECORD" in complaint
    told = re.search(r"; ([\d,]+) records? (is|are) acknowledged", complaint)
    assert told is not None, complaint
    there = shell.ok("consume", name, "-f", "start", "--until-end").split()
    assert len(there) == int(told[1].replace(",", ""))
    rest = sent_on(complaint, text).replace(
        b'{"value": "no key"}', b'{"key": "k", "value": "20000"}'
    )
    shell.ok("produce", name, "--jsonl", stdin=rest)
    there = shell.ok("consume", name, "-f", "start", "--until-end").split()
    assert sorted(map(int, there)) == list(range(30_000))


def test_a_reader_that_goes_away(shell: Shell, name: str) -> None:
    shell.ok("topic", "create", name)
    shell.ok("produce", name, stdin=b"".join(b"%d\n" % at for at in range(50_000)))
    with shell.start("consume", name, "-f", "start") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"0\n"
        process.stdout.close()
        assert process.wait(PATIENCE_S) == 141
        assert process.stderr.read() == b""


def test_a_reader_that_goes_away_while_no_record_comes(shell: Shell, name: str) -> None:
    shell.ok("topic", "create", name)
    with shell.start("consume", name, "-f", "start") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        shell.ok("produce", name, stdin=b"one\n")
        assert process.stdout.readline() == b"one\n"
        process.stdout.close()
        assert process.wait(PATIENCE_S) == 141
        assert process.stderr.read() == b""


def test_ctrl_c_while_consuming(shell: Shell, name: str) -> None:
    shell.ok("topic", "create", name)
    shell.ok("produce", name, stdin=b"one\n")
    with shell.start("consume", name, "-f", "start") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"one\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 130
        assert (process.stdout.read(), process.stderr.read()) == (b"", b"")


def test_a_tail_prints_at_once(shell: Shell, name: str) -> None:
    shell.ok("topic", "create", name)
    with shell.start("consume", name, "-f", "0") as process:
        assert process.stdout is not None
        for text in (b"a\n", b"b\n"):
            shell.ok("produce", name, stdin=text)
            assert process.stdout.readline() == text
        process.send_signal(signal.SIGINT)


def test_progress_only_on_a_terminal(shell: Shell, name: str, broker: EmbeddedCluster) -> None:
    quiet = shell("segment", "verify", broker.bucket_url)
    assert (quiet.returncode, quiet.stderr) == (0, b"")
    leader, follower = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, "segment", "verify", broker.bucket_url],
        stdout=subprocess.PIPE,
        stderr=follower,
        env={**shell.environment, "TERM": "xterm"},
    ) as process:
        os.close(follower)
        out, _ = process.communicate(timeout=PATIENCE_S)
        shown = b""
        while select.select([leader], [], [], 0)[0]:
            try:
                shown += os.read(leader, 65536)
            except OSError:  # the other end is closed
                break
    os.close(leader)
    assert b"checking objects" in shown
    assert b"checking" not in out
    assert out.endswith(b"all sound\n")


@pytest.fixture
def dev(tmp_path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen(
        [*COMMAND, "dev", "--port", "0", "--data", str(tmp_path / "data")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    yield process
    if process.poll() is None:
        process.terminate()
    process.communicate(timeout=PATIENCE_S)


def introduction(process: "subprocess.Popen[bytes]") -> str:
    assert process.stdout is not None
    shown = b""
    while b"Ctrl-C" not in shown:
        line = process.stdout.readline()
        assert line, process.stderr.read().decode() if process.stderr else ""
        shown += line
    return shown.decode()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_dev_introduces_itself_and_cleans_up(
    dev: "subprocess.Popen[bytes]", number: signal.Signals
) -> None:
    shown = introduction(dev)
    found = re.search(r"ready at (127\.0\.0\.1:\d+)", shown)
    assert found is not None
    address = found[1]
    assert f"kcat -b {address}" in shown
    assert f'bucketlog.connect("{address}")' in shown
    children = psutil.Process(dev.pid).children(recursive=True)
    assert len(children) == 3
    there = Shell(address)
    there.ok("topic", "create", "greetings")
    there.ok("produce", "greetings", stdin=b"hello\n")
    dev.send_signal(number)
    assert dev.wait(PATIENCE_S) == 0
    assert not [child for child in children if child.is_running()]


def test_dev_keeps_its_data_and_locks_it(dev: "subprocess.Popen[bytes]", tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    found = re.search(r"ready at (\S+)", introduction(dev))
    assert found is not None
    there = Shell(found[1])
    there.ok("topic", "create", "greetings")
    there.ok("produce", "greetings", stdin=b"hello\n")
    complaint = there.failing(1, "dev", "--port", "0", "--data", data)
    assert f"in use by process {dev.pid}" in complaint
    dev.send_signal(signal.SIGINT)
    assert dev.wait(PATIENCE_S) == 0
    with EmbeddedCluster(data) as cluster:
        again = Shell(cluster.bootstrap)
        assert again.ok("consume", "greetings", "-f", "start", "--until-end") == b"hello\n"
    assert again.ok("segment", "verify", f"{data}/bucket").endswith(b"all sound\n")


def test_dev_on_a_taken_port_says_so(broker: EmbeddedCluster, tmp_path: Path) -> None:
    data = tmp_path / "data"
    there = Shell(broker.bootstrap)
    complaint = there.failing(1, "dev", "--port", str(broker.port), "--data", str(data))
    assert f"cannot listen on 127.0.0.1:{broker.port}: Address already in use" in complaint
    assert not data.exists()


def test_dev_tells_of_settings_that_it_does_not_hear(tmp_path: Path) -> None:
    there = Shell("127.0.0.1:1")
    there.environment |= {
        "BUCKETLOG_BUCKET_URL": "s3://elsewhere",
        "BUCKETLOG_REDIS_URL": "redis://user:hidden@example/",
        "BUCKETLOG_FLUSH_INTERVAL_MS": "0",
        "BUCKETLOG_FLUSH_BYTE": "1",
    }
    with there.start("dev", "--port", "0", "--data", str(tmp_path / "data")) as process:
        introduction(process)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=PATIENCE_S)
    lines = told.decode().splitlines()
    assert "unknown setting BUCKETLOG_FLUSH_BYTE; did you mean BUCKETLOG_FLUSH_BYTES?" in lines[0]
    assert "BUCKETLOG_BUCKET_URL=s3://elsewhere is not heard: dev uses file://" in lines[1]
    assert "BUCKETLOG_REDIS_URL=… is not heard" in lines[2]
    assert lines[3:] == ["stopped"], "what is set as dev has it is no news"
    assert b"hidden" not in told


def test_dev_without_data_keeps_the_log_that_its_error_names() -> None:
    """A Valkey that ends by itself."""
    with Shell("127.0.0.1:1").start("dev", "--port", "0") as process:
        introduction(process)
        for child in psutil.Process(process.pid).children(recursive=True):
            if "valkey" in child.name():
                child.kill()
        _, told = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 1
    found = re.search(r"\(see (\S+)\)", told.decode())
    assert found is not None, told
    kept = Path(found[1])
    assert "bucketlog broker" in kept.read_text() or kept.stat().st_size
    kept.unlink()


def test_a_bucket_whose_folder_is_gone_is_told_so(tmp_path: Path) -> None:
    with EmbeddedCluster(tmp_path / "data") as cluster:
        there = Shell(cluster.bootstrap)
        there.ok("topic", "create", "t")
        (tmp_path / "data" / "bucket").rename(tmp_path / "elsewhere")
        with there.start("produce", "t") as process:
            assert process.stdin is not None
            process.stdin.write(b"one\n")
            process.stdin.close()
            eventually(lambda: "bucket/0 is gone" in cluster.log_path.read_text())


def test_broker_needs_its_settings() -> None:
    environment = {
        name: text for name, text in os.environ.items() if not name.startswith("BUCKETLOG_")
    }
    done = subprocess.run(
        [*COMMAND, "broker"], capture_output=True, env=environment, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 2
    assert b"BUCKETLOG_BUCKET_URL" in done.stderr.upper()
    assert b"Traceback" not in done.stderr
