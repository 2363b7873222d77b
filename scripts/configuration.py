"""Writes docs/configuration.md from the settings themselves: `python scripts/configuration.py`.

A test holds the file against what this makes (tests/architecture/test_configuration.py).
"""

import sys
from pathlib import Path

from stateless_broker.settings import BrokerSettings

TARGET = Path(__file__).parents[1] / "docs" / "configuration.md"
HEAD = """\
# Configuration of a broker

`bucketlog broker` (or `python -m stateless_broker`) reads its settings from the environment.
Buckets on S3 also take the standard `AWS_*` variables ([bucket.md](bucket.md)).
`BUCKETLOG_LOG_LEVEL` is DEBUG, INFO, WARNING or ERROR. Written by `scripts/configuration.py`.

| variable | default | meaning |
|---|---|---|
"""


def render() -> str:
    rows = []
    for name, field in BrokerSettings.model_fields.items():
        default = "required" if field.is_required() else f"`{field.default}`"
        rows.append(f"| `BUCKETLOG_{name.upper()}` | {default} | {field.description} |\n")
    return HEAD + "".join(rows)


def main() -> int:
    TARGET.write_text(render())
    return 0


if __name__ == "__main__":
    sys.exit(main())
