"""Work that damage stops waits longer each time, and is told until it goes well."""

import pytest

from bucketlog.errors import BucketUnavailableError, CorruptObjectError, ObjectNotFoundError
from stateless_broker.duties.set_aside import FIRST_WAIT_S, LONGEST_WAIT_S, SetAside


class Work:
    def __init__(self) -> None:
        self.now_s = 0.0
        self.aside = SetAside(lambda: self.now_s)

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
    assert waits[:3] == [FIRST_WAIT_S, 2 * FIRST_WAIT_S, 4 * FIRST_WAIT_S]
    assert waits[-1] == LONGEST_WAIT_S


def test_it_is_told_until_it_goes_well_or_is_over() -> None:
    work = Work()
    work.aside.tell()
    work.fails("a", CorruptObjectError("segments/x", 7, "cut short"))
    work.fails("b", ObjectNotFoundError("segments/y"))
    for _ in range(2):
        with pytest.raises(CorruptObjectError, match="segments/x"):
            work.aside.tell()
    with work.aside.damage_of("a"):
        pass
    with pytest.raises(CorruptObjectError, match=r"segments/y.*it is gone"):
        work.aside.tell()
    work.aside.forget(lambda one: one == "b")
    work.aside.tell()


def test_a_bucket_that_does_not_answer_is_no_damage() -> None:
    work = Work()
    with pytest.raises(BucketUnavailableError):
        work.fails("a", BucketUnavailableError("no answer"))
    assert not work.aside.waits("a")
    work.aside.tell()
