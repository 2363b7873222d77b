"""Which objects of tiers may be deleted below a floor, one rule at a time."""

from bucketlog.log_format.model import Ticket, TierObject, TopicId, TopicIdPartition
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.bucket import ObjectInfo
from bucketlog.tiered_storage.tier_deletion import TierHoldings, TierRemoval, plan_tiers

PARTITION = TopicIdPartition(TopicId(bytes(16)), 0)
FLOOR = Ticket(2, 50)
START = Ticket(0, 0)


def an_object(number: int, *, manifest: bool = False) -> TierObject:
    planned = Ticket(1, number)
    name = f"{planned.epoch:020d}-{planned.number:020d}-{number:016x}"
    return TierObject(PARTITION, number, name, manifest)


def key_of(there: TierObject) -> str:
    return keys.tier_object(there)


def holdings(*left: TierRemoval, named: tuple[TierObject, ...] = ()) -> TierHoldings:
    return TierHoldings(frozenset(map(key_of, named)), left, START)


def plan(older: TierHoldings, newer: TierHoldings | None = None) -> list[str]:
    found = plan_tiers(FLOOR, older, newer or older, [])
    assert not found.orphans
    return found.left


def test_what_left_below_the_floor_goes_and_what_left_later_stays() -> None:
    early, late = an_object(1), an_object(2)
    left = holdings(TierRemoval(Ticket(2, 49), early, ()), TierRemoval(FLOOR, late, ()))
    assert plan(left) == [key_of(early)]


def test_a_manifest_goes_after_what_it_lists() -> None:
    listed, manifest = an_object(1), an_object(2, manifest=True)
    assert plan(holdings(TierRemoval(Ticket(2, 1), manifest, (listed,)))) == [
        key_of(listed),
        key_of(manifest),
    ]


def test_an_object_that_either_checkpoint_names_stays() -> None:
    there = an_object(1)
    gone = TierRemoval(Ticket(2, 1), there, ())
    named = holdings(gone, named=(there,))
    assert plan(named, holdings(gone)) == []
    assert plan(holdings(gone), named) == []


def test_an_object_that_left_again_with_its_manifest_waits_for_the_second_time() -> None:
    listed, manifest = an_object(1), an_object(2, manifest=True)
    gathered = TierRemoval(Ticket(2, 10), listed, ())
    together = TierRemoval(Ticket(2, 60), manifest, (listed,))
    assert plan(holdings(gathered, together)) == []
    assert plan(holdings(gathered), holdings(gathered, together)) == []
    both_below = TierRemoval(Ticket(2, 20), manifest, (listed,))
    assert set(plan(holdings(gathered, both_below))) == {key_of(listed), key_of(manifest)}


def test_an_object_that_no_tier_ever_named_goes_when_its_job_is_over() -> None:
    stray, young = an_object(1), an_object(9)
    infos = [ObjectInfo(key_of(one), 100, 0) for one in (stray, young)]
    ended = TierHoldings(frozenset(), (), Ticket(1, 5))
    found = plan_tiers(FLOOR, ended, ended, infos)
    assert (found.left, found.orphans, found.over) == ([], [key_of(stray)], True)
