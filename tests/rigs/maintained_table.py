"""A table with small files, and its maintenance."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

from bucketlog.log_reader.tables.maintenance import small_files
from bucketlog.log_reader.tables.maintenance.small_files import RewriteCounts, RewriteRule
from bucketlog.log_reader.tables.maintenance.table_maintenance import (
    MaintenanceReport,
    MaintenanceRules,
    TableMaintenance,
)
from tests.rigs.batched_table import NAME, BatchedTable

BATCHES = 6
DAY_US = 86_400_000_000
SNAPSHOTS = 3
RULES = MaintenanceRules(RewriteRule(files_min=3), timedelta(0), timedelta(days=2), SNAPSHOTS)
LATER = timedelta(days=3)


class MaintainedTable(BatchedTable):
    """A table with a small file of each batch, in two days, and with dead letters."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        for number in range(BATCHES):
            values = (b'{"id":%d}' % number, b'{"id":%d}' % (number + 100))
            self.ingest(*values, b"{", timestamp_us=number % 2 * DAY_US)

    def maintain(
        self, *, after: timedelta = LATER, rules: MaintenanceRules = RULES, dry_run: bool = False
    ) -> list[MaintenanceReport]:
        """Maintain both tables, `after` from now."""
        return TableMaintenance(
            NAME,
            lambda: self.catalog,
            Random(1),
            lambda: datetime.now(UTC) + after,
            sleep=lambda _: None,
        ).run(rules, dry_run=dry_run)

    def rewrite(self) -> RewriteCounts:
        found = small_files.SmallFiles(
            self.load, RULES.rewrite, random=Random(1), sleep=lambda _: None
        )
        return found.rewrite()

    def files(self) -> list[Path]:
        """The files of the table's folder."""
        root = Path(self.load().location().removeprefix("file://"))
        return sorted(path for path in root.rglob("*") if path.is_file())

    def data_files(self) -> int:
        return len(list(self.load().scan().plan_files()))
