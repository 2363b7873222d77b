"""The error codes of transactions, as a table: a row for each status and API."""

import pytest
from kio.schema.errors import ErrorCode as E

from bucketlog.metadata.sequencer.requests import FactStatus as S
from bucketlog.stateless_broker.handlers.transaction_codes import (
    add_code,
    end_code,
    init_code,
    offsets_code,
    verified_code,
)

EVERY = {S.OK: E.none, S.UNKNOWN_TRANSACTIONAL_ID: E.invalid_producer_id_mapping}
END = {
    S.DONE: (E.none, E.none),
    S.FENCED: (E.invalid_producer_epoch, E.producer_fenced),
    S.ABORTABLE: (E.unknown_producer_id, E.transaction_abortable),
    S.INVALID_STATE: (E.invalid_txn_state, E.invalid_txn_state),
    S.WAIT: (E.concurrent_transactions, E.concurrent_transactions),
    S.AGAIN: (E.not_coordinator, E.not_coordinator),
}
ADD = {
    S.FENCED: (E.invalid_producer_epoch, E.producer_fenced),
    S.ABORTABLE: (E.unknown_producer_id, E.transaction_abortable),
    S.TOO_MANY: (E.policy_violation, E.transaction_abortable),
    S.WAIT: (E.concurrent_transactions, E.concurrent_transactions),
}
OFFSETS = {
    S.FENCED: (E.invalid_producer_epoch, E.invalid_producer_epoch),
    S.ABORTABLE: (E.illegal_generation, E.illegal_generation),
    S.INVALID_STATE: (E.invalid_txn_state, E.transaction_abortable),
    S.WAIT: (E.coordinator_not_available, E.coordinator_load_in_progress),
    S.TOO_MANY: (E.policy_violation, E.transaction_abortable),
}
INIT = {
    S.FENCED: (E.invalid_producer_epoch, E.producer_fenced),
    S.WAIT: (E.concurrent_transactions, E.concurrent_transactions),
    S.TOO_MANY: (E.policy_violation, E.policy_violation),
}


@pytest.mark.parametrize("status", [*EVERY, *END])
def test_end(status: S) -> None:
    first, last = END.get(status, (EVERY.get(status),) * 2)
    assert (end_code(status, 0, is_commit=True), end_code(status, 5, is_commit=True)) == (
        first,
        last,
    )


def test_an_abort_of_what_the_server_aborted_is_done() -> None:
    assert end_code(S.ABORTABLE, 3, is_commit=False) is E.none
    assert end_code(S.ABORTABLE, 3, is_commit=True) is E.unknown_producer_id


@pytest.mark.parametrize("status", [*EVERY, *ADD])
def test_add(status: S) -> None:
    first, last = ADD.get(status, (EVERY.get(status),) * 2)
    assert (add_code(status, 0), add_code(status, 4)) == (first, last)


def test_a_partition_that_is_not_in_the_transaction() -> None:
    assert verified_code(S.INVALID_STATE, 4) is E.invalid_txn_state
    assert verified_code(S.INVALID_STATE, 5) is E.transaction_abortable
    assert verified_code(S.OK, 5) is E.none


@pytest.mark.parametrize("status", [*EVERY, *OFFSETS])
def test_offsets(status: S) -> None:
    first, last = OFFSETS.get(status, (EVERY.get(status),) * 2)
    assert (offsets_code(status, 0), offsets_code(status, 5)) == (first, last)
    assert offsets_code(E.illegal_generation, 5) is E.illegal_generation


@pytest.mark.parametrize("status", [*EVERY, *INIT])
def test_init(status: S) -> None:
    first, last = INIT.get(status, (EVERY.get(status),) * 2)
    assert (init_code(status, 0), init_code(status, 5)) == (first, last)
