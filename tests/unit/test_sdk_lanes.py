"""Items of a lane run in order, one at a time."""

from random import Random

from bucketlog.client.lanes import Lanes


def test_items_of_a_lane_wait_for_the_earlier_ones() -> None:
    lanes = Lanes[int]()
    assert lanes.put("a", 1)
    assert not lanes.put("a", 2)
    assert lanes.put("b", 3)
    assert len(lanes) == 2
    assert lanes.next_of("a") == 2
    assert lanes.next_of("a") is None
    assert lanes.put("a", 4)
    assert lanes.next_of("b") is None
    assert len(lanes) == 1


def test_clear_forgets_what_waits() -> None:
    lanes = Lanes[int]()
    lanes.put("a", 1)
    lanes.put("a", 2)
    lanes.clear()
    assert lanes.next_of("a") is None
    assert not len(lanes)


def test_every_item_runs_once_and_in_order() -> None:
    random, lanes = Random(1), Lanes[tuple[int, int]]()
    running: list[tuple[int, int]] = []
    ran: list[tuple[int, int]] = []
    for number in range(2000):
        item = (random.randrange(7), number)
        if lanes.put(item[0], item):
            running.append(item)
        while running and random.random() < 0.6:
            ended = running.pop(random.randrange(len(running)))
            ran.append(ended)
            following = lanes.next_of(ended[0])
            if following is not None:
                running.append(following)
        assert len({lane for lane, _ in running}) == len(running) == len(lanes)
    while running:
        ended = running.pop()
        ran.append(ended)
        following = lanes.next_of(ended[0])
        if following is not None:
            running.append(following)
    assert sorted(number for _, number in ran) == list(range(2000))
    for lane in range(7):
        numbers = [number for each, number in ran if each == lane]
        assert numbers == sorted(numbers)
