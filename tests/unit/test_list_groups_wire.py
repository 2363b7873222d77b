"""ListGroups' response as kio reads it."""

import pytest

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.list_groups import FLEXIBLE_FROM, write_response
from tests.rigs.wire_client import decode_response

ROWS = [
    ("g", "consumer", "Stable", "consumer"),
    ("", "", "Empty", "classic"),
    ("ä" * 200, "connect", "PreparingRebalance", "classic"),
    *(("x" * length, "consumer", "Dead", "classic") for length in (125, 126, 127, 128)),
]


@pytest.mark.parametrize("version", range(6))
@pytest.mark.parametrize("count", [0, 3, 7, 1000])
def test_every_version(version: int, count: int) -> None:
    rows = (ROWS * 200)[:count]
    header = b"\0\0\0\x07" + (b"\0" if version >= FLEXIBLE_FROM else b"")
    body = write_response(version, 15, rows)
    _, answer = decode_response(ApiKey.LIST_GROUPS, version, header + body)
    assert answer.error_code == 15
    assert [(each.group_id, each.protocol_type) for each in answer.groups] == [
        row[:2] for row in rows
    ]
    if version >= 4:
        assert [each.group_state for each in answer.groups] == [row[2] for row in rows]
    if version >= 5:
        assert [each.group_type for each in answer.groups] == [row[3] for row in rows]
