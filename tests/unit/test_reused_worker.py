"""What is in a zip on the path can be imported after its finder is forgotten."""

import gc
import importlib
import sys
from pathlib import Path
from zipfile import ZipFile
from zipimport import zipimporter

import pytest

from bucketlog.spark_jobs import reused_worker
from bucketlog.spark_jobs.reused_worker import ease_next_task


def test_no_zip_is_asked_again_until_it_is_imported_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "some.zip")
    with ZipFile(path, "w") as archive:
        archive.writestr("from_zip_first.py", "number = 1")
        archive.writestr("from_zip_second.py", "number = 2")
    monkeypatch.syspath_prepend(path)
    for name in ("from_zip_first", "from_zip_second"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    assert importlib.import_module("from_zip_first").number == 1
    assert isinstance(sys.path_importer_cache[path], zipimporter)
    folders = {
        place
        for place, finder in sys.path_importer_cache.items()
        if not isinstance(finder, zipimporter)
    }

    ease_next_task()

    assert path not in sys.path_importer_cache
    assert folders <= set(sys.path_importer_cache)
    assert importlib.import_module("from_zip_second").number == 2


def test_what_is_loaded_is_not_looked_through_for_garbage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reused_worker, "_is_frozen", False)
    already = gc.get_freeze_count()
    try:
        ease_next_task()
        assert gc.get_freeze_count() > already
    finally:
        if not already:
            gc.unfreeze()
