"""The work of a task of an ingest into Iceberg: pieces of the log become files. Spark-free."""

from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
from pyiceberg.manifest import DataFile

from bucketlog.log_reader import decoder_choice
from bucketlog.log_reader.chunks import chunks, decoded_chunk
from bucketlog.log_reader.fetch import checked_batches
from bucketlog.log_reader.options import ReadOptions, open_log
from bucketlog.log_reader.plan import TaskPiece, offsets_of
from bucketlog.log_reader.tables import compiled_columns
from bucketlog.log_reader.tables.iceberg_files import TableFiles
from bucketlog.log_reader.tables.rows import SOURCE_COLUMNS, RowMaker, RowShape, numbered
from bucketlog.tiered_storage.bucket import SyncBucket


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
        offsets = sum(map(offsets_of, pieces))
        decoder_choice.PROCESS.expect(offsets)
        compiled_columns.PROCESS.expect(offsets)
        maker = RowMaker(self.shape)
        rows = self.rows.writer()
        letters = self.dead_letters.writer() if self.dead_letters else None
        with (
            closing(open_log(self.options)) as source,
            closing(self._records(source, pieces)) as records,
        ):
            for each in records:
                made = maker.rows(each)
                rows.add(numbered(made.rows, self.batch))
                if letters is not None:
                    letters.add(numbered(made.dead, self.batch))
        return TaskFiles(rows.finish(), letters.finish() if letters else [])

    def _records(
        self, source: SyncBucket, pieces: Sequence[TaskPiece]
    ) -> Generator[pa.RecordBatch, None, None]:
        """Yield the records in large batches, because each batch costs a millisecond of Python."""
        reads = checked_batches(source, pieces, encryption=self.options.encryption)
        with closing(chunks(reads)) as stored:
            for chunk in stored:
                yield from decoded_chunk(chunk, SOURCE_COLUMNS, self.options)
