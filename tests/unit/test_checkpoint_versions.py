"""Checkpoints of logs without transactions have version 3, with the bytes of the release before
transactions: brokers of that release read them. Logs with transactions have checkpoints of version
4, or of version 5 while an init keeps a transaction."""

import struct
from base64 import b85decode
from hashlib import sha256

import pytest

from bucketlog.log_format.checkpoint import CoveredWriter
from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_format.model import SegmentIndex, Ticket
from bucketlog.metadata.checkpoint import contradiction, extended, restored
from bucketlog.metadata.checkpoint_state import decode_state, encode_state
from bucketlog.metadata.fold import LogState, fold
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.checkpoint import decode_checkpoint, encode_checkpoint
from tests.models.histories import RandomHistory
from tests.models.indexes import (
    WRITER,
    create,
    end,
    forget_ids,
    in_transaction,
    initialise,
    keep,
    marker,
    partition,
    row,
    segment,
    send_offsets,
    swap,
    swapped,
    tier_row,
)
from tests.models.transactional_histories import assert_same_transactions

HISTORY = RandomHistory(5, segments=14)
TICKET = Ticket(3, 2)
KEY = keys.checkpoint(TICKET)
# The checkpoint of HISTORY below TICKET, by the last release that wrote no version 4.
WRITTEN = b85decode(
    """
Vrz74Z)an000RI300000000030000000002000000001c000000000B00000000UK000004Nq818Xc<6D77#BU<wHh6985dMmiv
|(g6YB-BV@(jzUBH5kw^bc&hB!`3Z2t4N2E}1%e#WSQQDi(nu2V!+j)6`7(@<xCx2S-crgGGypaLIsl;)5|!Ou8whSbEjAi(1!E
cc&zZgd-1jH%aWe$!(C%Kq(oOjF0Tc8G_<QdU^B@10{{yntH*c-Gwbq~WL0R|^;5s&5W-BG4uoc3NdOUMOgZ^@J^ER`T%Pm_r%l
=>E;vq7llDWYI1sz8K#JK;9F=i;GN~_UzVzpMJ7HS-sO=8M~da)WVQsV1m8c85W$F#TfBgHsm)RFu-nU{MnDHpUFf0Xb)!z2a4C
6moGAUg5?ZExYQum$;-R-5>jLgL4$5XtwRxt<$31)b~czn<h(1%S4wp;eq9NkIyg>EHs9A=<V965wGx7IPR1Ax0I6gd<^+f)u63
1HQ=*0d&GFTX!QKvY87&Vo_0{-OX;XSDTSl4k_#c1#DJpKak>!O_~yT^8;*}c4h_+@?<+&<RR(Jp+F2u)eo-{t`V1~pMl7HUaP)
bLw5TUsUE4n!sJw&<DVy%2Ujkwweh(LmZN+-PpFxh&cE}l;RMRYH{K$x&?(K3eQWw2CXeAF@IdZXbYatc9+d)KB#kdS$YDCH;QT
K<ViO=<9I+r$zA87swrO`mpU`ol`~s$>-|r^01oix8+p;^(PR44UEi4JZ%ABoicwWTF0tj`kz<L3k2;NiA8iQQP+rjbXAn~O3hg
s)%jn~NS0e5=aVjug3;R@tf($mq?<n9iNpd%WJ37bJOq>$_Y3xO_lL7Bd{#l;i
""".replace("\n", "")
)
HERE = partition(1)
STATE_4 = "7c12b4e456d2279f60c4565e0b9c487a64dc3e9a530d18b1dd23aa6057c0a149"
STATE_5 = "df98fb3031e332fa084afbd8042db5b5ab8c79e1a6ea23f9861d78e868897ae0"


def test_a_log_without_transactions_has_the_bytes_of_version_3() -> None:
    read = decode_checkpoint(KEY, WRITTEN)
    below = [index for index in HISTORY.segments if index.ticket < TICKET]
    made = extended(None, below, TICKET, HISTORY.covered(TICKET), created_ms=123)
    assert (read.version, made.version) == (3, 3)
    assert made.state == read.state
    assert made == read
    assert contradiction(read, below) is None


def transactional() -> list[SegmentIndex]:
    """An id, an open and an aborted transaction, committed and pending offsets."""
    return [
        segment(0, {}, create(1), initialise("x", 7), initialise("y", 1 << 60, 3, version=1)),
        segment(1, {HERE: [in_transaction(0, 7), in_transaction(1, 1 << 60, 3), row(2)]}),
        segment(2, {}, send_offsets("x", 7, 0, "g", {HERE: 5})),
        segment(3, {HERE: [marker(3, 7)]}, end("x", 7, commit=False, at=9)),
        segment(4, {}, send_offsets("y", 1 << 60, 3, "Gruppe \u00fc", {HERE: 6}, metadata="m")),
        segment(5, {}, send_offsets("y", 1 << 60, 3, "h", {})),
    ]


def checkpoint_state(segments: list[SegmentIndex]) -> tuple[int, bytes]:
    writers = [CoveredWriter(WRITER, 1, len(segments), closed=True)]
    made = extended(None, segments, Ticket(9, 0), writers, created_ms=1)
    read = decode_checkpoint(keys.checkpoint(made.ticket), encode_checkpoint(made))
    assert read == made
    return read.version, read.state


def test_the_bytes_of_version_4_do_not_change() -> None:
    """Buckets hold them: a change needs a new version."""
    version, state = checkpoint_state(transactional())
    assert version == 4
    assert sha256(state).hexdigest() == STATE_4
    found = decode_state(state, version=4)
    assert_same_transactions(found, fold(transactional()))
    assert encode_state(found) == state


def test_version_4_is_written_only_while_there_is_something_to_say() -> None:
    segments = transactional()
    ended = segment(6, {HERE: [marker(4, 1 << 60, 3)]}, end("y", 1 << 60, 3, commit=True))
    forgotten = segment(7, {}, forget_ids("x", "y"))
    split = segment(8, {}, swapped(swap(HERE, 0, 5, tier_row(0, 5))))
    versions = [
        checkpoint_state(upto)[0]
        for upto in (
            segments[:1],
            [*segments, ended],
            [*segments, ended, forgotten],
            [*segments, ended, forgotten, split],
        )
    ]
    assert versions == [4, 4, 4, 3]


def kept() -> list[SegmentIndex]:
    """A producer with another producer id keeps the transaction of `y`."""
    return [*transactional(), segment(6, {}, keep("y", (9, 0), (1 << 60, 3), at=4))]


def test_the_bytes_of_version_5_do_not_change() -> None:
    version, state = checkpoint_state(kept())
    assert version == 5
    assert sha256(state).hexdigest() == STATE_5
    found = decode_state(state, version=5)
    assert_same_transactions(found, fold(kept()))
    assert found.transactions.ids["y"].transaction == (1 << 60, 3)
    assert encode_state(found) == state


def test_version_5_is_written_only_while_a_transaction_is_kept() -> None:
    fact = end("y", 1 << 60, 3, commit=True, follower=(9, 1))
    ended = segment(7, {HERE: [marker(4, 1 << 60, 3)]}, fact)
    assert checkpoint_state([*kept(), ended])[0] == 4


def test_a_release_that_does_not_know_version_5_would_stop() -> None:
    _, state = checkpoint_state(kept())
    with pytest.raises(InvalidDataError, match="bytes after its end"):
        decode_state(state, version=4)


@pytest.mark.parametrize("row", [(2, 5, 0), (1, -1, 0), (1, 5, -1)])
def test_a_kept_transaction_has_an_id_and_a_pair(row: tuple[int, int, int]) -> None:
    _, state = checkpoint_state(kept())
    damaged = state[: -struct.calcsize(">Iqh")] + struct.pack(">Iqh", *row)
    with pytest.raises(InvalidDataError, match="has no transactional id"):
        decode_state(damaged, version=5)


def test_a_release_that_does_not_know_version_4_would_stop() -> None:
    """Not read a state without its transactions: there are bytes after its end."""
    _, state = checkpoint_state(transactional())
    with pytest.raises(InvalidDataError, match="bytes after its end"):
        decode_state(state, version=3)


def test_readers_of_records_need_no_pending_offsets() -> None:
    _, state = checkpoint_state(transactional())
    found = decode_state(state, version=4, keep_producers=False, keep_groups=False)
    expected = fold(transactional(), onto=LogState(keep_producers=False, keep_groups=False))
    assert_same_transactions(found, expected)
    assert found.transactions.pending == {}
    assert restored(None).transactions == LogState().transactions
