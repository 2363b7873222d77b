"""Files in the folder of an Iceberg table that no snapshot has.

Killed tasks and expired snapshots leave such files. Invariants: the folder is listed before the
table is loaded, so a file of a commit in between is known. Files that are younger than an age stay,
because a running ingest may commit them. Files that a table property names stay as well: dead
letters that are not in their table yet, and rows of a reprocessing. If the listing lacks a file
that the table has, nothing is deleted.

Files are compared by their last names, which are unique: other engines may write the same folder
with another scheme, with more slashes, or through a link.
"""

import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyarrow.fs import FileSelector, FileType
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table import Table, TableProperties

from bucketlog.log_format.errors import BucketError, ConfigurationError, CorruptObjectError
from bucketlog.log_reader.tables import reprocessing
from bucketlog.log_reader.tables.iceberg_table import PROPERTY, ancestors_of

FOLDERS = ("data", "metadata")
"""The folders of a table, below its location."""
_MOVED = (TableProperties.WRITE_DATA_PATH, TableProperties.WRITE_METADATA_PATH)
_DELETES = "gc.enabled"
"""Engines set it to false for tables that share files, such as Spark's `snapshot`."""
_HINT = "version-hint.text"
_METADATA = (".metadata.json", ".metadata.json.gz")
_METADATA_BYTES = 4_096
_GZIP = b"\x1f\x8b"
_UUID = re.compile(rb'"table-uuid"\s*:\s*"([0-9a-fA-F-]+)"')


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A file of a listing. `path` is its name in the file system. `modified` is
    None if the store does not tell it."""

    path: str
    size_bytes: int
    modified: datetime | None

    @property
    def name(self) -> str:
        return name_of(self.path)


def orphans(
    load: Callable[[], Table],
    others: Callable[[], Iterable[Table]],
    before: datetime,
    *,
    neighbours: Callable[[], Iterable[Table]] = list,
) -> list[ListedFile]:
    """Return the files of the table that no snapshot has, and that were written before `before`.

    `others` loads tables whose properties may name files of this table. `neighbours` loads tables
    that may share its folder. Raises `ConfigurationError` if files of the table are not in its own
    folder, or if the folder is shared, and `BucketError` if the listing lacks files of the table.
    """
    first = load()
    check_may_delete(first)
    listed = list(_listed(first))
    _check_complete(first, listed)
    table = load()
    known = {name_of(path) for path in (*_files(table), *_earlier_files(table))}
    for each in (table, *others()):
        known |= {name_of(path) for path in _named_by_properties(each)}
    found = [
        file
        for file in listed
        if file.modified is not None and file.modified < before and file.name not in known
    ]
    _check_not_shared(table, found, neighbours)
    return found


def check_may_delete(table: Table) -> None:
    """Raises `ConfigurationError` if properties of the table forbid the deletion of orphans."""
    if table.properties.get(_DELETES, "").lower() == "false":
        raise ConfigurationError(
            f"{'.'.join(table.name())} has the property {_DELETES}=false: its files must not be "
            "deleted",
            remedy="remove this property if no other table has files of this one",
        )
    for name in _MOVED:
        if name in table.properties:
            raise ConfigurationError(
                f"{'.'.join(table.name())} has the property {name}: its files are elsewhere",
                remedy="remove orphan files by the engine that set this property",
            )


def remove(table: Table, files: Iterable[ListedFile]) -> None:
    """Delete files of the table's folder."""
    system = _file_system(table)
    for file in files:
        with suppress(FileNotFoundError):  # other maintenance has deleted it
            system.delete_file(file.path)


def name_of(path: str) -> str:
    """Return the last name of a path."""
    return path.rpartition("/")[2]


def place_of(path: str) -> str:
    """Return bucket and key, or the path of a local file, whatever scheme and slashes are."""
    scheme, separator, rest = path.partition("://")
    text = rest if separator else scheme.removeprefix("file:")
    return "/".join(filter(None, text.split("/")))


def _scheme_of(location: str) -> str:
    scheme, separator, _ = location.partition(":")
    return scheme if separator else "file"


def _file_system(table: Table) -> Any:
    scheme = _scheme_of(table.location())
    bucket = place_of(table.location()).partition("/")[0]
    netloc = None if scheme == "file" else bucket
    return PyArrowFileIO(table.io.properties).fs_by_scheme(scheme, netloc)


def _listed(table: Table) -> Iterator[ListedFile]:
    system = _file_system(table)
    is_local = _scheme_of(table.location()) == "file"
    for folder in FOLDERS:
        root = f"{'/' if is_local else ''}{place_of(table.location())}/{folder}"
        selector = FileSelector(root, allow_not_found=True, recursive=True)
        for info in system.get_file_info(selector):
            if info.type is FileType.File and info.base_name != _HINT:
                yield ListedFile(info.path, info.size, info.mtime)


def _check_complete(table: Table, listed: Iterable[ListedFile]) -> None:
    """A listing without files of the table has other names for them: every file would look like an
    orphan. Raises `BucketError`."""
    roots = tuple(f"{place_of(table.location())}/{folder}/" for folder in FOLDERS)
    here = {path for path in map(place_of, _files(table)) if path.startswith(roots)}
    names = {file.name for file in listed}
    missing = {path for path in here if name_of(path) not in names}
    if missing:
        raise BucketError(
            f"the listing of {table.location()} lacks {len(missing)} files of the table, such as "
            f"{min(missing)}; nothing was deleted",
            remedy="run the command again; if the files are gone, repair the table first",
        )


def _check_not_shared(
    table: Table, found: Iterable[ListedFile], neighbours: Callable[[], Iterable[Table]]
) -> None:
    """A table that was renamed keeps its folder, and a new one with the old name gets the same.
    Metadata of a table that was dropped is an orphan. Raises `ConfigurationError`."""
    system = _file_system(table)
    foreign = {_uuid_in(system, file) for file in found if file.name.endswith(_METADATA)}
    foreign -= {None, str(table.metadata.table_uuid)}
    if not foreign:
        return
    for each in neighbours():
        if str(each.metadata.table_uuid) in foreign:
            raise ConfigurationError(
                f"{'.'.join(each.name())} has files in the folder of {'.'.join(table.name())}, "
                f"{table.location()}",
                remedy="copy one of both tables to another location, and drop it here",
            )


def _uuid_in(system: Any, file: ListedFile) -> str | None:
    """Return the id of the table that has this metadata, which is among its first members."""
    try:
        with system.open_input_file(file.path) as stream:
            text: bytes = stream.read(_METADATA_BYTES)
    except FileNotFoundError:  # other maintenance has deleted it
        return None
    if text.startswith(_GZIP):
        text = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(text)
    uuid = _UUID.search(text)
    return None if uuid is None else uuid[1].decode().lower()


def _files(table: Table) -> Iterator[str]:
    """Yield the paths of the metadata, and of all files of all snapshots."""
    yield table.metadata_location
    seen: set[str] = set()
    for snapshot in table.metadata.snapshots:
        yield snapshot.manifest_list
        for manifest in snapshot.manifests(table.io):
            if manifest.manifest_path not in seen:
                seen.add(manifest.manifest_path)
                yield manifest.manifest_path
                for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
                    yield entry.data_file.file_path


def _earlier_files(table: Table) -> Iterator[str]:
    """Yield the paths of earlier metadata and of statistics. Others may have deleted them."""
    metadata = table.metadata
    yield from (each.metadata_file for each in metadata.metadata_log)
    yield from (each.statistics_path for each in metadata.statistics)
    yield from (each.statistics_path for each in metadata.partition_statistics)


def _named_by_properties(table: Table) -> Iterator[str]:
    """Yield the files that ingests and reprocessings name. Raises `CorruptObjectError`."""
    texts = [table.properties.get(name) for name in (PROPERTY, reprocessing.PROPERTY)]
    texts += [
        each.summary.get(PROPERTY)
        for each in ancestors_of(table.metadata)
        if each.summary is not None
    ]
    for text in filter(None, texts):
        if not text.startswith("{"):
            continue  # the attempt of a reprocessing
        try:
            found = json.loads(text)
            yield from found.get("files") or ()
            yield from (found.get("dead_letters") or {}).get("files") or ()
        except (ValueError, TypeError, AttributeError) as error:
            raise CorruptObjectError(
                ".".join(table.name()), 0, f"its ingest's property cannot be read: {error}"
            ) from error
