"""Commands and programs for what a page shows: the records of a search, or a replay. Pure.

Invariant: every value is one word of a command, or one literal of a program, whatever characters
the value has. Commands have no value with characters that control a terminal.
"""

import json
import shlex
from collections.abc import Mapping
from typing import NamedTuple

from bucketlog.log_format.printable import printable
from bucketlog.tiered_storage.backends.location import parse_location


class SearchedRange(NamedTuple):
    """The offsets from `begin` to before `end`. Each record that was found has `key_part` in its
    key and `value_part` in its value. `records` is the number of records, or None if the search had
    a filter."""

    url: str
    topic: str
    partition: int
    begin: int
    end: int
    records: int | None
    key_part: bytes = b""
    value_part: bytes = b""


class CopiedCode(NamedTuple):
    """The code for a range. `replay` and `consume` are commands without a filter, or None if a
    command cannot name the topic or the bucket."""

    replay: str | None
    consume: str | None
    python: str
    spark: str


class ReplayedRanges(NamedTuple):
    """The first offset of each partition, and the offset before which its replay ends."""

    url: str
    topic: str
    offsets: Mapping[int, tuple[int, int]]


class ReplayCode(NamedTuple):
    """Code for a replay to Parquet files. `command` is None if a command cannot name the topic or
    the bucket."""

    command: str | None
    python: str
    spark: str


REPLAYED = "replayed"
"""The folder to which the code writes."""


def copied_code(found: SearchedRange) -> CopiedCode:
    """Return the code for a range that is not empty."""
    found = found._replace(url=address_of(found.url))
    is_plain = _is_plain(found.url, found.topic)
    is_pattern = found.topic.startswith("^")
    return CopiedCode(
        replay_command(found) if is_plain else None,
        consume_command(found) if is_plain and not is_pattern else None,
        python_code(found),
        spark_code(found),
    )


def replay_code(found: ReplayedRanges) -> ReplayCode:
    """Return the code for a replay that has records."""
    found = found._replace(url=address_of(found.url))
    flags = ["--offsets", offsets_text(found.offsets), "--partition-by", "partition"]
    command = ["bucketlog", "replay", *flags, "--to", REPLAYED, "--", found.url, found.topic]
    return ReplayCode(
        shlex.join(command) if _is_plain(found.url, found.topic) else None,
        "\n".join(
            [
                "import bucketlog",
                "",
                *_python_replay("replay", found),
                f'report = replay.to_parquet({REPLAYED!a}, partition_by=["partition"])',
                "print(report.records, report.files)",
            ]
        ),
        "\n".join(
            [
                "from pyspark.sql import SparkSession",
                "",
                *_spark_source(found),
                ")",
                f'records.write.partitionBy("partition").parquet({REPLAYED!a})',
            ]
        ),
    )


def _is_plain(*texts: str) -> bool:
    """Whether no text has characters that control a terminal."""
    return all(printable(text) == text for text in texts)


def offsets_text(offsets: Mapping[int, tuple[int, int]]) -> str:
    """The value of `--offsets`."""
    return ",".join(f"{number}:{begin}-{end}" for number, (begin, end) in offsets.items())


def address_of(place: str) -> str:
    """Return the address with an absolute path, so that the code works in any folder."""
    return place if "://" in place else parse_location(place).path


def replay_command(found: SearchedRange) -> str:
    """Return a command that prints the records as JSON lines."""
    offsets = offsets_text(_ranges_of(found).offsets)
    return shlex.join(
        ["bucketlog", "replay", "--offsets", offsets, "--", found.url, found.topic]
    )  # after --, a topic such as --to is no flag


def _ranges_of(found: SearchedRange) -> ReplayedRanges:
    return ReplayedRanges(found.url, found.topic, {found.partition: (found.begin, found.end)})


def _python_replay(name: str, found: ReplayedRanges) -> list[str]:
    """The lines that make a replay."""
    return [
        f"{name} = bucketlog.replay(",
        f"    {found.url!a},",
        f"    {found.topic!a},",
        f"    offsets={dict(found.offsets)!a},",
        ")",
    ]


def _spark_source(found: ReplayedRanges) -> list[str]:
    """The lines that read the records, except the bracket at their end."""
    options = {
        "assign": {found.topic: list(found.offsets)},
        "startingOffsets": {
            found.topic: {str(at): begin for at, (begin, _) in found.offsets.items()}
        },
        "endingOffsets": {found.topic: {str(at): end for at, (_, end) in found.offsets.items()}},
    }
    return [
        "from bucketlog.spark_jobs.source import register",
        "",
        "spark = SparkSession.builder.getOrCreate()",
        "register(spark)",
        "records = (",
        '    spark.read.format("bucketlog")',
        *(f'    .option("{name}", {json.dumps(value)!a})' for name, value in options.items()),
        '    .option("includeHeaders", "true")',
        f"    .load({found.url!a})",
    ]


def consume_command(found: SearchedRange) -> str:
    """Return a command that gets records from a broker, and prints them as JSON lines. The command
    ends after the number of records, or at the end of the partition if the number is unknown."""
    count = [] if found.records is None else ["-n", str(found.records)]
    where = ["--partition", str(found.partition), "--from", str(found.begin)]
    flags = [*where, *count, "--until-end", "-o", "jsonl"]
    return shlex.join(["bucketlog", "consume", *flags, "--", found.topic])


def python_code(found: SearchedRange) -> str:
    """Return a program that prints offset, key and value of each record."""
    tests = [
        f"{part!a} in (record.raw_{name} or b'')"
        for name, part in (("key", found.key_part), ("value", found.value_part))
        if part
    ]
    show = "print(record.offset, record.raw_key, record.raw_value)"
    body = [f"    {show}"]
    if tests:
        body = [f"    if {' and '.join(tests)}:", f"        {show}"]
    return "\n".join(
        [
            "import bucketlog",
            "",
            *_python_replay("records", _ranges_of(found)),
            "for record in records:",
            *body,
        ]
    )


def spark_code(found: SearchedRange) -> str:
    """Return a Spark program that shows offset, key and value of each record."""
    tests = [
        f'    .where(F.contains(F.col("{name}"), F.lit({part!a})))'
        for name, part in (("key", found.key_part), ("value", found.value_part))
        if part
    ]
    imports = ["from pyspark.sql import SparkSession"]
    if tests:
        imports.append("from pyspark.sql import functions as F")
    return "\n".join(
        [
            *imports,
            "",
            *_spark_source(_ranges_of(found)),
            *tests,
            ")",
            'records.select("offset", "key", "value").show()',
        ]
    )
