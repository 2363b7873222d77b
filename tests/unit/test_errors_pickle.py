"""Errors cross processes: each one pickles, with all of its fields."""

import importlib
import pickle
import pkgutil
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

import bucketlog
from bucketlog.client.decoding import UnreadableRecordError
from bucketlog.log_format.errors import (
    BucketlogError,
    ConfigurationError,
    CorruptObjectError,
    InvalidDataError,
    LogError,
    ObjectNotFoundError,
    TransactionAbortedError,
)

EXAMPLES = [
    bucketlog.ClusterInUseError("in use", remedy="stop the other"),
    bucketlog.ClusterStartError("not started"),
    bucketlog.ConcurrentUseError("two threads"),
    bucketlog.DataLossError("deleted", remedy="start anew"),
    InvalidDataError("no JSON"),
    bucketlog.IncompatibleSchemaError("a field is missing"),
    bucketlog.SchemaRegistryError("refused"),
    ConfigurationError("wrong", remedy="change it"),
    CorruptObjectError("log/1", 7, "a flipped bit", remedy="restore it"),
    LogError("refused", code="X", kafka_code=3, retriable=True, remedy="again"),
    ObjectNotFoundError("log/1"),
    TransactionAbortedError("aborted"),
    UnreadableRecordError("t[0]@1", "value", InvalidDataError("no JSON", remedy="skip")),
]


def all_kinds() -> list[type[BucketlogError]]:
    for name in ("client", "log_format", "log_reader", "metadata", "replaying", "tiered_storage"):
        package = importlib.import_module(f"bucketlog.{name}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    found: list[type[BucketlogError]] = [BucketlogError]
    for kind in found:
        found.extend(each for each in kind.__subclasses__() if each not in found)
    return found


def test_the_examples_are_all_public_errors() -> None:
    public = {name for name in bucketlog.__all__ if name.endswith("Error")}
    assert public - {type(error).__name__ for error in EXAMPLES} == {"BucketlogError"}
    assert all(issubclass(getattr(bucketlog, name), BucketlogError) for name in public)


def fail(at: int) -> None:
    raise EXAMPLES[at]


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_is_the_same_after_pickling(error: BucketlogError) -> None:
    error.add_note("seen")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)
    assert (again.code, again.retriable, again.remedy) == (
        error.code,
        error.retriable,
        error.remedy,
    )


def test_every_kind_of_error_pickles() -> None:
    kinds = all_kinds()
    assert len(kinds) > 30
    for kind in kinds:
        error = kind.__new__(kind, "message")
        error.__dict__.update(message="message", remedy="remedy")
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again)) == (kind, "message (remedy)"), kind


def test_an_error_leaves_a_pool_of_processes_whole() -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        for at, error in enumerate(EXAMPLES):
            with pytest.raises(type(error)) as caught:
                pool.submit(fail, at).result()
            assert caught.value.code == error.code
    assert issubclass(bucketlog.LogError, BucketlogError)
