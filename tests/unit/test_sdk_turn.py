"""A consumer is for one thread at a time."""

import threading
from collections.abc import Callable

import pytest

from bucketlog.client.turn import Turn
from bucketlog.log_format.errors import ConcurrentUseError
from tests.rigs.patience import PATIENCE_S


def elsewhere(call: Callable[[], object]) -> ConcurrentUseError | None:
    """What `call` raises in another thread, which then ends."""
    raised: list[ConcurrentUseError] = []

    def run() -> None:
        try:
            call()
        except ConcurrentUseError as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    return raised[0] if raised else None


def use(turn: Turn) -> None:
    with turn:
        pass


def test_a_second_thread_is_refused_while_the_first_is_inside() -> None:
    turn = Turn(lambda: False)
    with turn:
        error = elsewhere(lambda: use(turn))
        assert isinstance(error, ConcurrentUseError)
        assert threading.current_thread().name in str(error)
        assert "process(" in error.remedy
    assert elsewhere(lambda: use(turn)) is None


def test_a_thread_may_enter_again() -> None:
    turn = Turn(lambda: False)
    with turn:
        use(turn)
        assert isinstance(elsewhere(lambda: use(turn)), ConcurrentUseError)
    assert elsewhere(lambda: use(turn)) is None


def test_open_records_keep_the_turn() -> None:
    has_open = [True]
    turn = Turn(lambda: has_open[0])
    use(turn)
    assert isinstance(elsewhere(lambda: use(turn)), ConcurrentUseError)
    use(turn)
    has_open[0] = False
    assert elsewhere(lambda: use(turn)) is None


def test_a_thread_that_has_ended_keeps_nothing() -> None:
    turn = Turn(lambda: True)
    assert elsewhere(lambda: use(turn)) is None
    use(turn)


def test_a_refused_thread_changes_nothing() -> None:
    turn = Turn(lambda: True)
    use(turn)
    for _ in range(3):
        assert isinstance(elsewhere(lambda: use(turn)), ConcurrentUseError)
    use(turn)


@pytest.mark.parametrize("depth", [1, 3])
def test_an_exception_gives_the_turn_back(depth: int) -> None:
    turn = Turn(lambda: False)

    def fail(levels: int) -> None:
        with turn:
            if levels == 1:
                raise ZeroDivisionError
            fail(levels - 1)

    with pytest.raises(ZeroDivisionError):
        fail(depth)
    assert elsewhere(lambda: use(turn)) is None
