"""What ends a connection and what does not; version negotiation (KIP-35, KIP-511)."""

import struct

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.embedded import EmbeddedCluster
from tests.wire_client import API_KEYS, WireClient

EXPECTED = {
    "produce": (0, 12),
    "fetch": (4, 16),
    "list_offsets": (1, 8),
    "metadata": (0, 12),
    "api_versions": (0, 4),
}
"""What has to be offered at least."""


def header(api_key: int, version: int, correlation_id: int = 7) -> bytes:
    return struct.pack(">hhih", api_key, version, correlation_id, -1)


@pytest.mark.parametrize("version", range(5))
def test_api_versions(client: WireClient, version: int) -> None:
    values = {"client_software_name": "wire-client", "client_software_version": "1"}
    answer = client.call("api_versions", version, **(values if version >= 3 else {}))
    assert answer.error_code == ErrorCode.none
    offered = {row.api_key: (row.min_version, row.max_version) for row in answer.api_keys}
    for name, (low, high) in EXPECTED.items():
        mine = offered[API_KEYS[name]]
        assert mine[0] <= low, name
        assert mine[1] >= high, name
    for name in ("create_topics", "delete_topics", "create_partitions", "describe_configs"):
        assert API_KEYS[name] in offered
    assert API_KEYS["init_producer_id"] in offered
    assert API_KEYS["find_coordinator"] in offered


@pytest.mark.parametrize("version", [5, 99, 32767])
def test_an_unsupported_api_versions_gets_an_answer_of_version_0(
    client: WireClient, version: int
) -> None:
    client.send_frame(header(18, version) + b"\x00\x01\x01\x00")
    frame = client.read_frame()
    assert frame is not None
    correlation_id, code, count = struct.unpack_from(">ihi", frame)
    assert (correlation_id, code) == (7, ErrorCode.unsupported_version)
    rows = [struct.unpack_from(">hhh", frame, 10 + 6 * row) for row in range(count)]
    assert len(frame) == 10 + 6 * count
    assert 18 in {row[0] for row in rows}
    assert client.call("api_versions", 0).error_code == ErrorCode.none


BAD_FRAMES = {
    "unknown api": struct.pack(">i", 10) + header(9999, 0),
    "negative api": struct.pack(">i", 10) + header(-1, 0),
    "unknown version": struct.pack(">i", 10) + header(3, 99),
    "negative version": struct.pack(">i", 10) + header(3, -1),
    "oversize": struct.pack(">i", 2**31 - 1),
    "just oversize": struct.pack(">i", 1 << 30) + bytes(1000),
    "negative length": struct.pack(">i", -1),
    "no header": struct.pack(">i", 3) + b"abc",
    "empty": struct.pack(">i", 0),
    "cut body": struct.pack(">i", 12) + header(3, 1) + b"\x00\x00",
    "absurd array": struct.pack(">i", 14) + header(3, 1) + struct.pack(">i", 2**31 - 1),
    "http": b"GET / HTTP/1.1\r\nHost: example\r\n\r\n",
    "tls": bytes.fromhex("1603010200010001fc0303") + bytes(500),
}


@pytest.mark.parametrize("case", BAD_FRAMES)
def test_closes_that_connection_alone(
    client: WireClient, broker: EmbeddedCluster, case: str
) -> None:
    assert client.call("api_versions", 0).error_code == ErrorCode.none
    with WireClient(broker.bootstrap) as bad:
        assert bad.call("api_versions", 0).error_code == ErrorCode.none
        bad.send_bytes(BAD_FRAMES[case])
        assert bad.read_frame() is None
    assert client.call("api_versions", 0).error_code == ErrorCode.none


def test_frames_may_come_in_pieces(client: WireClient) -> None:
    frame = struct.pack(">i", 10) + header(18, 0)
    for byte in frame:
        client.send_bytes(bytes([byte]))
    answer = client.read_frame()
    assert answer is not None
    assert int.from_bytes(answer[:4], "big") == 7


def test_frames_may_come_together(client: WireClient) -> None:
    client.send_bytes(
        b"".join(struct.pack(">i", 10) + header(18, 0, number) for number in range(100))
    )
    frames = [client.read_frame() for _ in range(100)]
    ids = [int.from_bytes(frame[:4], "big") for frame in frames if frame is not None]
    assert ids == list(range(100))


@pytest.mark.parametrize("version", range(3))
def test_find_coordinator_is_answered(client: WireClient, version: int) -> None:
    """Groups are not served yet: the answer is a node or a retriable refusal."""
    values = {"key": "group"} | ({"key_type": 0} if version >= 1 else {})
    answer = client.call("find_coordinator", version, **values)
    assert answer.error_code in {ErrorCode.none, ErrorCode.coordinator_not_available}
