"""The rules by which a broker may take the log from an epoch on another Redis."""

from dataclasses import replace
from random import Random

import pytest

from bucketlog.log_format.model import WriterId
from bucketlog.stateless_broker.epochs.epoch_signs import EpochSigns
from bucketlog.stateless_broker.epochs.takeover import (
    LOOKS_MIN,
    OLD_MS,
    ForeignEpoch,
    Takeover,
    TakeoverLimits,
)

QUIET_MS, STALLED_MS = 1000, 3000
ME, OTHER = "me", "other"
POLL_S = 0.1


def signs(
    *ends: int, active_before: int = 4, sealed: int = 0, is_active: bool = True
) -> EpochSigns:
    """Signs with writers of another broker, whose chains end at `ends`."""
    live = {WriterId(f"{number:032x}"): end for number, end in enumerate(ends)}
    return EpochSigns(
        is_active, live, dict.fromkeys(live, OTHER), active_before, sealed, newest_ms=0
    )


def foreign(
    *, epoch: int = 5, left: int = 4, here: int = 1, there: int = 2, seen: EpochSigns | None = None
) -> ForeignEpoch:
    return ForeignEpoch(epoch, left, here, there, seen or signs(0, 0), quiet_ms=0)


def claimed_over(*, epoch: int, active_before: int, sealed: int = 0) -> ForeignEpoch:
    found = signs(active_before=active_before, sealed=sealed, is_active=False)
    return foreign(epoch=epoch, left=active_before, there=0, seen=found)


class Watch:
    """A broker that looks every `POLL_S`."""

    def __init__(self, seed: int = 1) -> None:
        limits = TakeoverLimits.of(
            quiet_ms=QUIET_MS, quiet_ms_max=60_000, stalled_ms=STALLED_MS, stalled_ms_max=30_000
        )
        self.takeover = Takeover(limits, incarnation=ME, random=Random(seed))
        self.now_s = 1000.0

    def waits_s(self, found: ForeignEpoch, longest_s: float = 200.0) -> float:
        """How long the broker waits while the bucket shows nothing new."""
        began = self.now_s
        while self.takeover.reason_to_wait(found, self.now_s) is not None:
            assert self.now_s - began < longest_s
            self.now_s += POLL_S
        return self.now_s - began


def test_an_epoch_that_works_is_left_to_the_side_with_as_many_brokers() -> None:
    for here, there in ((1, 2), (2, 2)):
        watch = Watch()
        for end in range(3000):  # five minutes
            found = foreign(here=here, there=there, seen=signs(end // 5, 0))
            reason = watch.takeover.reason_to_wait(found, watch.now_s)
            assert reason is not None
            assert "check that all brokers reach the same Redis primary" in reason
            watch.now_s += POLL_S


def test_an_epoch_without_a_sign_of_work_is_taken_after_a_pause() -> None:
    watch = Watch()
    watch.takeover.reason_to_wait(foreign(seen=signs(7, 0)), watch.now_s)
    watch.now_s += 1.2
    assert 1.4 <= watch.waits_s(foreign(seen=signs(8, 0))) <= 2.1


def test_what_this_broker_wrote_there_is_no_sign_of_work() -> None:
    watch = Watch()
    writer = WriterId("0" * 32)
    for end in range(100):
        found = signs(end)._replace(incarnations={writer: ME})
        if watch.takeover.reason_to_wait(foreign(seen=found), watch.now_s) is None:
            return
        watch.now_s += POLL_S
    raise AssertionError("the broker waits because of its own writes")


def test_a_new_registration_is_a_sign_of_work() -> None:
    watch = Watch()
    watch.takeover.reason_to_wait(foreign(seen=signs(7)), watch.now_s)
    watch.now_s += 1.2
    assert 1.4 <= watch.waits_s(foreign(seen=signs(7, 0))) <= 2.1


def test_each_loss_doubles_the_pause() -> None:
    watch = Watch()
    waits = [watch.waits_s(foreign(epoch=5 + 2 * n, left=4 + 2 * n)) for n in range(6)]
    for number, wait_s in enumerate(waits):
        assert 0.7 * 2 ** (number + 1) <= wait_s <= 2 ** (number + 1) + 0.2


def test_losses_of_long_ago_are_forgotten() -> None:
    watch = Watch()
    for number in range(4):
        watch.waits_s(foreign(epoch=5 + 2 * number, left=4 + 2 * number))
    watch.now_s += 121
    assert watch.waits_s(foreign(epoch=25, left=24)) <= 2.1


def test_epochs_of_others_that_follow_one_another_are_one_loss() -> None:
    watch = Watch()
    for epoch in range(5, 15):
        watch.takeover.reason_to_wait(foreign(epoch=epoch), watch.now_s)
    assert watch.waits_s(foreign(epoch=15)) <= 2.1


def test_slow_looks_make_a_broker_patient() -> None:
    """If a listing takes a second, a write may take as long."""
    watch = Watch()
    looks = 0
    while watch.takeover.reason_to_wait(foreign(), watch.now_s) is not None:
        looks += 1
        watch.now_s += 2.5
    assert looks == LOOKS_MIN - 1


def test_pauses_differ() -> None:
    assert len({round(Watch(seed).waits_s(foreign()), 1) for seed in range(20)}) > 1


def test_the_side_with_more_brokers_takes_an_epoch_that_works() -> None:
    watch = Watch()
    for number in range(6):
        epoch = 5 + 2 * number
        found = foreign(epoch=epoch, left=epoch - 1, here=2, there=1)
        began, end = watch.now_s, 0
        while watch.takeover.reason_to_wait(replace(found, signs=signs(end)), watch.now_s):
            watch.now_s += POLL_S
            end += 1
        assert 0.7 <= watch.now_s - began <= 1.1


def test_a_broker_follows_its_redis_to_another_server_at_once() -> None:
    """A failover: the brokers that stayed behind are not more than those that came."""
    for here, there in ((3, 0), (2, 1), (1, 1)):
        assert Watch().waits_s(foreign(epoch=5, left=5, here=here, there=there)) == 0


def test_a_broker_that_alone_is_sent_elsewhere_leaves_the_others_their_epoch() -> None:
    watch = Watch()
    for end in range(100):
        found = foreign(epoch=5, left=5, here=1, there=2, seen=signs(end))
        assert watch.takeover.reason_to_wait(found, watch.now_s) is not None
        watch.now_s += POLL_S
    assert watch.waits_s(foreign(epoch=5, left=5, here=2, there=1, seen=signs(99))) == 0


def test_a_broker_whose_redis_changes_again_and_again_waits_with_its_claims() -> None:
    watch = Watch()
    waits = []
    for epoch in range(5, 10):
        waits.append(watch.waits_s(foreign(epoch=epoch, left=epoch, here=2, there=1)))
        watch.takeover.note_claim(epoch, watch.now_s)
    assert waits[:2] == [0, 0]
    assert waits[2] < waits[3] < waits[4]


def test_a_claim_without_progress_is_claimed_over() -> None:
    assert Watch().waits_s(claimed_over(epoch=5, active_before=4)) == pytest.approx(3, abs=0.11)


def test_a_claimant_that_seals_is_waited_for() -> None:
    watch = Watch()
    for sealed in range(20):
        found = claimed_over(epoch=5, active_before=4, sealed=sealed)
        assert watch.takeover.reason_to_wait(found, watch.now_s) is not None
        watch.now_s += 2.5
    assert watch.takeover.reason_to_wait(foreign(seen=signs(0)), watch.now_s) is not None


def test_claims_that_come_to_nothing_are_given_more_and_more_time() -> None:
    watch = Watch()
    waits = [watch.waits_s(claimed_over(epoch=epoch, active_before=4)) for epoch in range(5, 11)]
    assert waits == pytest.approx([3, 6, 12, 24, 30, 30], abs=0.11)


def test_a_broker_that_starts_does_not_wait_for_an_epoch_of_long_ago() -> None:
    old = replace(foreign(left=0), quiet_ms=OLD_MS)
    assert Watch().waits_s(old) == 0
    assert Watch().waits_s(replace(old, quiet_ms=OLD_MS - 1)) >= 0.7
    assert Watch().waits_s(replace(old, left=4)) >= 0.7, "its clock may be wrong"
