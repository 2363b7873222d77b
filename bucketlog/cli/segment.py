"""`bucketlog segment`: look into a bucket without a broker: ls, facts, inspect, verify, gc."""

from collections.abc import Callable, Iterable
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from bucketlog.cli.options import BucketUrl, OutputFormat, SafetyAgeMs, safety_age
from bucketlog.log_format.errors import BucketlogError, ConfigurationError, ObjectNotFoundError
from bucketlog.terminal import (
    EXIT_FAILED,
    EXIT_OK,
    Output,
    counted,
    note,
    print_rows,
    progress,
    say,
    say_json,
    time_text,
)

if TYPE_CHECKING:
    from bucketlog.inspect.garbage import GarbageObject
    from bucketlog.inspect.verify_report import VerifyReport
    from bucketlog.log_format.model import SegmentId, SegmentIndex
    from bucketlog.tiered_storage.bucket import ObjectInfo, SyncBucket

app = typer.Typer(
    help="Look into a bucket without a broker.", no_args_is_help=True, rich_markup_mode=None
)
GC_COLUMNS = ("kind", "due", "objects", "size", "reason")
GC_KEY_COLUMNS = ("key", "kind", "due", "size", "reason")
FACT_COLUMNS = ("created", "ticket", "fact", "by", "content")
NOT_SHOWN = {"kind", "by", "salt", "key_id", "sealed"}
"""Fields of facts that have their own columns, or are of no use to people."""
LS_COLUMNS = ("key", "kind", "size", "created", "ticket", "batches", "records")


@app.command("ls")
def list_segments(
    bucket: BucketUrl,
    topic: Annotated[
        str | None,
        typer.Option("--topic", "-t", metavar="TOPIC", help="Segments with records of this topic."),
    ] = None,
    output: OutputFormat = Output.TABLE,
) -> None:
    """List segments and seals, by writer and position.

    With --topic, batches and records are those of the topic. Records that have left the log
    segments are in tiers: `locate` finds them."""
    from bucketlog.tiered_storage import keys

    wanted = None if topic is None else _topic_id(bucket, topic)
    objects, void, footers = _all_footers(bucket)
    rows = []
    for info in objects:
        index = footers.get(keys.parse_segment(info.key))
        if wanted is not None:
            index = None if index is None else _only(index, wanted)
            if index is None:
                continue
        kind = "seal" if index is None else "void" if info.key in void else "segment"
        rows.append({"key": info.key, "kind": kind, "size": info.size_bytes, **_brief(index)})
    print_rows(rows, LS_COLUMNS, output)


def _topic_id(bucket: str, name: str) -> bytes:
    from bucketlog.inspect.topic_ids import topic_id
    from bucketlog.tiered_storage.backends.location import open_patient_bucket

    with closing(open_patient_bucket(bucket)) as store:
        return topic_id(store, name)


def _names(store: "SyncBucket") -> dict[bytes, str]:
    """Names of topics by id; empty if the log is damaged, and `segment verify` says where."""
    from bucketlog.inspect.topic_ids import topic_names

    try:
        return topic_names(store)
    except BucketlogError as error:
        note(f"topics are shown by their ids: {error}")
        return {}


def _only(index: "SegmentIndex", topic_id: bytes) -> "SegmentIndex | None":
    """Return the footer with only the batches of one topic; None without such batches."""
    from dataclasses import replace

    parts = tuple(
        part for part in index.partitions if part.partition.topic_id == topic_id and part.batches
    )
    return replace(index, partitions=parts) if parts else None


def _all_footers(
    bucket: str,
) -> tuple[list["ObjectInfo"], set[str], dict["SegmentId", "SegmentIndex"]]:
    """The objects of all chains, the keys of those that are void, and the footers of segments."""
    from bucketlog.tiered_storage import keys
    from bucketlog.tiered_storage.backends.location import open_patient_bucket
    from bucketlog.tiered_storage.identity import NoLogError
    from bucketlog.tiered_storage.log_cut_reading import read_checkpoint, read_footers, read_tails
    from bucketlog.tiered_storage.segment import is_seal

    with closing(open_patient_bucket(bucket)) as store:
        objects = sorted(store.list(keys.LOG))
        if not objects and store.head(keys.CLUSTER) is None:
            raise NoLogError(bucket)
        tails = read_tails(store, read_checkpoint(store)).values()
        void = {info.key for tail in tails for info in tail.chain.void}
        segments = [
            keys.parse_segment(info.key) for info in objects if not is_seal(info.size_bytes)
        ]
        return objects, void, {index.segment: index for index in read_footers(store, segments)}


@app.command("facts")
def list_facts(
    bucket: BucketUrl,
    *,
    every_kind: Annotated[
        bool,
        typer.Option("--every-kind", help="Also list facts of groups, transactions and tiers."),
    ] = False,
    output: OutputFormat = Output.TABLE,
) -> None:
    """List changes of topics, users, ACLs and quotas, and who asked for them.

    The order is that of the log. Brokers delete facts together with their segments."""
    from bucketlog.metadata.config_facts import ConfigsAltered
    from bucketlog.metadata.fact_model import AttributedFact
    from bucketlog.metadata.facts import TopicFact, decode_fact
    from bucketlog.metadata.security_facts import SecurityFact
    from bucketlog.tiered_storage import keys

    objects, void, footers = _all_footers(bucket)
    counting = [
        index
        for info in objects
        if info.key not in void and (index := footers.get(keys.parse_segment(info.key)))
    ]
    rows = []
    for index in sorted(counting, key=lambda index: index.ticket):
        for fact in map(decode_fact, index.facts):
            if fact is None:
                continue
            by = (
                fact.by
                if isinstance(fact, AttributedFact | SecurityFact | ConfigsAltered)
                else None
            )
            if not every_kind and not (by or isinstance(fact, TopicFact)):
                continue
            ticket = f"{index.ticket.epoch}/{index.ticket.number}"
            rows.append(
                {
                    "created": time_text(index.created_ms),
                    "ticket": ticket,
                    "fact": fact.kind.name.lower().replace("_", " "),
                    "by": by or "",
                    "content": fact.model_dump_json(exclude=NOT_SHOWN)
                    if output is Output.TABLE
                    else fact.model_dump(mode="json", exclude=NOT_SHOWN),
                }
            )
    print_rows(rows, FACT_COLUMNS, output)


def _brief(index: "SegmentIndex | None") -> dict[str, Any]:
    if index is None:
        return {}
    batches = [row for part in index.partitions for row in part.batches]
    return {
        "created": time_text(index.created_ms),
        "ticket": f"{index.ticket.epoch}/{index.ticket.number}",
        "batches": len(batches),
        "records": sum(row.record_count for row in batches),
    }


@app.command("inspect")
def inspect(
    bucket: BucketUrl,
    key: Annotated[
        str, typer.Argument(metavar="KEY", help="Key of the object, as `segment ls` shows it.")
    ],
    output: OutputFormat = Output.TABLE,
) -> None:
    """Show one segment's footer, or a seal."""
    from bucketlog.tiered_storage.backends.location import open_patient_bucket
    from bucketlog.tiered_storage.segment import check_segment, decode_seal, is_seal

    with closing(open_patient_bucket(bucket)) as store:
        try:
            data = store.get(key).data
        except ObjectNotFoundError as error:
            error.remedy = "`bucketlog segment ls` shows the keys"
            raise
        names = {} if is_seal(len(data)) else _names(store)
    if is_seal(len(data)):
        seal = decode_seal(key, data)
        shown: dict[str, Any] = {
            "key": key,
            "kind": "seal",
            "sealed_by_epoch": seal.sealed_by_epoch,
            "created": time_text(seal.created_ms),
        }
        rows: list[dict[str, Any]] = []
    else:
        index = check_segment(key, data)
        shown = {
            "key": key,
            "kind": "segment",
            "size": len(data),
            "epoch": index.ticket.epoch,
            "ticket": index.ticket.number,
            "low_ticket": index.low_ticket,
            "created": time_text(index.created_ms),
            "facts": [entry.payload.decode(errors="replace") for entry in index.facts],
        }
        rows = [
            {
                "topic": names.get(part.partition.topic_id),
                "topic_id": str(UUID(bytes=part.partition.topic_id)),
                "partition": part.partition.partition,
                "hw_stamp": part.hw_stamp,
                **row._asdict(),
            }
            for part in index.partitions
            for row in part.batches
        ]
    if output is not Output.TABLE:
        say_json({**shown, "rows": rows})
        return
    for name, value in shown.items():
        for text in value if isinstance(value, list) else [value]:
            say(f"{name.replace('_', ' '):<16}{text}")
    if rows:
        say()
        # a deleted topic has no name
        shown_id = "topic_id" if any(row["topic"] is None for row in rows) else "topic"
        hidden = {"topic", "topic_id"} - {shown_id}
        print_rows(rows, tuple(name for name in rows[0] if name not in hidden), output)


@app.command("verify")
def verify(bucket: BucketUrl, output: OutputFormat = Output.TABLE) -> int:
    """Check every byte: footers, CRCs, offsets, chains, tiers. Exit code 1 on damage."""
    from bucketlog.inspect.verify import verify_log
    from bucketlog.tiered_storage.backends.location import open_patient_bucket

    with closing(open_patient_bucket(bucket)) as store, ExitStack() as stack:

        def show_progress(count: int) -> Callable[[], None]:
            return stack.enter_context(progress("checking objects", count)).advance

        report = verify_log(store, place=bucket, on_listed=show_progress)
    _print_report(report, output)
    return EXIT_FAILED if report.damage else EXIT_OK


def _print_report(report: "VerifyReport", output: Output) -> None:
    from dataclasses import asdict

    if output is not Output.TABLE:
        say_json(asdict(report))
        return
    for damage in report.damage:
        say(f"DAMAGED {damage.key} at byte {damage.position}: {damage.reason}")
    say(
        f"{counted(report.segments, 'segment')}, {counted(report.seals, 'seal')} and "
        f"{counted(report.checkpoints, 'checkpoint')}, "
        f"{counted(report.partition_segments, 'partition segment')}, "
        f"{counted(report.manifests, 'manifest')}, "
        f"{counted(report.size_bytes, 'byte')}: {counted(report.batches, 'batch')}, "
        f"{counted(report.records, 'record')} of {counted(report.partitions, 'partition')}; "
        f"{report.unfinished} unfinished, {report.void} void, {report.unreferenced} unreferenced"
    )
    say(f"{len(report.damage)} damaged" if report.damage else "all sound")


@app.command("gc")
def collect_garbage(
    bucket: BucketUrl,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Show what brokers would delete. This flag is required."),
    ] = False,
    every_key: Annotated[
        bool,
        typer.Option(
            "--keys", envvar="BUCKETLOG_SEGMENT_GC_KEYS", help="List each object instead of sums."
        ),
    ] = False,
    safety_age_ms: SafetyAgeMs = None,
    output: OutputFormat = Output.TABLE,
) -> None:
    """Show what brokers would delete now, and later, when it is old enough."""
    if not dry_run:
        raise ConfigurationError(
            "brokers alone delete: they keep the safety age, and log each deletion",
            remedy="add --dry-run to see what brokers would delete",
        )
    from bucketlog.inspect.garbage import find_garbage
    from bucketlog.tiered_storage.backends.location import open_patient_bucket

    with closing(open_patient_bucket(bucket)) as store:
        found = find_garbage(store, safety_age_ms=safety_age(safety_age_ms), place=bucket)
    if every_key:
        each = (
            {
                "key": one.key,
                "kind": one.kind,
                "due": one.due,
                "size": one.size_bytes,
                "reason": one.kind.reason,
            }
            for one in found.garbage
        )
        print_rows(each, GC_KEY_COLUMNS, output)
    else:
        print_rows(_by_kind(found.garbage), GC_COLUMNS, output)
    if found.floor is None:
        note("no floor is old enough: brokers delete nothing below a floor now")


def _by_kind(garbage: "Iterable[GarbageObject]") -> list[dict[str, Any]]:
    sums: dict[tuple[str, str], dict[str, Any]] = {}
    for one in garbage:
        row = sums.setdefault(
            (one.due, one.kind),
            {
                "kind": one.kind,
                "due": one.due,
                "objects": 0,
                "size": 0,
                "reason": one.kind.reason,
            },
        )
        row["objects"] += 1
        row["size"] += one.size_bytes
    return sorted(sums.values(), key=lambda row: (row["due"] != "now", row["kind"]))
