"""Bad input to the command line: what is given, and the exit code and words that answer it.

A row's command gets one line on stderr with the reason and a remedy, no traceback, and nothing on
stdout. Whatever it was, the records, settings and offsets of the log stay.
"""

import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tests.rigs.shell import Shell

TOPIC, GROUP = "kept", "kept-readers"
RECORDS = b"one\ntwo\nthree\n"
NOBODY = "127.0.0.1:1"


class BadInput(NamedTuple):
    """`command`: words with blanks between them; `_` is a blank within a word and `''` an empty
    one. `says`: a part of the error."""

    command: str
    code: int
    says: str
    stdin: bytes = b""

    def arguments(self, places: Mapping[str, str]) -> list[str]:
        words = [word.replace("_", " ") for word in self.command.split(" ")]
        return ["" if word == "''" else word.format(**places) for word in words]


TOPICS = (
    BadInput("topik list", 2, "topik"),
    BadInput("topic list --colour", 2, "--colour"),
    BadInput("topic list -o xml", 2, "xml"),
    BadInput("topic create", 2, "TOPIC"),
    BadInput("topic create new -p 0", 2, "greater than or equal to 1"),
    BadInput("topic create new -p many", 2, "valid integer"),
    BadInput("topic create new -p 100001", 2, "1 to 100000 partitions"),
    BadInput("topic create a_b", 1, "INVALID_TOPIC"),
    BadInput("topic create ''", 1, "INVALID_TOPIC"),
    BadInput(f"topic create {'x' * 250}", 1, "INVALID_TOPIC"),
    BadInput("topic create kept", 1, "--if-not-exists"),
    BadInput("topic create kept --if-not-exists -p 9", 2, "topic add-partitions"),
    BadInput("topic create new -c retention.ms", 2, "NAME=VALUE"),
    BadInput("topic create new -c no.such=1", 1, "no.such"),
    BadInput("topic create new -c retention.ms=abc", 1, "retention.ms"),
    BadInput("topic describe kepd", 1, "did you mean 'kept'"),
    BadInput("topic describe kept --interval-s 0", 2, "--interval-s"),
    BadInput("topic delete kepd -y", 1, "did you mean 'kept'"),
    BadInput("topic delete kept", 2, "add --yes"),
    BadInput("topic alter kept", 2, "give --config"),
    BadInput("topic alter kept --retention soon", 2, "7d"),
    BadInput("topic alter kept -c retention.msx=1", 1, "did you mean 'retention.ms'"),
    BadInput("topic alter kept -c segment.ms=7 --unset segment.ms", 2, "leave one"),
    BadInput("topic add-partitions kept 1 -y", 2, "give a total above 1"),
    BadInput("topic add-partitions kept 0 -y", 2, "greater than or equal to 1"),
    BadInput("topic add-partitions kepd 3 -y", 1, "did you mean 'kept'"),
    BadInput("topic trim kept", 2, "--before"),
    BadInput("topic trim kept --before yesterday -y", 2, "an offset, or a time"),
    BadInput("topic trim kept --before 1 -p 9 -y", 2, "partitions 0 to 0"),
    BadInput("topic trim kept --before end", 2, "add --yes"),
    BadInput("apply {folder}/none.yaml -y", 1, "No such file"),
    BadInput("apply {folder}/broken.yaml -y", 2, "broken.yaml"),
    BadInput("apply {folder}/unknown.yaml -y", 2, "colour"),
)
RECORD_ROWS = (
    BadInput("produce kepd", 1, "topic create kepd", b"x\n"),
    BadInput("produce kept {folder}/none.txt", 1, "No such file"),
    BadInput("produce kept --jsonl", 1, "line 1", b"not json\n"),
    BadInput("produce kept --jsonl", 1, "line 1", b"[1]\n"),
    BadInput("produce kept -k a -K ,", 2, "leave one out"),
    BadInput("produce kept -H source", 2, "NAME=VALUE"),
    BadInput("produce kept -K ''", 2, "--key-separator"),
    BadInput("produce kept -K ,", 1, "line 1", b"no separator\n"),
    BadInput("produce kept --partition 9", 1, "partition", b"x\n"),
    BadInput("produce kept --compression zip", 2, "zip"),
    BadInput("produce kept", 1, "send smaller records", b"x" * 2_000_000),
    BadInput("consume kepd", 1, "did you mean 'kept'"),
    BadInput("consume kept --from never", 2, "an offset, or a time"),
    BadInput("consume kept --until-end", 2, "add --from start"),
    BadInput("consume kept --from start --format %z", 2, "has no meaning"),
    BadInput("consume kept --from start --until-end -p 9", 2, "partitions 0 to 0"),
    BadInput("consume kept --group g -p 0", 2, "the group shares them out"),
    BadInput("consume kept --group g --from 3", 2, "group reset g"),
    BadInput("consume kept -n -1", 2, "greater than or equal to 0"),
    BadInput("consume kept --from start -n 1 --registry-url nowhere", 2, "nowhere"),
    BadInput("deadletter list kepd", 1, "did you mean 'kept'"),
    BadInput("deadletter replay kept --from x --yes", 2, "x"),
    BadInput("group describe nobody", 1, "group list"),
    BadInput("group reset kept-readers", 2, "--to or --shift"),
    BadInput("group reset kept-readers --to start --shift 1", 2, "not both"),
    BadInput("group reset kept-readers --to start -p 0", 2, "--topic"),
    BadInput("group reset kept-readers --to later", 2, "an offset, or a time"),
    BadInput("group reset kept-readers --topic kepd --to 1 -y", 1, "did you mean 'kept'"),
    BadInput("group delete nobody -y", 1, "group list"),
    BadInput("group delete kept-readers", 2, "add --yes"),
    BadInput("transaction describe nobody", 1, "nobody"),
    BadInput("bench produce kepd --seconds 1", 1, "did you mean 'kept'"),
    BadInput("bench produce kept --rate fast", 2, "fast"),
)
CONNECTIONS = (
    BadInput(f"topic list -b {NOBODY}", 1, "no broker answers at"),
    BadInput("topic list -b localhost:99999", 2, "host:port"),
    BadInput("topic list -b http://localhost:9092", 2, "host:port"),
    BadInput("topic list -b nowhere.invalid:9092", 1, "nowhere.invalid"),
    BadInput("topic list -b ''", 2, "host:port"),
    BadInput("topic list --password-file {folder}/secret", 2, "add --username"),
    BadInput("topic list --username ann", 2, "--password-file FILE"),
    BadInput("topic list --username ann --password-file {folder}/none", 2, "No such file"),
    BadInput("topic list --ca-file {folder}/none.pem", 2, "none.pem"),
    BadInput("topic list --tls", 1, "may speak no TLS"),
    BadInput("topic list --mechanism CRAM-MD5", 2, "CRAM-MD5"),
    BadInput("topic list --token-scope all", 2, "add --token-url"),
    BadInput("topic list -X no.such=1", 2, "no.such"),
    BadInput("topic list -X linger.ms", 2, "NAME=VALUE"),
    BadInput("cluster health --http ftp://localhost", 2, "http://HOST:PORT"),
    BadInput("top", 2, "add --once"),
    BadInput("top -o json", 2, "add --once"),
    BadInput("top --once --metrics ftp://localhost", 2, "http://HOST:PORT/metrics"),
    BadInput("top --once --topics-max 1001", 2, "--topics-max"),
    BadInput("top --once --interval-s 0", 2, "--interval-s"),
    BadInput("top --once --prices {folder}/none.toml", 1, "No such file"),
    BadInput("dev --http-port 65536", 2, "65535"),
    BadInput("dev --port 9092 --http-port 9092", 2, "two different ports"),
    BadInput("--profile nowhere topic list", 2, "there is no profile"),
    BadInput("config set colour red", 2, "config show --all"),
    BadInput("config use nowhere", 2, "nowhere"),
    BadInput("completion tcsh", 2, "tcsh"),
)
REGISTRY = f"--registry-url http://{NOBODY}"
SCHEMAS = (
    BadInput(f"schema list {REGISTRY}", 1, "no schema registry answers at"),
    BadInput("schema list --registry-url nowhere", 2, "nowhere"),
    BadInput("schema list --registry-url ''", 2, "give --registry-url URL"),
    BadInput(f"schema list {REGISTRY} --registry-auth ann", 2, "USER:PASSWORD"),
    BadInput(f"schema list {REGISTRY} --registry-ca-file {{folder}}/none.pem", 2, "settings"),
    BadInput(f"schema list {REGISTRY} --subjects-max -1", 2, "greater than or equal to 0"),
    BadInput(f"schema show {REGISTRY}", 2, "give SUBJECT or --id N"),
    BadInput(f"schema show s --id 1 {REGISTRY}", 2, "not both"),
    BadInput(f"schema show --id 1 --version 1 {REGISTRY}", 2, "leave one out"),
    BadInput(f"schema show s --version 0 {REGISTRY}", 2, "a number from 1, or latest"),
    BadInput(f"schema show .. {REGISTRY}", 2, "not the name of a subject"),
    BadInput(f"schema register s {{folder}}/none.avsc {REGISTRY}", 1, "No such file"),
    BadInput(f"schema register s {{folder}}/secret {REGISTRY}", 2, "add --type"),
    BadInput(f"schema register s - -t xml {REGISTRY}", 2, "xml"),
    BadInput(f"schema register s - -t avro {REGISTRY}", 2, "is empty"),
    BadInput(f"schema register s - -t avro {REGISTRY}", 2, "not UTF-8", b"\xff"),
    BadInput(f"schema register s - -t avro -r a {REGISTRY}", 2, "NAME=SUBJECT:VERSION", b"{}"),
    BadInput(f"schema check s - -t avro -r a=b:0 {REGISTRY}", 2, "a=b:0", b"{}"),
    BadInput(f"schema compatibility s --set ODD {REGISTRY}", 2, "ODD"),
    BadInput(f"schema compatibility s --set FULL --unset {REGISTRY}", 2, "leave one out"),
    BadInput(f"schema delete '' {REGISTRY}", 2, "not the name of a subject"),
    BadInput(f"schema delete s --version first {REGISTRY}", 2, "a number from 1, or latest"),
)
BUCKETS = (
    BadInput("segment ls {folder}", 2, "check the url"),
    BadInput("segment ls http://bucket", 2, "http"),
    BadInput("segment ls file://{folder}/none", 2, "none"),
    BadInput("segment ls {bucket} --topic kepd", 2, "did you mean 'kept'"),
    BadInput("segment inspect {bucket} log/none", 1, "log/none"),
    BadInput("segment gc {bucket}", 2, "add --dry-run"),
    BadInput("locate {bucket} kept 0 99", 2, "kept"),
    BadInput("locate {bucket} kepd 0 0", 2, "kepd"),
    BadInput("locate {bucket} kept -1 0", 2, "-1"),
    BadInput("replay {bucket} kepd", 2, "kepd"),
    BadInput("replay {bucket} kept --since soon", 2, "soon"),
    BadInput("replay {bucket} kept --offsets 0:x-y", 2, "0:x-y"),
    BadInput("doctor file://{folder}/none", 2, "none"),
    BadInput("cost file://{folder}/none", 2, "none"),
)
ROWS = (*TOPICS, *RECORD_ROWS, *CONNECTIONS, *SCHEMAS, *BUCKETS)


def prepare(shell: Shell, folder: Path) -> None:
    """The topic and the group that every row leaves as they are, and the files of the rows."""
    shell.ok("topic", "create", TOPIC, "-p", "1")
    shell.ok("produce", TOPIC, stdin=RECORDS)
    shell.ok("group", "reset", GROUP, "--topic", TOPIC, "--to", "1", "-y")
    (folder / "broken.yaml").write_text("topics: [")
    (folder / "unknown.yaml").write_text("topics:\n  - {name: new, colour: red}\n")
    (folder / "secret").write_text("secret\n")
    (folder / "secret").chmod(0o600)


def kept(shell: Shell) -> tuple[bytes, bytes, bytes]:
    """The topics, the records and the committed offsets."""
    return (
        shell.ok("topic", "list", "-o", "jsonl"),
        shell.ok("consume", TOPIC, "--from", "start", "--until-end"),
        shell.ok("group", "reset", GROUP, "--shift", "0", "--dry-run", "-o", "jsonl"),
    )


def complaints(row: BadInput, done: "subprocess.CompletedProcess[bytes]") -> Iterator[str]:
    """What is wrong with the answer to a row."""
    error = done.stderr.decode()
    if done.returncode != row.code:
        yield f"exit code {done.returncode}, not {row.code}"
    if done.stdout:
        yield f"stdout has {done.stdout[:80]!r}"
    if "Traceback" in error:
        yield "a traceback"
    if error.count("\n") != 1:
        yield f"{error.count(chr(10))} lines"
    if row.says not in error:
        yield f"{row.says!r} is missing"
    if "(" not in error:
        yield "no remedy"
