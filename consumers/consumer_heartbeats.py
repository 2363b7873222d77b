"""ConsumerGroupHeartbeat at the coordinator: the edge of `consumers.modern_group` to time, threads
and Redis.

Regular expressions are matched in a thread, once for all of a group, by the rights of the member
whose heartbeat caused it. Source: KIP-848, Kafka's GroupMetadataManager.
"""

import asyncio
from collections.abc import Callable

from kio.schema.errors import ErrorCode

from bucketlog.consumers.coordinated_group import CoordinatedGroup
from bucketlog.consumers.coordinator import GroupCoordinator
from bucketlog.consumers.modern_group import ModernGroup
from bucketlog.consumers.modern_messages import GroupRefusal, HeartbeatAnswer, ModernHeartbeat
from bucketlog.consumers.topic_regex import matching_topics

CHECKED_AT_ONCE = 256
"""Rights that are checked before other work has its turn."""

MayDescribe = Callable[[str], bool]


class ConsumerHeartbeats:
    def __init__(self, coordinator: GroupCoordinator) -> None:
        self._coordinator = coordinator

    async def heartbeat(
        self, group_id: str, request: ModernHeartbeat, may_describe: MayDescribe
    ) -> HeartbeatAnswer | GroupRefusal:
        """Handle a heartbeat. `may_describe`: whether the member may see a topic."""
        coordinator = self._coordinator
        async with coordinator.holding(group_id) as held:
            if isinstance(held, ErrorCode):
                return GroupRefusal(held, "")
            group = held.group
            if isinstance(group, ModernGroup):
                growth_bytes = group.heartbeat_growth_bytes(request)
                if not coordinator.memory.has_room(growth_bytes):
                    return GroupRefusal(ErrorCode.coordinator_not_available, "")
            heard = coordinator.forms.heartbeat(group, request, coordinator.now_ms())
            held.group = heard.group
            coordinator.answer_when_stored(held, heard.others)
            self._look_for_topics(held, may_describe)
            if not await held.stored():
                return GroupRefusal(ErrorCode.not_coordinator, "")
            return heard.answer

    def _look_for_topics(self, held: CoordinatedGroup, may_describe: MayDescribe) -> None:
        group = held.group
        if held.resolving or not isinstance(group, ModernGroup):
            return
        if due := group.regexes_due(self._coordinator.now_ms()):
            held.resolving = True
            work = self._resolve(held, due, may_describe)
            self._coordinator.spawn(work, f"topics of group {held.group_id!r}")

    async def _resolve(
        self, held: CoordinatedGroup, regexes: tuple[str, ...], may_describe: MayDescribe
    ) -> None:
        forms = self._coordinator.forms
        memory_bytes_max = forms.settings.regex_memory_bytes_max
        held.users += 1
        try:
            names, version = forms.topics.names(), forms.topics.version
            matched = await asyncio.to_thread(
                matching_topics, regexes, names, memory_bytes_max=memory_bytes_max
            )
            found = {
                regex: await _permitted(topics, may_describe) for regex, topics in matched.items()
            }
            group = held.group
            if held.lost or not isinstance(group, ModernGroup) or group.is_dead:
                return
            group.resolve(found, version, self._coordinator.now_ms())
            self._coordinator.answer_when_stored(held, ())
        finally:
            held.users -= 1
            held.resolving = False


async def _permitted(topics: frozenset[str], may_describe: MayDescribe) -> frozenset[str]:
    found: list[str] = []
    for at, name in enumerate(topics, start=1):
        if may_describe(name):
            found.append(name)
        if at % CHECKED_AT_ONCE == 0:
            await asyncio.sleep(0)
    return frozenset(found)
