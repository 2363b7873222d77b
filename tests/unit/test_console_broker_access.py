"""The connection of the console to brokers: of the bucket's cluster, and shared by pages."""

import threading
from collections.abc import Callable
from uuid import uuid4

import pytest

from bucketlog.client.log import Log
from bucketlog.console.broker_access import BrokerAccess, BrokersBusyError
from bucketlog.log_format.errors import ConfigurationError, LogError
from tests.rigs.patience import PATIENCE_S, eventually
from tests.unit.test_verify import IDENTITY


class ClosedLog:
    """Stands for a connection to a cluster that is another one."""

    def __init__(self, cluster_id: str) -> None:
        self.closed = False
        self._cluster_id = cluster_id

    def cluster_id(self) -> str:
        return self._cluster_id

    def close(self) -> None:
        self.closed = True


def no_broker() -> Log:
    raise LogError("no broker answers", code="TRANSPORT", kafka_code=-195, retriable=True)


def access_of(
    connect: Callable[[], object],
    *,
    may_change: bool = True,
    now_s: Callable[[], float] = lambda: 0.0,
) -> BrokerAccess:
    return BrokerAccess(
        connect,  # type: ignore[arg-type]  # a stand-in
        bootstrap="b:9092",
        may_change=may_change,
        retry_s=5.0,
        now_s=now_s,
    )


def test_brokers_of_another_cluster_are_refused() -> None:
    other = ClosedLog(str(uuid4()))
    with pytest.raises(ConfigurationError, match=r"another|belong to the cluster"):
        access_of(lambda: other).log(IDENTITY.cluster_id)
    assert other.closed


def test_a_connection_is_opened_once_and_closed() -> None:
    opened: list[ClosedLog] = []

    def connect() -> ClosedLog:
        opened.append(ClosedLog(str(IDENTITY.cluster_id)))
        return opened[-1]

    access = access_of(connect)
    assert access.log(IDENTITY.cluster_id) is access.log(IDENTITY.cluster_id)
    access.close()
    assert [each.closed for each in opened] == [True]


def test_a_connection_whose_brokers_do_not_answer_is_closed() -> None:
    class SilentLog(ClosedLog):
        def cluster_id(self) -> str:
            no_broker()
            return ""

    silent = SilentLog("")
    with pytest.raises(LogError):
        access_of(lambda: silent).log(IDENTITY.cluster_id)
    assert silent.closed


def test_no_change_reaches_brokers_that_are_of_another_cluster_by_now() -> None:
    opened = ClosedLog(str(IDENTITY.cluster_id))
    access = access_of(lambda: opened)
    found: object = access.log_to_change(IDENTITY.cluster_id)
    assert found is opened
    opened._cluster_id = str(uuid4())
    with pytest.raises(ConfigurationError, match="belong to the cluster"):
        access.log_to_change(IDENTITY.cluster_id)
    assert opened.closed
    opened._cluster_id = str(IDENTITY.cluster_id)
    again: object = access.log_to_change(IDENTITY.cluster_id)
    assert again is opened, "the console does not connect again"


def test_pages_share_the_failure_of_one_attempt_to_connect() -> None:
    calls, entered, leave = list[int](), threading.Event(), threading.Event()

    def connect() -> Log:
        calls.append(1)
        entered.set()
        assert leave.wait(PATIENCE_S)
        return no_broker()

    access, failures = access_of(connect), list[LogError]()

    def ask() -> None:
        try:
            access.log(IDENTITY.cluster_id)
        except LogError as error:
            failures.append(error)

    class CountedLock:
        """Counts who waits for the lock."""

        def __init__(self) -> None:
            self.inner, self.asked = threading.Lock(), 0

        def __enter__(self) -> None:
            self.asked += 1
            self.inner.acquire()

        def __exit__(self, *_: object) -> None:
            self.inner.release()

    lock = CountedLock()
    access._lock = lock  # type: ignore[assignment]  # a stand-in
    threads = [threading.Thread(target=ask) for _ in range(4)]
    for each in threads:
        each.start()
    assert entered.wait(PATIENCE_S)
    eventually(lambda: lock.asked == 4)
    leave.set()
    for each in threads:
        each.join()
    assert (len(failures), len(calls)) == (4, 1)
    ask()
    assert len(calls) == 2, "a failure is kept for later pages"


def test_a_failure_is_shared_for_a_time() -> None:
    asked: list[int] = []
    clock = [0.0]

    def question(_: Log) -> int:
        asked.append(len(asked))
        if len(asked) == 1:
            raise LogError("timed out", code="TIMED_OUT", kafka_code=-185, retriable=True)
        return 7

    access = access_of(lambda: ClosedLog(str(IDENTITY.cluster_id)), now_s=lambda: clock[0])
    for clock[0] in (1.0, 3.0, 5.9):
        with pytest.raises(LogError, match="timed out"):
            access.ask(IDENTITY.cluster_id, question)
    assert asked == [0]
    clock[0] = 6.0
    assert access.ask(IDENTITY.cluster_id, question) == 7


def test_a_refusal_is_not_shared() -> None:
    def refuse(_: Log) -> int:
        raise LogError("no", code="GROUP_AUTHORIZATION_FAILED", kafka_code=30, retriable=False)

    access = access_of(lambda: ClosedLog(str(IDENTITY.cluster_id)))
    with pytest.raises(LogError, match="no"):
        access.ask(IDENTITY.cluster_id, refuse)
    assert access.ask(IDENTITY.cluster_id, lambda _: 7) == 7


def test_few_pages_wait_for_brokers() -> None:
    access = access_of(lambda: ClosedLog(str(IDENTITY.cluster_id)))
    asking, answer = threading.Semaphore(0), threading.Event()

    def question(_: Log) -> bool:
        asking.release()
        return answer.wait(PATIENCE_S)

    threads = [
        threading.Thread(target=access.ask, args=(IDENTITY.cluster_id, question)) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
        assert asking.acquire(timeout=PATIENCE_S)
    try:
        with pytest.raises(BrokersBusyError):
            access.ask(IDENTITY.cluster_id, lambda _: 7)
    finally:
        answer.set()
        for thread in threads:
            thread.join()
    assert access.ask(IDENTITY.cluster_id, lambda _: 7) == 7
