"""Whose turn it is to write a checkpoint."""

from bucketlog.stateless_broker.duties.checkpointing import ROUNDS_A_PLACE, CheckpointTurns


def test_the_first_in_line_writes_every_round() -> None:
    turns = CheckpointTurns()
    assert all(turns.is_next(newest, 0) for newest in ("", "", "a", "a", "b"))


def test_the_second_leaves_it_to_the_first_while_that_one_writes() -> None:
    turns = CheckpointTurns()
    keys = [str(number // (ROUNDS_A_PLACE - 1)) for number in range(50)]
    assert not any(turns.is_next(newest, 1) for newest in keys)


def test_each_steps_in_where_those_before_it_do_not_write() -> None:
    for place in (1, 2, 3):
        turns = CheckpointTurns()
        waited = 0
        turns.is_next("a", place)
        while not turns.is_next("a", place):
            waited += 1
        assert waited == place * ROUNDS_A_PLACE - 1
        assert turns.is_next("a", place)  # until it has written one
        assert not turns.is_next("b", place)
