"""docs/spark.md's table has the options that the source knows, no more and no fewer."""

import re

from bucketlog.log_reader.options import KNOWN, parse_options
from bucketlog.tiered_storage.backends.location import S3Options
from tests.models.repository import ROOT

PAGE = ROOT / "docs" / "spark.md"


def documented(text: str) -> dict[str, str]:
    """Option and default."""
    section = text.partition("\n## Options\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([^`]+)` \| ([^|]*) \|", section, re.MULTILINE)
    assert len(rows) == len(dict(rows)), "an option stands there twice"
    return dict(rows)


def test_each_option_is_documented() -> None:
    found = documented(PAGE.read_text())
    assert found.keys() == {*KNOWN, *(f"s3.{name}" for name in S3Options.model_fields)}


def test_numbers_are_the_defaults() -> None:
    found = documented(PAGE.read_text())
    plain = parse_options({"path": "s3://b", "subscribe": "a"})
    assert plain.s3 is not None
    numbers = {
        "maxPartitionBytes": plain.max_partition_bytes,
        "maxDecompressedBytes": plain.max_decompressed_bytes,
        "pollIntervalMs": plain.poll_interval_ms,
        "giveUpAfterMs": plain.give_up_after_ms,
    }
    numbers |= {
        f"s3.{name}": field.default
        for name, field in S3Options.model_fields.items()
        if isinstance(field.default, int)
    }
    assert {name: found[name] for name in numbers} == {
        name: str(value) for name, value in numbers.items()
    }
    assert found["isolation.level"] == f"`{plain.isolation}`"
