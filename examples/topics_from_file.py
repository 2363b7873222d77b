"""Topics created and updated as a file says, from a deployment script: `bucketlog apply` as code.

    pip install bucketlog
    python examples/topics_from_file.py topics.toml

where topics.toml holds

    [orders]
    partitions = 6
    retention = "7d"

    [customers]
    configs = { "cleanup.policy" = "compact" }

It is safe to run repeatedly. Topics that are not in the file are left alone.
"""

import os
import sys
import tomllib
from pathlib import Path

from pydantic import BaseModel, ConfigDict, TypeAdapter

import bucketlog

ADDRESS = os.environ.get("BUCKETLOG_BOOTSTRAP", "localhost:9092")


class Wanted(BaseModel):
    model_config = ConfigDict(extra="forbid")

    partitions: int = 1
    retention: str | None = None
    configs: dict[str, str] = {}


def apply(log: bucketlog.Log, name: str, wanted: Wanted) -> str:
    """Returns what was done."""
    there = {info.name: info.partitions for info in log.topics.list()}
    if name not in there:
        log.topics.create(
            name,
            partitions=wanted.partitions,
            retention=wanted.retention,
            configs=wanted.configs,
        )
        return "created"
    if there[name] < wanted.partitions:
        log.topics.add_partitions(name, wanted.partitions)
    if wanted.retention is not None or wanted.configs:
        log.topics.configure(name, wanted.configs, retention=wanted.retention)
    return "there already, settings applied"


def main() -> None:
    text = Path(sys.argv[1]).read_text()
    topics = TypeAdapter(dict[str, Wanted]).validate_python(tomllib.loads(text))
    with bucketlog.connect(ADDRESS) as log:
        for name, wanted in topics.items():
            print(f"{name}: {apply(log, name, wanted)}")
            details = log.topics.describe(name)
            chosen = {key: details.configs[key] for key in sorted(details.overrides)}
            print(f"  {len(details.partitions)} partitions, {chosen}")


if __name__ == "__main__":
    main()
