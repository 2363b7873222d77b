"""The command line without a cluster: usage, exit codes, errors, and `segment` on written logs."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from bucketlog.cli.main import main
from bucketlog.log_format.records import DecodedRecord
from bucketlog.metadata.facts import OffsetsForgotten, TopicCreated
from bucketlog.metadata.security_facts import ScramCredentialSet
from bucketlog.terminal import Output, counted, print_rows
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.file import FileBucket
from bucketlog.tiered_storage.identity import FORMAT_VERSION, ClusterIdentity
from tests.rigs.checkpoints import write_checkpoint
from tests.rigs.written_log import WrittenLog

if TYPE_CHECKING:
    from tests.servers.components import Components

Capture = pytest.CaptureFixture[str]
COMMANDS = {
    "dev",
    "broker",
    "topic",
    "apply",
    "produce",
    "consume",
    "deadletter",
    "replay",
    "group",
    "user",
    "segment",
    "doctor",
    "locate",
    "bench",
    "demo",
    "cost",
    "top",
    "console",
    "config",
    "completion",
}


@pytest.fixture
def log(tmp_path: Path) -> WrittenLog:
    bucket = FileBucket(tmp_path / "0")
    identity = ClusterIdentity(cluster_id=UUID(int=1), format_version=FORMAT_VERSION, created_ms=1)
    assert bucket.create(keys.CLUSTER, [identity.model_dump_json().encode()])
    written = WrittenLog(bucket)
    written.create_topic("t", 1)
    written.append("t", 0, [DecodedRecord(0, 1_700_000_000_000, None, b"hello", ())])
    written.flush()
    return written


def test_help_names_every_command(capsys: Capture) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(f"\n  {command} " in shown for command in COMMANDS)
    assert "Exit codes" in shown


@pytest.mark.parametrize(
    "arguments",
    [
        ["nope"],
        ["topic"],
        ["topic", "list", "--nope"],
        ["produce"],
        ["topic", "create", "x", "-p", "0"],
        ["topic", "create", "x", "-c", "novalue", "-b", "127.0.0.1:1"],
        ["consume", "t", "--from", "yesterday"],
        ["consume", "t", "--until-end"],
        ["consume", "t", "-o", "xml"],
        ["consume", "t", "--group", "g", "--from", "5"],
        ["consume", "t", "--group", "g", "-p", "0"],
        ["deadletter"],
        ["deadletter", "list"],
        ["deadletter", "show", "t", "--from", "yesterday"],
        ["deadletter", "show", "t", "-n", "0"],
        ["deadletter", "replay", "t", "--from", "end"],
        ["deadletter", "replay", "t", "--until", "start"],
        ["deadletter", "replay", "t", "-o", "raw"],
        ["group"],
        ["group", "reset", "g"],
        ["group", "reset", "g", "--to", "start", "--shift", "1"],
        ["group", "reset", "g", "--to", "yesterday"],
        ["group", "reset", "g", "--to", "start", "-p", "0"],
        ["produce", "t", "--jsonl", "-K", ","],
        ["produce", "t", "-K", ""],
        ["produce", "t", "-k", "x", "-K", ","],
        ["produce", "t", "-k", "x", "--jsonl"],
        ["produce", "t", "-H", "novalue"],
        ["consume", "t", "--format", "%q"],
        ["consume", "t", "--format", "%v", "-o", "jsonl"],
        ["consume", "t", "--format", "%v", "-K", ","],
        ["produce", "t", "--compression", "rar"],
        ["segment", "verify", "ftp://x"],
        ["segment", "gc", "here"],
        ["segment", "gc", "here", "--dry-run", "--safety-age-ms", "-1"],
        ["locate", "here", "t", "0"],
        ["locate", "here", "t", "0", "-1"],
        ["locate", "ftp://x", "t", "0", "0"],
        ["bench"],
        ["bench", "produce", "t", "--rate", "fast"],
        ["bench", "produce", "t", "--delete"],
        ["bench", "produce", "t", "--partitions", "3"],
        ["bench", "produce", "t", "-X", "novalue"],
        ["bench", "produce", "t", "--acks", "2"],
        ["bench", "consume", "t", "--from", "end"],
        ["bench", "end-to-end", "t", "--seconds", "0"],
        ["dev", "--brokers", "0"],
        ["dev", "--seed", "trains"],
        ["dev", "--seed-records", "5"],
        ["dev", "--s3", "file:///folder"],
        ["dev", "--s3-endpoint", "http://localhost:9000"],
        ["topic", "list", "-b", "nonsense:port"],
        ["topic", "list", "-b", "http://localhost:9092"],
    ],
)
def test_wrong_usage_is_code_2_and_says_why(arguments: list[str], capsys: Capture) -> None:
    assert main(arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(("bucketlog: ", "Usage: "))
    if not shown.err.startswith("Usage"):
        assert shown.err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["topic", "list"],
        ["topic", "create", "x"],
        ["topic", "describe", "x"],
        ["topic", "delete", "x", "-y"],
        ["consume", "x", "--from", "start"],
        ["deadletter", "list", "x"],
        ["deadletter", "show", "x"],
        ["deadletter", "replay", "x", "-y"],
        ["group", "list"],
        ["group", "describe", "x"],
        ["group", "reset", "x", "--to", "start"],
        ["group", "delete", "x"],
        ["bench", "consume", "x"],
        ["bench", "end-to-end", "x"],
    ],
)
def test_no_broker_is_one_line_and_code_1(arguments: list[str], capsys: Capture) -> None:
    assert main([*arguments, "-b", "127.0.0.1:1"]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    assert "127.0.0.1:1: Connection refused" in shown.err
    assert "bucketlog dev" in shown.err


def test_a_missing_file_is_named(tmp_path: Path, capsys: Capture) -> None:
    missing = tmp_path / "missing"
    assert main(["produce", "t", str(missing)]) == 1
    remedy = "check the path, and that this user may use it"
    assert (
        capsys.readouterr().err == f"bucketlog: {missing}: No such file or directory ({remedy})\n"
    )


def test_version(capsys: Capture) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.count(".") == 2


def test_help_loads_nothing_heavy(components: "Components") -> None:
    script = (
        "import sys; from bucketlog.cli.main import main; assert main(['--help']) == 0; "
        "heavy = {'pydantic', 'confluent_kafka', 'rich', 'asyncio', 'boto3', 'fastavro'}; "
        "heavy &= set(sys.modules); "
        "assert not heavy, heavy"
    )
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.DEVNULL)
    components.took_part("bucketlog --help", f"{time.perf_counter() - begun:.3f} s")


def test_verify_sound(log: WrittenLog, tmp_path: Path, capsys: Capture) -> None:
    assert main(["segment", "verify", str(tmp_path)]) == 0
    shown = capsys.readouterr()
    assert shown.out.endswith("all sound\n")
    assert shown.err == ""


def test_verify_damage(log: WrittenLog, tmp_path: Path, capsys: Capture) -> None:
    (path,) = (tmp_path / "0" / "log").glob("*/*")
    data = bytearray(path.read_bytes())
    data[20] ^= 1
    path.chmod(0o644)
    path.write_bytes(data)
    assert main(["segment", "verify", f"file://{tmp_path}"]) == 1
    shown = capsys.readouterr().out
    key = str(path.relative_to(tmp_path / "0"))
    assert f"DAMAGED {key} at byte 16" in shown
    assert shown.endswith("1 damaged\n")
    assert main(["segment", "verify", f"file://{tmp_path}", "-o", "json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert [damage["key"] for damage in report["damage"]] == [key]


def test_gc_lists_and_deletes_nothing(log: WrittenLog, tmp_path: Path, capsys: Capture) -> None:
    log.delete_topic("t")
    log.flush()
    log.create_topic("u", 1)
    log.flush()
    write_checkpoint(log.bucket)
    before = sorted(log.bucket.list(""))
    covered = sorted(log.bucket.list(keys.LOG))[:2]
    command = ["segment", "gc", f"file://{tmp_path}", "--dry-run"]
    assert main([*command, "-o", "json"]) == 0
    shown = capsys.readouterr()
    (row,) = json.loads(shown.out)
    assert (row["kind"], row["due"], row["reason"]) == ("segments", "later", "unreadable")
    assert (row["objects"], row["size"]) == (2, sum(info.size_bytes for info in covered))
    assert shown.err == "no floor is old enough: brokers delete nothing below a floor now\n"
    assert main([*command, "--keys", "-o", "json"]) == 0
    assert [one["key"] for one in json.loads(capsys.readouterr().out)] == [
        info.key for info in covered
    ]
    assert main(command) == 0
    assert "segments  later" in capsys.readouterr().out
    assert main([*command, "--safety-age-ms", "0", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
    assert sorted(log.bucket.list("")) == before
    assert main(["segment", "gc", f"file://{tmp_path}"]) == 2
    assert "brokers alone delete" in capsys.readouterr().err


def test_ls_and_inspect(log: WrittenLog, tmp_path: Path, capsys: Capture) -> None:
    assert main(["segment", "ls", str(tmp_path), "-o", "jsonl"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    row = json.loads(line)
    assert (row["kind"], row["batches"], row["records"], row["ticket"]) == ("segment", 1, 1, "1/0")
    assert main(["segment", "inspect", str(tmp_path), row["key"], "-o", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["epoch"] == 1
    assert json.loads(shown["facts"][0])["name"] == "t"
    assert [batch["record_count"] for batch in shown["rows"]] == [1]
    assert main(["segment", "inspect", str(tmp_path), row["key"]]) == 0
    assert "BASE OFFSET" in capsys.readouterr().out


def test_facts_say_who_asked_for_them(log: WrittenLog, tmp_path: Path, capsys: Capture) -> None:
    topic_id = UUID(int=77)
    log.fact(TopicCreated(topic_id=topic_id, name="new", partitions=1, by="User:ann\x1b"))
    log.fact(
        ScramCredentialSet(
            user="bob",
            mechanism="SCRAM-SHA-512",
            iterations=4096,
            salt=b"salt",
            key_id=b"key",
            sealed=b"sealed",
            by="User:ANONYMOUS",
            at_ms=5,
        )
    )
    log.fact(OffsetsForgotten(group="expired"))
    log.fact(OffsetsForgotten(group="deleted", by="User:ann"))
    log.flush()
    facts = ["segment", "facts", str(tmp_path)]
    assert main([*facts, "-o", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["fact"], row["by"]) for row in rows] == [
        ("topic created", ""),
        ("topic created", "User:ann\x1b"),
        ("scram credential set", "User:ANONYMOUS"),
        ("offsets forgotten", "User:ann"),
    ]
    assert rows[1]["content"] == {
        "topic_id": str(topic_id),
        "name": "new",
        "partitions": 1,
        "configs": {},
    }
    assert rows[2]["content"].keys() == {"user", "mechanism", "iterations", "at_ms"}
    assert rows[3]["content"] == {"group": "deleted", "partitions": None}
    assert main([*facts, "--every-kind", "-o", "json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 5
    assert main(facts) == 0
    shown = capsys.readouterr().out
    assert "User:ann\\x1b" in shown
    assert '"name":"new"' in shown


@pytest.mark.parametrize(
    "command", [["segment", "ls"], ["segment", "facts"], ["segment", "verify"], ["doctor"]]
)
def test_a_place_without_a_log_is_named(
    command: list[str], tmp_path: Path, capsys: Capture
) -> None:
    assert main([*command, str(tmp_path)]) == 2
    assert f"there is no log in {tmp_path} (" in capsys.readouterr().err


def test_inspect_names_a_missing_key(log: WrittenLog, tmp_path: Path, capsys: Capture) -> None:
    assert main(["segment", "inspect", str(tmp_path), "log/a/b"]) == 1
    assert "'log/a/b'" in capsys.readouterr().err


def test_one_is_not_many() -> None:
    told = [counted(number, "batch") for number in (0, 1, 2000)]
    assert told == ["0 batches", "1 batch", "2,000 batches"]


def test_tables_align(capsys: Capture) -> None:
    rows: list[dict[str, Any]] = [{"name": "a", "count": 1000}, {"name": "long", "count": None}]
    print_rows(rows, ("name", "count"), Output.TABLE)
    assert capsys.readouterr().out == "NAME  COUNT\na     1,000\nlong      -\n"
    print_rows([{"base_offset": 1000}], ("base_offset",), Output.TABLE)
    assert capsys.readouterr().out == "BASE OFFSET\n       1000\n", "to be copied as it stands"
    print_rows(rows, ("name", "count"), Output.JSONL)
    assert capsys.readouterr().out.splitlines()[1] == '{"name": "long", "count": null}'
    print_rows([], ("name", "count"), Output.TABLE)
    assert capsys.readouterr().out == "NAME  COUNT\n"


def test_two_targets_of_a_reset(capsys: Capture) -> None:
    assert main(["group", "reset", "g", "--to", "start", "--shift", "1"]) == 2
    assert "give --to or --shift, not both" in capsys.readouterr().err
