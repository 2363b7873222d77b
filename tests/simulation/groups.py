"""Group members of the simulation, as simple as they get: one that commits, and asks what it has
committed."""

from random import Random
from typing import Any

from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.simulation.brokers import SimulatedBroker
from tests.simulation.clients import RETRIABLE, Client, Surface

TIMEOUTS_S = (0.8, 3.0)
MAY_BE_TOLD = RETRIABLE | {ErrorCode.unstable_offset_commit}


class Committer(Client):
    """The one member of group `name`: its offsets ascend, and what it was told stays."""

    def __init__(self, name: str, surface: Surface, random: Random, *, topic: str) -> None:
        super().__init__(name, surface, random)
        self._topic = topic
        self.committed = -1
        self.tried = -1
        self._possible = {-1}
        """What the group's offset may be now, as far as its member can know."""
        self.is_ending = False

    async def run(self) -> None:
        coordinator: SimulatedBroker | None = None
        went_well = True
        while not self.is_ending:
            if coordinator is None or self.random.random() < 0.1:
                coordinator = await self._find_coordinator()
            if coordinator is None:
                await self.pause(0.3)
                continue
            if self.random.random() < (0.4 if went_well else 0.7):
                went_well = await self.check(coordinator)
            else:
                went_well = await self._commit(coordinator)
            if not went_well:
                coordinator = None
            await self.pause(1.5 if went_well else 0.3)

    async def settle(self) -> bool:
        """What is committed is told in the end. False where nobody tells."""
        for _ in range(30):
            coordinator = await self._find_coordinator()
            if coordinator is not None and await self.check(coordinator):
                return True
            await self.pause(1.0)
        return False

    async def _find_coordinator(self) -> SimulatedBroker | None:
        answer = await self.call(
            self.any_broker(),
            ApiKey.FIND_COORDINATOR,
            4,
            timeout_s=0.5,
            key_type=0,
            coordinator_keys=[self.name],
        )
        if answer is None:
            return None
        found = answer.coordinators[0]
        if ErrorCode(found.error_code) is not ErrorCode.none:
            return None
        return next((one for one in self.surface.brokers if one.port == found.port), None)

    async def _commit(self, coordinator: SimulatedBroker) -> bool:
        if self.tried == self.committed or self.random.random() < 0.8:
            self.tried += 1
        offset = self.tried
        row = {"partition_index": 0, "committed_offset": offset, "committed_metadata": ""}
        self._possible.add(offset)
        self.surface.provoke("pause", coordinator, 0.2)
        answer = await self.call(
            coordinator,
            ApiKey.OFFSET_COMMIT,
            8,
            timeout_s=self.random.choice(TIMEOUTS_S),
            group_id=self.name,
            generation_id_or_member_epoch=-1,
            member_id="",
            topics=[{"name": self._topic, "partitions": [row]}],
        )
        if answer is None:
            return False
        error = ErrorCode(answer.topics[0].partitions[0].error_code)
        if error is ErrorCode.none:
            self.committed = offset
            self._possible = {offset}
            self.surface.trace.add(self.name, f"committed {offset} at {coordinator.name}")
            return True
        self._note(error, "commit")
        return False

    def _note(self, error: ErrorCode, what: str) -> None:
        self.surface.trace.count(f"{what}: {error.name}")
        if error not in MAY_BE_TOLD:
            self.surface.trace.violate("groups", f"{self.name}: {what}: {error.name}")

    async def check(self, coordinator: SimulatedBroker) -> bool:
        stable = self.random.random() < 0.7
        wanted = {
            "group_id": self.name,
            "topics": [{"name": self._topic, "partition_indexes": (0,)}],
        }
        answer: Any = await self.call(
            coordinator,
            ApiKey.OFFSET_FETCH,
            8,
            timeout_s=self.random.choice(TIMEOUTS_S),
            groups=[wanted],
            require_stable=stable,
        )
        if answer is None:
            return False
        group = answer.groups[0]
        row = group.topics[0].partitions[0] if group.topics else None
        error = ErrorCode(group.error_code)
        if error is ErrorCode.none and row is not None:
            error = ErrorCode(row.error_code)
        if error is not ErrorCode.none or row is None:
            self._note(error, "offset fetch")
            return False
        told = int(row.committed_offset)
        if told not in self._possible:
            self.surface.trace.violate(
                "committed offsets",
                f"{self.name} may have {sorted(self._possible)}, and is told {told} by "
                f"{coordinator.name}",
            )
        if stable:  # nothing is on its way any more
            self._possible = {told}
        return True
