"""Decide whether a broker may claim the epoch after one that is claimed for another Redis than its
own.

Invariant: the bucket shows whether the epoch works, membership shows which brokers are on this
side, and `takeover` decides. A broker that appears on both sides counts where it was seen last.
"""

import asyncio
from collections.abc import Collection

from bucketlog.log_format.model import WallClock
from bucketlog.stateless_broker.epochs.activation import Claim
from bucketlog.stateless_broker.epochs.epoch_signs import EpochSignReader
from bucketlog.stateless_broker.epochs.takeover import ForeignEpoch, Takeover
from bucketlog.stateless_broker.membership.membership import Membership


class ForeignEpochs:
    """`now_ms` is the time of day. It is compared with the store's times."""

    def __init__(
        self,
        *,
        signs: EpochSignReader,
        takeover: Takeover,
        membership: Membership,
        now_ms: WallClock,
    ) -> None:
        self._signs = signs
        self._takeover = takeover
        self._membership = membership
        self._now_ms = now_ms
        self.ahead: Collection[str] = ()
        """The incarnations of the brokers that work in the epoch that was judged last. Empty unless
        this epoch is active; empty also if its server refuses connections."""

    async def reason_to_wait(
        self, claim: Claim, left: int, *, is_gone: bool = False, is_alone: bool = False
    ) -> str | None:
        """Why the epoch after `claim` may not be claimed yet; None if it may. `left` is the epoch
        that this broker was in last, 0 for none. `is_gone`: the claim's server refuses connections.
        `is_alone`: this broker has no server yet, so no other broker is on its side. Raises the
        bucket's errors."""
        me = self._membership.incarnation
        signs = await self._signs.look(claim.epoch)
        if claim.claimed_by == me and not signs.is_active:
            return None  # this broker's server changed before the epoch was active
        members = {me}
        if not is_alone:
            members.update(member.incarnation for member in self._membership.members)
        there = signs.brokers() - {me}
        if claim.epoch <= left:  # members here have followed their Redis, too
            there -= members
        else:  # brokers that registered there have left this Redis, even with a fresh heartbeat
            members.difference_update(set(signs.incarnations.values()) - {me})
        quiet_ms = self._now_ms() - signs.newest_ms
        found = ForeignEpoch(claim.epoch, left, len(members), len(there), signs, quiet_ms, is_gone)
        self.ahead = there if signs.is_active and not is_gone else set()
        return self._takeover.reason_to_wait(found, asyncio.get_running_loop().time())

    def note_claim(self, follows: int) -> None:
        """Note that this broker has claimed the epoch after `follows`."""
        self._takeover.note_claim(follows, asyncio.get_running_loop().time())
