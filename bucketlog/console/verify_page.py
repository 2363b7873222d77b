"""What the page Verify shows: what a check of the log reads, and the progress of the latest."""

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
"""By figure of `VerifyReport`."""


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
    """Raises `CheckRefusedError`."""
    checks_of(console).start()


def stop_check(console: Console) -> None:
    checks_of(console).stop()


def checks_of(console: Console) -> LogChecks:
    """Raises `ConfigurationError` if this console makes no checks."""
    if console.checks is None:
        raise ConfigurationError(
            "this console checks no log", remedy="use `bucketlog segment verify`"
        )
    return console.checks
