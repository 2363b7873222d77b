"""The waits of the tests: they end when the fact is true, and fail if it never is."""

import asyncio

import pytest

from tests.rigs.patience import Deadline, eventually, eventually_async


def test_it_waits_until_the_condition_holds() -> None:
    looks = iter([False, False, True])
    eventually(lambda: next(looks), pause_s=0)
    assert next(looks, None) is None


def test_it_fails_and_describes_what_never_came() -> None:
    looks = 0

    def never() -> bool:
        nonlocal looks
        looks += 1
        return False

    with pytest.raises(AssertionError, match=r"still waiting after 0 s: \d+ looks"):
        eventually(never, lambda: f"{looks} looks", bound_s=0, pause_s=0)
    assert looks


def test_only_named_errors_mean_not_yet() -> None:
    answers = iter([OSError(), ValueError("bad")])

    def ask() -> bool:
        raise next(answers)

    with pytest.raises(ValueError, match="bad"):
        eventually(ask, despite=(OSError,), pause_s=0)


async def test_other_tasks_run_meanwhile() -> None:
    done = asyncio.Event()
    asyncio.get_running_loop().call_soon(done.set)
    await eventually_async(done.is_set)
    with pytest.raises(AssertionError, match="never"):
        await eventually_async(lambda: False, "never", bound_s=0)


def test_a_deadline_that_is_over_fails() -> None:
    Deadline().check()
    assert Deadline().left_s > 0
    with pytest.raises(AssertionError, match="the end"):
        Deadline("the end", bound_s=-1).pause()
