"""Acknowledgements in any order against a simple model: what may be committed, and what is open."""

from hypothesis import given
from hypothesis import strategies as st

from bucketlog.client.acknowledged import Acknowledged

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("return"), st.integers(0, 2), st.integers(1, 3)),
        st.tuples(st.just("pass over"), st.integers(0, 2), st.integers(1, 3)),
        st.tuples(st.just("acknowledge"), st.integers(0, 2), st.integers(0, 30)),
        st.tuples(st.just("lose"), st.integers(0, 2), st.just(0)),
        st.tuples(st.just("take"), st.just(0), st.just(0)),
    ),
    max_size=60,
)


@given(steps=STEPS)
def test_only_what_is_acknowledged_with_all_before_is_committed(
    steps: list[tuple[str, int, int]],
) -> None:
    given_out = Acknowledged(1000)
    parts = [("t", number) for number in range(3)]
    returned: dict[int, list[int]] = {0: [], 1: [], 2: []}
    done: set[tuple[int, int]] = set()
    ends = {0: 0, 1: 0, 2: 0}
    committed: dict[int, int] = {}
    for what, partition, number in steps:
        mine = returned[partition]
        if what in ("return", "pass over"):
            offset = ends[partition] + number - 1  # gaps are as after compaction
            ends[partition] = offset + 1
            if what == "pass over":
                given_out.pass_over(parts[partition], offset)
                done.add((partition, offset))
            given_out.note(parts[partition], offset)
            mine.append(offset)
        elif what == "acknowledge":
            is_open = number in mine and (partition, number) not in done
            assert given_out.is_in_flight(parts[partition], number) == is_open
            assert given_out.acknowledge(parts[partition], number) == is_open
            if is_open:
                done.add((partition, number))
        elif what == "lose":
            given_out.drop([parts[partition]])
            done = {spot for spot in done if spot[0] != partition}
            mine.clear()
            committed.pop(partition, None)
        else:
            committed.update({part[1]: at for part, at in given_out.take_done().items()})
            for name, next_offset in committed.items():
                before = [offset for offset in returned[name] if offset < next_offset]
                assert all((name, offset) in done for offset in before)
            for name, offsets in returned.items():
                prefix = 0
                while prefix < len(offsets) and (name, offsets[prefix]) in done:
                    prefix += 1
                if prefix:
                    assert committed[name] == offsets[prefix - 1] + 1
                else:
                    assert name not in committed
        count = sum(
            (name, each) not in done for name, all_of in returned.items() for each in all_of
        )
        assert given_out.room == 1000 - count
