"""Computes the page Verify: the objects that a check reads, and the state of the latest check."""

from collections.abc import Mapping

from bucketlog.console.log_checks import LogChecks
from bucketlog.console.page_query import PageQuery
from bucketlog.console.pages import Console, Values
from bucketlog.cost.assumptions import Assumptions
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.tiered_storage import keys

CHECKED_KINDS = (keys.LOG, keys.CHECKPOINTS, keys.SEGMENTS, keys.MANIFESTS)
LOOK_AGAIN_MS = 500
LABELS: Mapping[str, str] = {
    "segments": "Log segments",
    "seals": "Seals",
    "checkpoints": "Checkpoints",
    "partition_segments": "Partition segments",
    "manifests": "Manifests",
    "size_bytes": "Bytes",
    "topics": "Topics",
    "partitions": "Partitions",
    "batches": "Batches in log segments",
    "records": "Records in log segments",
    "unfinished": "Objects after a gap, not yet part of the log",
    "void": "Objects after a seal, never part of the log",
    "unreferenced": "Tier objects that no tier names",
}
"""The label of each figure of `VerifyReport`."""


def verify(console: Console, query: PageQuery) -> Values:
    objects = console.objects()
    infos = [info for kind in CHECKED_KINDS for info in objects.by_kind[kind]]
    return {
        "view": None,
        "objects": len(infos),
        "size_bytes": sum(info.size_bytes for info in infos),
        "usd": len(infos) / 1_000 * Assumptions().s3_standard_get_usd_per_1000,
        "check": checks_of(console).latest,
        "labels": LABELS,
        "look_again_ms": LOOK_AGAIN_MS,
    }


def start_check(console: Console) -> None:
    """Start a check. Raises `CheckRefusedError` if a check runs, or has just ended."""
    checks_of(console).start()


def stop_check(console: Console) -> None:
    checks_of(console).stop()


def checks_of(console: Console) -> LogChecks:
    """Return the checks. Raises `ConfigurationError` if this console runs no checks."""
    if console.checks is None:
        raise ConfigurationError(
            "this console cannot check the log", remedy="use `bucketlog segment verify`"
        )
    return console.checks
