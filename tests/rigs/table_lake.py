"""A log in a folder, and an Iceberg table that `bucketlog table run` fills from it."""

import json
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog

from bucketlog.log_format.records import DecodedRecord
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.file import FileBucket
from tests.rigs.group_log import IDENTITY
from tests.rigs.patience import PATIENCE_S
from tests.rigs.shell import COMMAND
from tests.rigs.written_log import START_MS, WrittenLog
from tests.servers.prepared_process import PreparedProcess, run_prepared

TOPIC = "orders"
PARTITIONS = 3


class Lake:
    """A log in a folder, with a catalog for the table `lake.db.orders`."""

    def __init__(
        self,
        folder: Path,
        value_flags: Sequence[str] = ("--schema", "id string, amount double"),
    ) -> None:
        self.folder = folder
        self.value_flags = value_flags
        bucket = FileBucket(folder / "log" / "0")
        assert bucket.create(keys.CLUSTER, [IDENTITY.model_dump_json().encode()])
        self.log = WrittenLog(bucket)
        self.log.create_topic(TOPIC, PARTITIONS)
        self.produced: Counter[str] = Counter()
        self.properties = {
            "type": "sql",
            "uri": f"sqlite:///{folder}/catalog.db",
            "warehouse": f"file://{folder}/warehouse",
        }

    def produce(self, count: int) -> None:
        """Write `count` records into one new segment."""
        for number in range(count):
            name = f"{len(self.produced)}"
            value = json.dumps({"id": name, "amount": number / 2}).encode()
            record = DecodedRecord(0, START_MS + number, b"key", value)
            self.log.append(TOPIC, number % PARTITIONS, [record])
            self.produced[name] += 1
        self.log.flush()

    def put(self, value: bytes) -> None:
        self.log.append(TOPIC, 0, [DecodedRecord(0, START_MS, b"key", value)])
        self.log.flush()

    @property
    def command(self) -> list[str]:
        properties = [f"--catalog-property={name}={it}" for name, it in self.properties.items()]
        return [
            *(*COMMAND, "table", "run", f"file://{self.folder}/log", "--topics", TOPIC),
            *(*self.value_flags, "--into", "lake.db.orders"),
            *(*properties, "--processes", "2", "-o", "json"),
        ]

    def run(self, *arguments: str, code: int = 0) -> dict[str, object]:
        done = run_prepared([*self.command, *arguments])
        assert done.returncode == code, done.stderr.decode()
        return json.loads(done.stdout) if not code else {"error": done.stderr.decode()}

    @contextmanager
    def started(self, *arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
        with (self.folder / "out").open("ab") as out, (self.folder / "errors").open("ab") as errors:
            process = PreparedProcess([*self.command, *arguments], stdout=out, stderr=errors)
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            process.wait(PATIENCE_S)

    def catalog(self) -> Catalog:
        return load_catalog("lake", **self.properties)

    def rows(self, table: str = "db.orders") -> pa.Table:
        return self.catalog().load_table(table).scan().to_arrow()

    def ids(self) -> Counter[str]:
        return Counter(self.rows().column("id").to_pylist())

    def has_rows(self, count: int) -> bool:
        return self.catalog().table_exists("db.orders") and self.rows().num_rows >= count
