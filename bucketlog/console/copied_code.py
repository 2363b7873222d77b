"""Commands and programs that read the records of a search on the page Messages. Pure.

Invariant: every value is one word of a command, or one literal of a program, whatever characters
the value has. Commands have no value with characters that control a terminal.
"""

import json
import shlex
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


def copied_code(found: SearchedRange) -> CopiedCode:
    """Return the code for a range that is not empty."""
    found = found._replace(url=address_of(found.url))
    is_plain = all(printable(text) == text for text in (found.url, found.topic))
    is_pattern = found.topic.startswith("^")
    return CopiedCode(
        replay_command(found) if is_plain else None,
        consume_command(found) if is_plain and not is_pattern else None,
        python_code(found),
        spark_code(found),
    )


def address_of(place: str) -> str:
    """Return the address with an absolute path, so that the code works in any folder."""
    return place if "://" in place else parse_location(place).path


def replay_command(found: SearchedRange) -> str:
    """Return a command that prints the records as JSON lines."""
    offsets = f"{found.partition}:{found.begin}-{found.end}"
    return shlex.join(
        ["bucketlog", "replay", "--offsets", offsets, "--", found.url, found.topic]
    )  # after --, a topic such as --to is no flag


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
            "records = bucketlog.replay(",
            f"    {found.url!a},",
            f"    {found.topic!a},",
            f"    offsets={{{found.partition}: ({found.begin}, {found.end})}},",
            ")",
            "for record in records:",
            *body,
        ]
    )


def spark_code(found: SearchedRange) -> str:
    """Return a Spark program that shows offset, key and value of each record."""
    options = {
        "assign": {found.topic: [found.partition]},
        "startingOffsets": {found.topic: {str(found.partition): found.begin}},
        "endingOffsets": {found.topic: {str(found.partition): found.end}},
    }
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
            "from bucketlog.spark_jobs.source import register",
            "",
            "spark = SparkSession.builder.getOrCreate()",
            "register(spark)",
            "records = (",
            '    spark.read.format("bucketlog")',
            *(f'    .option("{name}", {json.dumps(value)!a})' for name, value in options.items()),
            '    .option("includeHeaders", "true")',
            f"    .load({found.url!a})",
            *tests,
            ")",
            'records.select("offset", "key", "value").show()',
        ]
    )
