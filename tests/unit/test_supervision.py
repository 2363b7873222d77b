"""Ending tasks, also those that do not hear it the first time."""

import asyncio

from bucketlog.stateless_broker.supervision import Supervisor
from tests.rigs.patience import PATIENCE_S


async def test_a_task_that_swallows_its_cancellation_is_ended_all_the_same() -> None:
    supervisor = Supervisor()
    failures: list[Exception] = []
    cancelled = 0

    async def work() -> None:
        nonlocal cancelled
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled += 1
                if cancelled == 2:
                    raise

    task = supervisor.spawn(work(), "stubborn", on_failure=failures.append)
    await asyncio.sleep(0)
    async with asyncio.timeout(PATIENCE_S):
        await supervisor.cancel_all()
    assert task.cancelled()
    assert cancelled == 2
    assert failures == []


async def test_a_failure_is_reported() -> None:
    supervisor = Supervisor()
    failures: list[Exception] = []

    async def work() -> None:
        raise ValueError("injected")

    await supervisor.spawn(work(), "failing", on_failure=failures.append)
    assert [str(error) for error in failures] == ["injected"]
    await supervisor.cancel_all()


async def test_a_task_is_not_cancelled_before_its_first_step() -> None:
    """Others wait for what it does in `finally`. It spawns another one at its end."""
    supervisor = Supervisor()
    ended: list[str] = []

    async def work(name: str, *then: str) -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.append(name)
            for each in then:
                supervisor.spawn(work(each), each, on_failure=lambda _: None)

    supervisor.spawn(work("first", "second"), "first", on_failure=lambda _: None)
    await supervisor.cancel_all()
    assert ended == ["first", "second"]
