"""`bucketlog doctor`: digests of a bucket or a cluster, and what differs between two."""

import re
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bucketlog.cli.options import EncryptionKeyFile, OutputFormat
from bucketlog.cli.security import given_client_config, given_security, secured
from bucketlog.log_format.errors import BucketlogError
from bucketlog.terminal import (
    EXIT_FAILED,
    EXIT_OK,
    Output,
    counted,
    note,
    print_rows,
    say,
    say_json,
)

if TYPE_CHECKING:
    from bucketlog.inspect.doctor.digest import LogDigest

PARTITION_COLUMNS = ("topic", "partition", "earliest", "latest", "records", "digest")
GROUP_COLUMNS = ("group", "topic", "partition", "committed", "leader_epoch", "metadata")
_ADDRESSES = re.compile(r"[^/,]+:\d+(,[^/,]+:\d+)*")
_PLACE = "s3://bucket/prefix, file:///folder, or HOST:PORT of a broker"


@secured
def doctor(
    log: Annotated[str, typer.Argument(metavar="LOG", help=_PLACE)],
    other: Annotated[
        str | None, typer.Argument(metavar="[OTHER]", help="Second log, to compare with the first.")
    ] = None,
    encryption_key_file: EncryptionKeyFile = None,
    output: OutputFormat = Output.TABLE,
) -> int:
    """Show what a log says, as digests; or compare two. Exit code 1 where they differ."""
    ours = _digest(log, encryption_key_file, is_compared=other is not None)
    if other is None:
        _print(ours, output)
        return EXIT_OK
    from bucketlog.inspect.doctor.digest import differences

    theirs = _digest(other, encryption_key_file, is_compared=True)
    found = list(differences(ours, theirs))
    if output is not Output.TABLE:
        say_json({"differences": found, "digests": [ours.digest, theirs.digest]})
    else:
        for line in found:
            say(f"DIFFERS {line}")
        say(f"{counted(len(found), 'difference')}: {_summary(ours)}")
    return EXIT_FAILED if found else EXIT_OK


def _digest(place: str, key_file: Path | None, *, is_compared: bool) -> "LogDigest":
    if _ADDRESSES.fullmatch(place) and "://" not in place:
        from bucketlog.inspect.doctor.of_cluster import digest_of_cluster

        return digest_of_cluster(
            place, security=given_security(), client_config=given_client_config()
        )
    from bucketlog.inspect.doctor.of_bucket import digest_of_bucket
    from bucketlog.tiered_storage.backends.location import open_patient_bucket
    from bucketlog.tiered_storage.encryption.reading_keys import KeyOptions

    with closing(open_patient_bucket(place)) as bucket:
        try:
            found = digest_of_bucket(bucket, place, KeyOptions(key_file=key_file).access())
        except BucketlogError as error:
            if is_compared:  # a copy has the same keys
                error.add_note(f"in {place}")
            raise
    if found.withheld:
        note(f"{place}: {counted(found.withheld, 'batch')} behind a gap that may still be filled")
    return found


def _summary(digest: "LogDigest") -> str:
    partitions = sum(len(topic.partitions) for topic in digest.topics.values())
    return (
        f"{counted(len(digest.topics), 'topic')}, {counted(partitions, 'partition')}, "
        f"{counted(digest.records, 'record')}, {counted(len(digest.groups), 'group')}; "
        f"{digest.digest}"
    )


def _print(digest: "LogDigest", output: Output) -> None:
    partitions = [
        {"topic": name, "partition": number, **asdict(part)}
        for name, topic in sorted(digest.topics.items())
        for number, part in enumerate(topic.partitions)
    ]
    groups: list[dict[str, Any]] = [
        {
            "group": group,
            "topic": topic,
            "partition": number,
            "committed": row.offset,
            "leader_epoch": row.leader_epoch,
            "metadata": row.metadata,
        }
        for group, rows in sorted(digest.groups.items())
        for (topic, number), row in sorted(rows.items(), key=lambda item: item[0])
    ]
    configs = {name: dict(topic.configs) for name, topic in sorted(digest.topics.items())}
    if output is not Output.TABLE:
        whole = {"cluster_id": digest.cluster_id, "digest": digest.digest, "configs": configs}
        say_json({**whole, "partitions": partitions, "groups": groups})
        return
    print_rows(partitions, PARTITION_COLUMNS, output)
    for name, pairs in configs.items():
        for config, value in sorted(pairs.items()):
            say(f"{name}: {config}={value}")
    if groups:
        say()
        print_rows(groups, GROUP_COLUMNS, output)
    say("", f"cluster {digest.cluster_id}: {_summary(digest)}")
