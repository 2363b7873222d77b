"""ListGroups' response, written by hand: thousands of groups are listed in one, often by monitors.

Source: Kafka's ListGroupsResponse.json, versions 0 to 5.
"""

from collections.abc import Sequence

from bucketlog.log_format.wire.frames import FrameWriter

THROTTLE_FROM = 1
FLEXIBLE_FROM = 3
STATE_FROM = 4
TYPE_FROM = 5
ONE_BYTE_UNTIL = 127
"""Shorter ids have a length of one byte."""


def write_response(version: int, error: int, rows: Sequence[tuple[str, str, str, str]]) -> bytes:
    """`rows`: group id, protocol type, state, type of the group."""
    flexible = version >= FLEXIBLE_FROM
    out = FrameWriter(flexible=flexible)
    if version >= THROTTLE_FROM:
        out.int32(0)
    out.int16(error)
    out.array_length(len(rows))
    data = out.data
    ends: dict[tuple[str, str, str], bytes] = {}  # what follows the id: few groups differ in it
    for group_id, protocol_type, state, group_type in rows:
        rest = protocol_type, state, group_type
        end = ends.get(rest)
        if end is None:
            end = ends[rest] = _end_of(protocol_type, state, group_type, version)
        name = group_id.encode()
        if flexible and len(name) < ONE_BYTE_UNTIL:
            data.append(len(name) + 1)
            data += name
        else:
            out.nullable_string(group_id)
        data += end
    out.tags()
    return bytes(data)


def _end_of(protocol_type: str, state: str, group_type: str, version: int) -> bytes:
    out = FrameWriter(flexible=version >= FLEXIBLE_FROM)
    out.nullable_string(protocol_type)
    if version >= STATE_FROM:
        out.nullable_string(state)
    if version >= TYPE_FROM:
        out.nullable_string(group_type)
    out.tags()
    return bytes(out.data)
