"""Topics and groups of bucketlog go to an Apache Kafka, while the export is killed.

The export's process is killed once with kill -9, after its first records. In the end, Kafka has the
same records in the same order, and groups that had read everything continue at the end.
"""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from bucketlog.client.admin import LATEST, Admin
from bucketlog.log_format.errors import LogError
from bucketlog.mirror.groups import committed_offsets
from bucketlog.mirror.source import Partition
from localstack.apache_kafka import running_kafka
from tests.rigs.patience import PATIENCE_S, eventually
from tests.scenarios.logs_read import KEPT, PARTITIONS, PartitionContent, read_log


def export_to_kafka(
    folder: Path,
    bootstrap: str,
    topics: Mapping[str, str],
    groups: Mapping[str, str],
    *,
    step_s: float,
) -> str:
    """`groups`: their topics by name. The export takes at most `step_s`. Returns its last line.
    Raises `AssertionError` where a record or a group's place is lost."""
    with running_kafka(folder / "other-kafka") as kafka:
        command = [
            *(sys.executable, "-m", "bucketlog.cli", "export", "--to"),
            *(f"kafka://{kafka.bootstrap}", "-b", bootstrap),
            *("--topics", "*", "--groups", "group-*"),
        ]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        eventually(lambda: _records_at(kafka.bootstrap, topics) > 0)
        assert process.poll() is None, "the export has ended by itself"
        process.kill()
        process.wait()
        done = subprocess.run(
            [*command, "--finish"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=step_s,
        )
        there = read_log(kafka.bootstrap, topics)
        for place, ours in read_log(bootstrap, topics).items():
            is_kept = topics[place[0]] == KEPT
            contents = _latest if is_kept else _all_in_order
            assert contents(there[place]) == contents(ours), f"{place}: other records"
        _check_groups(kafka.bootstrap, groups, there)
    return done.stdout.splitlines()[-1]


def _check_groups(
    bootstrap: str, groups: Mapping[str, str], there: Mapping[tuple[str, int], PartitionContent]
) -> None:
    """The groups have read everything, so they continue at the end."""
    admin = Admin({"bootstrap.servers": bootstrap}, timeout_s=PATIENCE_S)
    for group, topic in groups.items():
        committed = committed_offsets(admin, group)
        for number in range(PARTITIONS):
            content = there[topic, number]
            if content.offsets:
                offset, _ = committed[Partition(topic, number)]
                assert content.offsets[-1] < offset <= content.end, f"{group}: {topic}-{number}"


def _all_in_order(content: PartitionContent) -> object:
    """Whatever their offsets are."""
    return [content.by_offset[offset] for offset in content.offsets]


def _latest(content: PartitionContent) -> object:
    """By key: each cluster compacts at its own times."""
    return {key: digest for key, (_, digest) in content.keys.items()}


def _records_at(bootstrap: str, topics: Mapping[str, str]) -> int:
    admin = Admin({"bootstrap.servers": bootstrap}, timeout_s=PATIENCE_S)
    try:
        return sum(
            end
            for name in topics
            for end in admin.offsets(name, range(PARTITIONS), LATEST, "looking").values()
        )
    except LogError:  # not created yet
        return 0
