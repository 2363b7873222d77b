"""ListGroups' response, written by hand: thousands of groups are listed in one, often by monitors.

Source: Kafka's ListGroupsResponse.json, versions 0 to 5.
"""

from collections.abc import Iterable
from typing import NamedTuple

from bucketlog.wire.frames import FrameWriter

THROTTLE_FROM = 1
FLEXIBLE_FROM = 3
STATE_FROM = 4
TYPE_FROM = 5


class ListedRow(NamedTuple):
    group_id: str
    protocol_type: str
    state: str
    group_type: str


def write_response(version: int, error: int, rows: Iterable[ListedRow]) -> bytes:
    out = FrameWriter(flexible=version >= FLEXIBLE_FROM)
    if version >= THROTTLE_FROM:
        out.int32(0)
    out.int16(error)
    listed = list(rows)
    out.array_length(len(listed))
    ends: dict[tuple[str, ...], bytes] = {}  # what follows the id: few groups differ in it
    for row in listed:
        rest = row[1:]
        end = ends.get(rest)
        if end is None:
            end = ends[rest] = _end_of(row, version)
        out.nullable_string(row[0])
        out.data += end
    out.tags()
    return bytes(out.data)


def _end_of(row: ListedRow, version: int) -> bytes:
    out = FrameWriter(flexible=version >= FLEXIBLE_FROM)
    out.nullable_string(row.protocol_type)
    if version >= STATE_FROM:
        out.nullable_string(row.state)
    if version >= TYPE_FROM:
        out.nullable_string(row.group_type)
    out.tags()
    return bytes(out.data)
