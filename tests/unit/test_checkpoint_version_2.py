"""A checkpoint that a writer of version 2 wrote: it is read, and extended as version 3."""

import struct
from base64 import b85decode

import pytest
from crc32c import crc32c

from bucketlog.log_format.model import Ticket
from bucketlog.metadata.checkpoint import contradiction, extended, restored
from bucketlog.metadata.checkpoint_state import GUESSED_TIMES_MS
from bucketlog.metadata.fold import LogState, fold
from bucketlog.metadata.producers import IdleLimit
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.checkpoint import decode_checkpoint, encode_checkpoint
from tests.models.histories import RandomHistory

HISTORY = RandomHistory(7)
TICKET = Ticket(3, 4)
CREATED_MS = 123
KEY = keys.checkpoint(TICKET)
# The checkpoint of HISTORY below TICKET, by the last release that wrote version 2.
WRITTEN = b85decode(
    """
Vrz74Z)an000IC200000000030000000004000000001c000000000T00000000uI00000ye%~8NUI&gD77#BV5$*4AOIF*e
@O7KC>_jb%OO2ZNEj{(5&wAD4!mU&TdxiVIxp|msD;n6{Z(U9`6gXkE>4Mlm|@Fr3B+u)<JSJ}tqqZ5yJl>Iw3cisWeRElZv
bWh95ld?CY-S0QUfRF!OHG;cmLQ-3!4ot`t@2tV^B&lQ0nnOL#Yb~H6TMLZ?pNkz2AS&A|%k`=0n^3%cYWXq8dY&78uLRwW6
R5QNPEu^B~{9aInuI^tlCqQ^XJ1zVG-9?j!tv`ybWoK%H)$dFz?E)@A0pTWhVg{;&@wfCvzb94<E@j0zbNWMXPet`Q|4Xmp?
eQsTyokx<8aP9NVlNj^%r4vBsxkdM*{05@Qpq}1<yf6vWxC+}Ql=HA|2o;~?C5kiCqNQfd{3KSP|GT>N<1*YAW1@s>jb_KW*
kyi&b5wyqL0_#ZJ*IAF<PSNmbwNgfs<t$cX$zmxnMQhqdzj!E{cuFwRa8J}|1cIRVknj6PVApj?Boc*CN}0LeyMOcUHZ#xWx
!rSiZ)a}%I;r=mb#?(JELOP^#~MwXjWkk4quni5C`ne?YPD9Z7)`cH9W+U;#92*6&Q@e=)>@I2TdT25l`)m9CXVB*tkK8(2h
q&pCT?U-_@7x4_ukOvpuwWNCBy*4;zAE<!N&wLh<PM%S{MCKRXkEYVaJZP*9L(?s9|j-A_XZZqok0=VFqKSXsC7)z)~!kW0+
%zF(M)&A|fIM1x00~kOR%}Rr58n7hI5Ye(g!RV|HoM{vu%F#Ds+Jz|*y)vD4XzaEgFE0Z)>SgdwE9Uk@<&sZh%@gjn?E7KVu
}|2+{-$yhQG2*#ptr_%CEHev1X%1uKs4Sp~{agCH$e*Y_SdvELForslteLS&2URrm=0`vfKd51~{1$u^R>Ch^s<sG`RC^m7f
lGV}bgaoZZ_Mv01jn*EXJ+l{LC`J@qxd~;;zX0X)54%wSYHp8>YXmf?{D<QS>3cc|0ZVC>1o;BC<eZD)_ymTngH<~=62%Po)
Pm}5?BY!laRsti6i~IKNT-NSDBvWHD#u*N>rD5wz7ph3RVJFdDr|PGv^o;yn~^^SVSfDZV79S#uC#Ss6!_ls<fNmCep>Pg5#
a@w`<uQ<tJ#NgsuKR=EDDC&9+aigpPK%KI+=nGT1B++1qEr^Gbh}hSr>hu8CRC3Q~o7(PV~NorVIPHAfkg^;25E$P+&yle|W
kQ!yqvkLx~=n3i$=kxSJ8-Ug<U3IyD44U|11$9fwgl<h7=l${y#Q%=2h8hqrL}h`q&w4Vixx+-#Aej*Mw(ZspC<<Xp32@I4P
FzmIPbQKJ6kzWxfWuM!DUVhm;inB^Q+LyU#@0R
""".replace("\n", "")
)


def without_times(state: LogState) -> dict[object, object]:
    return {
        key: {producer: [row[:-1] for row in rows] for producer, rows in part.producers.items()}
        for key, part in state.partitions.items()
    }


def test_version_2_is_read() -> None:
    read = decode_checkpoint(KEY, WRITTEN)
    assert (read.version, read.ticket, read.created_ms) == (2, TICKET, CREATED_MS)
    below = [index for index in HISTORY.segments if index.ticket < TICKET]
    state, expected = restored(read), fold(below)
    assert without_times(state) == without_times(expected)
    assert any(part.producers for part in state.partitions.values())
    assert state.topics == expected.topics
    assert state.groups == expected.groups
    assert {
        row.appended_ms
        for part in state.partitions.values()
        for rows in part.producers.values()
        for row in rows
    } == {CREATED_MS}
    assert state.times_from_ms == CREATED_MS + GUESSED_TIMES_MS
    assert contradiction(read, below) is None


def test_version_2_is_written_as_it_was_read() -> None:
    read = decode_checkpoint(KEY, WRITTEN)
    assert decode_checkpoint(KEY, encode_checkpoint(read)) == read


def test_the_next_checkpoint_is_of_version_3() -> None:
    base = decode_checkpoint(KEY, WRITTEN)
    after = [index for index in HISTORY.segments if index.ticket >= TICKET]
    end = Ticket(4, 0)
    writers = [row for row in HISTORY.covered(end) if row.epoch >= TICKET.epoch]
    made = extended(base, after, end, writers, created_ms=456)
    assert made.version == 3
    assert decode_checkpoint(keys.checkpoint(end), encode_checkpoint(made)) == made
    assert contradiction(made, HISTORY.segments) is None
    assert contradiction(made, after, base) is None
    state = fold(after, onto=restored(base))
    assert restored(made).partitions == state.partitions
    assert restored(made).times_from_ms == state.times_from_ms > 0


@pytest.mark.parametrize("created_ms", [-(2**63), 2**63 - 1])
def test_a_time_beyond_all_bounds_can_be_written_again(created_ms: int) -> None:
    header = bytearray(WRITTEN[:60])
    struct.pack_into(">q", header, 28, created_ms)
    data = bytes(header) + struct.pack(">I", crc32c(bytes(header))) + WRITTEN[64:]
    base = decode_checkpoint(KEY, data)
    assert base.created_ms == created_ms
    made = extended(base, [], Ticket(4, 0), [], created_ms=456)
    assert restored(made).partitions == restored(base).partitions


def test_producers_of_version_2_expire() -> None:
    base = decode_checkpoint(KEY, WRITTEN)
    after = [index for index in HISTORY.segments if index.ticket >= TICKET]
    idle = IdleLimit(now_ms=1_000_000, idle_ms=1)
    end = Ticket(4, 0)
    made = extended(base, after, end, HISTORY.covered(end), created_ms=456, idle=idle)
    state = restored(made)
    assert state.producers_since_ms > CREATED_MS
    assert all(
        rows[-1].appended_ms >= state.producers_since_ms
        for part in state.partitions.values()
        for rows in part.producers.values()
    )
    assert contradiction(made, after, base) is None
