"""The rules of transactional ids as tables. Each row has a state of an id, a request, the answer.

Kafka's tables for version 2 (KIP-890: Empty, Ongoing, CompleteCommit and CompleteAbort, with the
current or the last epoch) and for version 1 are among the rows of ends.
"""

from typing import NamedTuple

import pytest

from bucketlog.metadata.sequencer.requests import BatchStatus, FactStatus, WantedBatch
from bucketlog.metadata.sequencer.transaction_requests import (
    BatchTransaction,
    EndedBy,
    ProducerPair,
    TransactionChange,
    WantedEnd,
    WantedInit,
)
from tests.servers.sequencing import Sequencing
from tests.servers.transactional_ids import TIMEOUT_MS, entry, initialise, set_fields

OK, DONE, FENCED = FactStatus.OK, FactStatus.DONE, FactStatus.FENCED
ABORTABLE, INVALID, AGAIN = FactStatus.ABORTABLE, FactStatus.INVALID_STATE, FactStatus.AGAIN
COMMIT, ABORT = True, False
EPOCH = 5
SERIAL = 3


class State(NamedTuple):
    """The id is at epoch 5. `last`: the epoch that its former owner may still use."""

    outcome: str = "none"
    by: str = ""
    last: int = -1
    ongoing: bool = False
    forgiving: bool = False
    parts: tuple[int, ...] = ()


EMPTY = State()
ONGOING = State(ongoing=True)
COMMITTED, ABORTED = State("committed", "client", 4), State("aborted", "client", 4)
TIMED_OUT = State("aborted", "server", 4)
TIMED_OUT_AND_ONGOING = TIMED_OUT._replace(ongoing=True)
INITIALISED = State("none", "", 4)
FORGIVING = State(forgiving=True)
COMMITTED_1 = State("committed", "client", 5)
ABORTED_1 = State("aborted", "client", 5)


async def prepared(sequencing: Sequencing, state: State) -> ProducerPair:
    """The owner of id `x`, which is in this state."""
    pair = (await initialise(sequencing))._replace(epoch=EPOCH)
    topic = sequencing.topic_ids["t"].hex()
    await set_fields(
        sequencing,
        epoch=EPOCH,
        last_producer=str(pair.producer_id) if state.last >= 0 else "",
        last_epoch=state.last,
        outcome=state.outcome,
        by=state.by,
        serial=SERIAL,
        ongoing=state.ongoing,
        forgiving=state.forgiving,
        part_count=len(state.parts),
    )
    if state.parts:
        parts = "".join(f"t/{topic}:{number};" for number in state.parts)
        await sequencing.redis.hset(sequencing.key("txn_parts"), "i:x", parts)
    return pair


ENDS = [
    # version 2: state, epoch of the request, commit or abort, answer, epoch told
    (2, EMPTY, 5, COMMIT, INVALID, None),
    (2, EMPTY, 5, ABORT, OK, 6),
    (2, EMPTY, 4, COMMIT, FENCED, None),
    (2, EMPTY, 4, ABORT, FENCED, None),
    (2, ONGOING, 5, COMMIT, OK, 6),
    (2, ONGOING, 5, ABORT, OK, 6),
    (2, ONGOING, 4, COMMIT, FENCED, None),
    (2, ONGOING, 6, ABORT, FENCED, None),
    (2, COMMITTED, 4, COMMIT, DONE, 5),
    (2, COMMITTED, 4, ABORT, INVALID, None),
    (2, COMMITTED, 5, COMMIT, INVALID, None),
    (2, COMMITTED, 5, ABORT, OK, 6),
    (2, COMMITTED, 3, COMMIT, FENCED, None),
    (2, ABORTED, 4, ABORT, DONE, 5),
    (2, ABORTED, 4, COMMIT, INVALID, None),
    (2, ABORTED, 5, ABORT, OK, 6),
    (2, TIMED_OUT, 4, COMMIT, ABORTABLE, None),
    (2, TIMED_OUT, 4, ABORT, DONE, 5),
    (2, TIMED_OUT_AND_ONGOING, 4, COMMIT, ABORTABLE, None),
    (2, INITIALISED, 4, COMMIT, FENCED, None),
    (2, FORGIVING, 5, COMMIT, INVALID, None),
    # version 1
    (1, EMPTY, 5, COMMIT, INVALID, None),
    (1, EMPTY, 5, ABORT, DONE, 5),
    (1, ONGOING, 5, COMMIT, OK, 5),
    (1, ONGOING, 5, ABORT, OK, 5),
    (1, ONGOING, 4, COMMIT, FENCED, None),
    (1, COMMITTED_1, 5, COMMIT, DONE, 5),
    (1, COMMITTED_1, 5, ABORT, DONE, 5),
    (1, ABORTED_1, 5, COMMIT, INVALID, None),
    (1, ABORTED_1, 5, ABORT, DONE, 5),
    (1, TIMED_OUT, 4, COMMIT, ABORTABLE, None),
    (1, TIMED_OUT, 4, ABORT, DONE, 4),
    (1, TIMED_OUT, 3, ABORT, FENCED, None),
    (1, INITIALISED, 4, COMMIT, FENCED, None),
    (1, FORGIVING, 5, COMMIT, DONE, 5),
    (1, FORGIVING, 5, ABORT, DONE, 5),
]


@pytest.mark.parametrize(("version", "state", "epoch", "commit", "status", "told"), ENDS)
async def test_ends(
    sequencing: Sequencing,
    version: int,
    state: State,
    epoch: int,
    commit: bool,
    status: FactStatus,
    told: int | None,
) -> None:
    owner = await prepared(sequencing, state)
    wanted = WantedEnd("x", owner._replace(epoch=epoch), commit, version)
    answer, change = await entry(sequencing, sequencing.a, wanted)
    assert answer is status
    assert (change.pair if change is not None else None) == (
        None if told is None else owner._replace(epoch=told)
    )


@pytest.mark.parametrize(
    ("state", "epoch", "serial", "status"),
    [
        (ONGOING, 5, SERIAL, OK),
        (ONGOING, 5, SERIAL - 1, AGAIN),
        (ONGOING, 4, SERIAL, FENCED),
        (EMPTY, 5, SERIAL, INVALID),
        (COMMITTED, 4, SERIAL - 1, INVALID),
        (ABORTED, 4, SERIAL - 1, DONE),
    ],
)
async def test_ends_by_the_server(
    sequencing: Sequencing, state: State, epoch: int, serial: int, status: FactStatus
) -> None:
    owner = await prepared(sequencing, state)
    pair = owner._replace(epoch=epoch)
    wanted = WantedEnd("x", pair, ABORT, 2, EndedBy.SERVER, serial)
    assert (await entry(sequencing, sequencing.a, wanted))[0] is status


INITS = [
    # state, epoch that the client has or None, answer, epoch told, epoch that may still be used
    (EMPTY, None, OK, 6, None),
    (EMPTY, 5, OK, 6, 5),
    (EMPTY, 4, FENCED, None, None),
    (ONGOING, None, OK, 6, None),
    (ONGOING, 5, OK, 6, None),
    (COMMITTED, None, OK, 6, None),
    (COMMITTED, 4, DONE, 5, None),
    (COMMITTED, 3, FENCED, None, None),
    (TIMED_OUT, 4, DONE, 5, None),
    (TIMED_OUT_AND_ONGOING, 4, FENCED, None, None),
    (INITIALISED, 4, DONE, 5, None),
    (FORGIVING, None, OK, 6, None),
]


@pytest.mark.parametrize(("state", "epoch", "status", "told", "last"), INITS)
async def test_inits(
    sequencing: Sequencing,
    state: State,
    epoch: int | None,
    status: FactStatus,
    told: int | None,
    last: int | None,
) -> None:
    owner = await prepared(sequencing, state)
    expected = None if epoch is None else owner._replace(epoch=epoch)
    wanted = WantedInit("x", expected, TIMEOUT_MS, 2, 77)
    answer, change = await entry(sequencing, sequencing.a, wanted)
    assert answer is status
    if told is None:
        assert change is None
        return
    assert change == TransactionChange(
        owner._replace(epoch=told),
        None if last is None else owner._replace(epoch=last),
        owner if state.ongoing else None,
    )


BATCHES = [
    # version, state, epoch of the batch, answer
    (2, EMPTY, 5, BatchStatus.OK),
    (2, EMPTY, 4, BatchStatus.FENCED),
    (2, EMPTY, 6, BatchStatus.FENCED),
    (2, COMMITTED, 4, BatchStatus.FENCED),
    (2, TIMED_OUT, 4, BatchStatus.ABORTABLE),
    (2, TIMED_OUT, 3, BatchStatus.FENCED),
    (2, INITIALISED, 4, BatchStatus.FENCED),
    (1, EMPTY, 5, BatchStatus.INVALID_STATE),
    (1, ONGOING, 5, BatchStatus.INVALID_STATE),
    (1, ONGOING._replace(parts=(1,)), 5, BatchStatus.INVALID_STATE),
    (1, ONGOING._replace(parts=(1, 0)), 5, BatchStatus.OK),
    (1, EMPTY._replace(parts=(0,)), 5, BatchStatus.INVALID_STATE),
    (1, FORGIVING, 5, BatchStatus.OK),
    (1, FORGIVING, 4, BatchStatus.FENCED),
    (1, TIMED_OUT, 4, BatchStatus.ABORTABLE),
]


@pytest.mark.parametrize(("version", "state", "epoch", "status"), BATCHES)
async def test_batches(
    sequencing: Sequencing, version: int, state: State, epoch: int, status: BatchStatus
) -> None:
    owner = await prepared(sequencing, state)
    batch = WantedBatch(1, str(owner.producer_id), epoch, 0, BatchTransaction("x", version))
    assert (await sequencing.batch(sequencing.a, batch)).status is status
    is_ongoing = (await sequencing.records("txns"))["i:x"]["ongoing"]
    assert is_ongoing == (state.ongoing or status is BatchStatus.OK)


@pytest.mark.parametrize("commit", [COMMIT, ABORT])
async def test_what_arrives_after_its_end_begins_nothing(
    sequencing: Sequencing, commit: bool
) -> None:
    """The transaction ended before any of its records was written in this epoch."""
    owner = await prepared(sequencing, FORGIVING)
    assert await sequencing.sequencer.bind_end(1, "x", owner, is_commit=commit) is DONE
    batch = WantedBatch(1, str(owner.producer_id), EPOCH, 0, BatchTransaction("x", 1))
    late = await sequencing.batch(sequencing.a, batch)
    assert late.status is BatchStatus.INVALID_STATE
    assert not (await sequencing.records("txns"))["i:x"]["ongoing"]


async def test_an_end_of_somebody_else_leaves_an_id_forgiving(sequencing: Sequencing) -> None:
    owner = await prepared(sequencing, FORGIVING)
    former = owner._replace(epoch=EPOCH - 1)
    assert await sequencing.sequencer.bind_end(1, "x", former, is_commit=False) is FENCED
    assert (await sequencing.records("txns"))["i:x"]["forgiving"]
