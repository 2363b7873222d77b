"""`bucketlog deadletter`: list, show, replay."""

from contextlib import nullcontext
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bucketlog.cli.options import DEFAULT_BOOTSTRAP, Bootstrap, OutputFormat, position
from bucketlog.cli.security import connected, secured
from bucketlog.cli.signals import stop_asked
from bucketlog.cli.topic_names import known_topic
from bucketlog.log_format.errors import BucketlogError, ConfigurationError
from bucketlog.terminal import (
    Output,
    confirm,
    counted,
    note,
    print_rows,
    progress,
    say,
    time_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bucketlog.client.dead_letter_replay import DeadLetterPlan
    from bucketlog.client.dead_letters import DeadLetterFilter, DeadLetterRecord
    from bucketlog.client.log import Log

app = typer.Typer(
    help="List, show and replay the records of dead-letter topics and retry topics.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
TopicName = Annotated[str, typer.Argument(metavar="TOPIC", help="The dead-letter topic.")]
Partitions = Annotated[
    list[int] | None,
    typer.Option(
        "--partition",
        "-p",
        min=0,
        envvar="BUCKETLOG_DEADLETTER_PARTITION",
        help="Number of a partition of the dead-letter topic; repeatable. Default: all.",
    ),
]
From = Annotated[
    str,
    typer.Option(
        "--from",
        "-f",
        envvar="BUCKETLOG_DEADLETTER_FROM",
        metavar="WHERE",
        help="Position: start, an offset of the dead-letter topic, or a time (ISO 8601).",
    ),
]
Until = Annotated[
    str,
    typer.Option(
        "--until",
        envvar="BUCKETLOG_DEADLETTER_UNTIL",
        metavar="WHERE",
        help="Where to stop: end, before an offset, or before a time (ISO 8601).",
    ),
]
Reasons = Annotated[
    list[str] | None,
    typer.Option(
        "--reason",
        "-r",
        envvar="BUCKETLOG_DEADLETTER_REASON",
        metavar="TEXT",
        help="Only records whose exception's class or message contains the text.",
    ),
]
Origins = Annotated[
    list[str] | None,
    typer.Option(
        "--origin",
        envvar="BUCKETLOG_DEADLETTER_ORIGIN",
        metavar="TOPIC",
        help="Only records from this topic.",
    ),
]
Group = Annotated[
    str | None,
    typer.Option(
        "--group",
        "-g",
        envvar="BUCKETLOG_DEADLETTER_GROUP",
        metavar="NAME",
        help="Group with the progress of replays; default: bucketlog-deadletter-TOPIC.",
    ),
]
ROWS_MAX = 1000
"""Rows of `list`: the records of further origins and reasons are one row."""
SHOWN_RECORDS = 100
SHOWN_CHARACTERS_MAX = 1000
"""Limit of a key, a value, a header or a reason in `show -o table`."""
REASON_CHARACTERS_MAX = 200
OTHERS = "(others)"
NO_LETTERS = {
    "origin": None,
    "reason": None,
    "records": 0,
    "pending": 0,
    "oldest_ms": None,
    "newest_ms": None,
    "due_ms": None,
}
LIST_COLUMNS = ("topic", "origin", "reason", "records", "pending", "oldest", "newest", "due")
PLAN_COLUMNS = ("origin", "target", "records")


@app.command("list")
@secured
def list_letters(
    topics: Annotated[list[str], typer.Argument(metavar="TOPIC...", help="Dead-letter topics.")],
    group: Group = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    output: OutputFormat = Output.TABLE,
) -> None:
    """Count dead letters by origin topic and reason, with their oldest and newest time.

    Reads all records of the topics. PENDING is the number that no replay of the group has sent.
    TOPIC may be a retry topic: DUE is then the earliest time of a retry."""
    from bucketlog.client.dead_letter_replay import GROUP_PREFIX

    with connected(bootstrap) as log:
        rows = [
            row
            for topic in dict.fromkeys(topics)
            for row in _counts(log, topic, group or f"{GROUP_PREFIX}{topic}")
        ]
    if output is Output.TABLE:
        for row in rows:
            row["oldest"], row["newest"] = _time(row["oldest_ms"]), _time(row["newest_ms"])
            row["due"] = _time(row["due_ms"])
    print_rows(rows, LIST_COLUMNS, output)


def _counts(log: "Log", topic: str, group: str) -> list[dict[str, Any]]:
    from bucketlog.client.dead_letter_replay import progress_of
    from bucketlog.client.dead_letters import (
        DeadLetterFilter,
        DeadLetterRecord,
        read_records,
        spans,
    )

    rows: dict[tuple[str | None, str | None], dict[str, Any]] = {}
    with known_topic(log, topic, is_wanted=False):
        wanted = spans(log, topic, DeadLetterFilter())
    done = progress_of(log.groups.committed(group, topic), wanted, topic, group)
    with progress(topic, None) as bar:
        for record in bar.over(read_records(log, topic, wanted)):
            letter = DeadLetterRecord.of(record)
            kind = _cut(letter.origin_topic), _cut(letter.exception)
            if kind not in rows and len(rows) >= ROWS_MAX:
                kind = OTHERS, OTHERS
            row = rows.setdefault(kind, {"topic": topic, **NO_LETTERS})
            row["origin"], row["reason"] = kind
            row["records"] += 1
            row["pending"] += record.offset not in done[record.partition]
            if letter.due_ms is not None:
                earlier = row["due_ms"]
                row["due_ms"] = min(letter.due_ms, letter.due_ms if earlier is None else earlier)
            at_ms = letter.timestamp_ms
            if at_ms >= 0:
                before = row["oldest_ms"], row["newest_ms"]
                row["oldest_ms"] = at_ms if before[0] is None else min(before[0], at_ms)
                row["newest_ms"] = at_ms if before[1] is None else max(before[1], at_ms)
    return sorted(rows.values(), key=lambda row: -row["records"])


def _cut(name: str | None) -> str | None:
    return None if name is None else name[:REASON_CHARACTERS_MAX]


def _time(at_ms: int | None) -> str | None:
    return None if at_ms is None or at_ms < 0 else time_text(at_ms)


@app.command("show")
@secured
def show(
    topic: TopicName,
    partition: Partitions = None,
    start: From = "start",
    until: Until = "end",
    reason: Reasons = None,
    origin: Origins = None,
    count: Annotated[
        int, typer.Option("-n", "--count", min=1, help="Stop after this number of records.")
    ] = SHOWN_RECORDS,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    output: OutputFormat = Output.TABLE,
) -> None:
    """Show dead letters: origin, reason, key, value and headers of the original record.

    Control characters are escaped. `-o table` cuts long values; json and jsonl have them whole."""
    wanted = _filter(partition, start, until, origin, reason)
    with connected(bootstrap) as log:
        letters = _letters(log, topic, wanted)
        first = islice(letters, count)
        if output is Output.TABLE:
            for letter in first:
                say(*_lines(letter))
        else:
            print_rows(map(_row, first), (), output)
        if next(letters, None) is not None:
            note(f"there are more records than {counted(count, 'record')}: -n shows more")


def _filter(
    partitions: list[int] | None,
    start: str,
    until: str,
    origins: list[str] | None,
    reasons: list[str] | None,
) -> "DeadLetterFilter":
    """Raises `ConfigurationError`."""
    from bucketlog.client.dead_letters import DeadLetterFilter

    begin, end = position(start, "--from"), position(until, "--until")
    if begin == "latest" or end == "earliest":
        raise ConfigurationError(
            f"--from {start} --until {until} leaves nothing to read",
            remedy="--from takes start, --until takes end; both take an offset or a time",
        )
    return DeadLetterFilter(
        partitions=tuple(partitions) if partitions else None,
        start=begin if isinstance(begin, int | datetime) else None,
        until=end if isinstance(end, int | datetime) else None,
        origins=tuple(origins or ()),
        reasons=tuple(reasons or ()),
    )


def _letters(log: "Log", topic: str, wanted: "DeadLetterFilter") -> "Iterator[DeadLetterRecord]":
    from bucketlog.client.dead_letters import DeadLetterRecord, read_records, spans

    with known_topic(log, topic, is_wanted=False):
        ranges = spans(log, topic, wanted)
    for record in read_records(log, topic, ranges):
        letter = DeadLetterRecord.of(record)
        if wanted.accepts(letter):
            yield letter


def _lines(letter: "DeadLetterRecord") -> "Iterator[str]":
    record = letter.record
    yield f"{record.where} from {letter.origin or 'an unknown origin'}"
    yield f"  time    {_time(letter.timestamp_ms) or '-'}"
    if letter.due_ms is not None:
        yield f"  due     {_time(letter.due_ms) or '-'}"
    tries = "" if letter.attempts is None else f", {counted(letter.attempts, 'attempt')}"
    yield f"  reason  {_short(letter.exception or '-')} ({letter.stage or '-'}{tries})"
    if letter.message is not None:
        yield f"          {_short(letter.message)}"
    yield f"  key     {_text(record.raw_key)}"
    yield f"  value   {_text(record.raw_value)}"
    for name, value in letter.headers:
        yield f"  header  {_short(name)}: {_text(value)}"


def _text(data: bytes | None) -> str:
    """Bytes that are not UTF-8 as `\\xff`; `say` escapes control characters."""
    if data is None:
        return "-"
    return _short(data.decode(errors="backslashreplace"))


def _short(text: str) -> str:
    if len(text) <= SHOWN_CHARACTERS_MAX:
        return text
    return f"{text[:SHOWN_CHARACTERS_MAX]}… ({len(text):,} characters)"


def _row(letter: "DeadLetterRecord") -> dict[str, Any]:
    from bucketlog.client.lines import header_items, record_row

    return {
        **record_row(letter.record),
        "headers": header_items(letter.headers),
        "origin_topic": letter.origin_topic,
        "origin_partition": letter.origin_partition,
        "origin_offset": letter.origin_offset,
        "stage": letter.stage,
        "attempts": letter.attempts,
        "exception": letter.exception,
        "message": letter.message,
        "due_ms": letter.due_ms,
    }


@app.command("replay")
@secured
def replay(
    topic: TopicName,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="TOPIC",
            help="Topic to send to; default: the origin topic of each record.",
        ),
    ] = None,
    partition: Partitions = None,
    start: From = "start",
    until: Until = "end",
    reason: Reasons = None,
    origin: Origins = None,
    group: Group = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be sent.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    output: OutputFormat = Output.TABLE,
) -> None:
    """Send dead letters to their origin topics again, without the headers that were added.

    Prints the plan, then asks. The group's committed offsets keep the progress: a second replay
    sends no record twice. After a crash, up to 1,000 records may be sent twice. If TOPIC is a retry
    topic, the group that retries its records still handles them too."""
    from bucketlog.client.dead_letter_replay import GROUP_PREFIX, DeadLetterReplay

    wanted = _filter(partition, start, until, origin, reason)
    keeper = group or f"{GROUP_PREFIX}{topic}"
    with connected(bootstrap) as log:
        with known_topic(log, topic, is_wanted=False):
            made = DeadLetterReplay(log, topic, keeper, wanted, to)
        with nullcontext() if to is None else known_topic(log, to, is_wanted=True):
            plan = made.plan()
        _print_plan(plan, output)
        if dry_run or not plan.records:
            note(f"{counted(plan.records, 'record')} would be sent; group {keeper} is unchanged")
            return
        if not yes:
            confirm(f"Send {counted(plan.records, 'record')}?")
        try:
            with stop_asked() as asked, progress(topic, plan.records) as bar:
                made.run(plan, stopping=asked, on_records=bar.advance)
        except (BucketlogError, KeyboardInterrupt):
            note(_summary(made.replayed, keeper))
            raise
        note(_summary(made.replayed, keeper))
        if made.replayed < plan.records:
            asked.raise_signal()


def _summary(replayed: int, group: str) -> str:
    return f"{counted(replayed, 'record')} replayed; group {group} keeps the progress"


def _print_plan(plan: "DeadLetterPlan", output: Output) -> None:
    rows = [
        {"origin": origin, "target": target, "records": count}
        for (origin, target), count in sorted(
            plan.targets.items(), key=lambda row: (row[0][0] or "", row[0][1])
        )
    ]
    print_rows(rows, PLAN_COLUMNS, output)
