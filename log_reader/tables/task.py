"""What a task of an ingest into Iceberg does: pieces of the log become files. Spark-free."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import NamedTuple

from pyiceberg.manifest import DataFile

from bucketlog.log_reader.fetch import read_planned
from bucketlog.log_reader.options import ReadOptions, open_log
from bucketlog.log_reader.plan import TaskPiece
from bucketlog.log_reader.tables.iceberg_files import TableFiles
from bucketlog.log_reader.tables.rows import SOURCE_COLUMNS, RowMaker, RowShape, numbered


class TaskFiles(NamedTuple):
    """The files that a task wrote: of rows, and of dead letters."""

    rows: list[DataFile]
    dead_letters: list[DataFile]


@dataclass(frozen=True, slots=True)
class TaskWork:
    """The same for all tasks of a batch. `dead_letters` is None if there is no table for them."""

    options: ReadOptions
    shape: RowShape
    batch: int
    rows: TableFiles
    dead_letters: TableFiles | None

    def run(self, pieces: Sequence[TaskPiece]) -> TaskFiles:
        """Raises `InvalidDataError` for a value that does not fit, if the shape says so, and the
        errors of `read_planned`."""
        maker = RowMaker(self.shape)
        rows = self.rows.writer()
        letters = self.dead_letters.writer() if self.dead_letters else None
        with (
            closing(open_log(self.options)) as source,
            closing(read_planned(source, self.options, pieces, SOURCE_COLUMNS)) as records,
        ):
            for each in records:
                made = maker.rows(each)
                rows.add(numbered(made.rows, self.batch))
                if letters is not None:
                    letters.add(numbered(made.dead, self.batch))
        return TaskFiles(rows.finish(), letters.finish() if letters else [])
