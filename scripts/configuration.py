"""Writes docs/configuration.md from the settings themselves: `python scripts/configuration.py`.

A test holds the file against what this makes (tests/architecture/test_configuration.py).
"""

import sys
from pathlib import Path

from pydantic import AliasChoices
from pydantic.fields import FieldInfo

from bucketlog.stateless_broker.settings.broker import BrokerSettings
from bucketlog.tiered_storage.backends.s3_options import S3Options

TARGET = Path(__file__).parents[1] / "docs" / "configuration.md"
HEAD = """\
# Configuration of a broker

`bucketlog broker` reads its settings from the environment.
Buckets on S3 also take the standard `AWS_*` variables, and those [below](#a-bucket-on-s3).
`BUCKETLOG_LOG_LEVEL` is DEBUG, INFO, WARNING or ERROR, `BUCKETLOG_LOG_FORMAT` text
or json. Written by `scripts/configuration.py`.
How to run two brokers by hand: [brokers.md](brokers.md). Redis: [redis.md](redis.md).

| variable | default | meaning |
|---|---|---|
"""
S3_HEAD = """
## A bucket on S3
For whoever opens one: brokers, the command line, Spark (there `s3.<name>` as an option).
Credentials are found the usual way (`AWS_ACCESS_KEY_ID`, a profile, a role). What is asked of the
store: [bucket.md](bucket.md).

| variable | default | meaning |
|---|---|---|
"""


def render() -> str:
    fields = BrokerSettings.model_fields
    own = [name for name in fields if name in BrokerSettings.__annotations__]
    inherited = [name for name in fields if name not in BrokerSettings.__annotations__]
    broker = [_row(f"`BUCKETLOG_{name.upper()}`", fields[name]) for name in own + inherited]
    s3 = [_row(_s3_variable(name, field), field) for name, field in S3Options.model_fields.items()]
    return "".join([HEAD, *broker, S3_HEAD, *s3])


def _row(variable: str, field: FieldInfo) -> str:
    default = "required" if field.is_required() else f"`{field.default}`"
    return f"| {variable} | {default} | {field.description} |\n"


def _s3_variable(name: str, field: FieldInfo) -> str:
    match field.validation_alias:
        case AliasChoices(choices=choices):
            return ", ".join(f"`{choice}`" for choice in choices)
        case _:
            return f"`BUCKETLOG_S3_{name.upper()}`"


def main() -> int:
    TARGET.write_text(render())
    return 0


if __name__ == "__main__":
    sys.exit(main())
