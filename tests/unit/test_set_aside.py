"""Work that damage stops waits longer each time, and is told until it goes well."""

import pytest

from bucketlog.log_format.errors import (
    BucketUnavailableError,
    CorruptObjectError,
    ObjectNotFoundError,
)
from bucketlog.stateless_broker.duties.damaged_work import DamagedWork


class Work:
    def __init__(self) -> None:
        self.now_s = 0.0
        self.aside = DamagedWork(lambda: self.now_s)

    def fails(self, work: str, error: Exception) -> None:
        with self.aside.damage_of(work):
            raise error


def test_each_time_it_waits_twice_as_long_up_to_an_hour() -> None:
    work = Work()
    waits = []
    for _ in range(8):
        work.fails("a", CorruptObjectError("segments/x", 7, "cut short"))
        began = work.now_s
        while work.aside.waits("a"):
            work.now_s += 1.0
        waits.append(work.now_s - began)
        assert not work.aside.waits("b")
    assert waits[:3] == [60.0, 120.0, 240.0]
    assert waits[-1] == 3_600.0


def test_it_is_told_until_it_goes_well_or_is_over() -> None:
    work = Work()
    work.aside.raise_if_any()
    work.fails("a", CorruptObjectError("segments/x", 7, "cut short"))
    work.fails("b", ObjectNotFoundError("segments/y"))
    for _ in range(2):
        with pytest.raises(CorruptObjectError, match="segments/x"):
            work.aside.raise_if_any()
    with work.aside.damage_of("a"):
        pass
    with pytest.raises(CorruptObjectError, match=r"segments/y.*it is gone"):
        work.aside.raise_if_any()
    work.aside.forget(lambda one: one == "b")
    work.aside.raise_if_any()


def test_a_bucket_that_does_not_answer_is_no_damage() -> None:
    work = Work()
    with pytest.raises(BucketUnavailableError):
        work.fails("a", BucketUnavailableError("no answer"))
    assert not work.aside.waits("a")
    work.aside.raise_if_any()
