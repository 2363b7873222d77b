"""What ends a connection and what does not; version negotiation (KIP-35, KIP-511)."""

import struct
from collections.abc import Callable

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.embedded.cluster import EmbeddedCluster
from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.served_versions import SERVED_VERSIONS
from tests.models.sample_requests import sample_request
from tests.rigs.wire_client import WireClient, decode_response

EXPECTED = {
    ApiKey.PRODUCE: (0, 12),
    ApiKey.FETCH: (4, 16),
    ApiKey.LIST_OFFSETS: (1, 8),
    ApiKey.METADATA: (0, 12),
    ApiKey.API_VERSIONS: (0, 4),
}
"""What has to be offered at least."""


def header(api_key: int, version: int, correlation_id: int = 7) -> bytes:
    return struct.pack(">hhih", api_key, version, correlation_id, -1)


@pytest.mark.parametrize("version", range(5))
def test_api_versions(client: WireClient, version: int) -> None:
    values = {"client_software_name": "wire-client", "client_software_version": "1"}
    answer = client.call(ApiKey.API_VERSIONS, version, **(values if version >= 3 else {}))
    assert answer.error_code == ErrorCode.none
    offered = {row.api_key: (row.min_version, row.max_version) for row in answer.api_keys}
    for key, (low, high) in EXPECTED.items():
        mine = offered[key]
        assert mine[0] <= low, key.message_name
        assert mine[1] >= high, key.message_name
    assert ApiKey.CREATE_TOPICS in offered
    assert ApiKey.DELETE_TOPICS in offered
    assert ApiKey.CREATE_PARTITIONS in offered
    assert ApiKey.DESCRIBE_CONFIGS in offered
    assert ApiKey.INIT_PRODUCER_ID in offered
    assert ApiKey.FIND_COORDINATOR in offered


EVERY_VERSION = [
    pytest.param(key, version, id=f"{key.message_name}-{version}")
    for key, versions in SERVED_VERSIONS.items()
    for version in versions.each()
]


@pytest.mark.parametrize(("key", "version"), EVERY_VERSION)
def test_every_version_of_every_api_is_answered(
    client: WireClient, make_topic: Callable[[], str], key: ApiKey, version: int
) -> None:
    request = sample_request(key, version, make_topic())
    client.send_frame(request)
    frame = client.read_frame()
    assert frame is not None, "the connection was closed"
    decode_response(key, version, frame)


@pytest.mark.parametrize("version", [5, 99, 32767])
def test_an_unsupported_api_versions_gets_an_answer_of_version_0(
    client: WireClient, version: int
) -> None:
    client.send_frame(header(ApiKey.API_VERSIONS, version) + b"\x00\x01\x01\x00")
    frame = client.read_frame()
    assert frame is not None
    correlation_id, code, count = struct.unpack_from(">ihi", frame)
    assert (correlation_id, code) == (7, ErrorCode.unsupported_version)
    rows = [struct.unpack_from(">hhh", frame, 10 + 6 * row) for row in range(count)]
    assert len(frame) == 10 + 6 * count
    assert ApiKey.API_VERSIONS in {row[0] for row in rows}
    assert client.call(ApiKey.API_VERSIONS, 0).error_code == ErrorCode.none


BAD_FRAMES = {
    "unknown api": struct.pack(">i", 10) + header(9999, 0),
    "negative api": struct.pack(">i", 10) + header(-1, 0),
    "unknown version": struct.pack(">i", 10) + header(ApiKey.METADATA, 99),
    "negative version": struct.pack(">i", 10) + header(ApiKey.METADATA, -1),
    "oversize": struct.pack(">i", 2**31 - 1),
    "just oversize": struct.pack(">i", 1 << 30) + bytes(1000),
    "negative length": struct.pack(">i", -1),
    "no header": struct.pack(">i", 3) + b"abc",
    "empty": struct.pack(">i", 0),
    "cut body": struct.pack(">i", 12) + header(ApiKey.METADATA, 1) + b"\x00\x00",
    "absurd array": struct.pack(">i", 14)
    + header(ApiKey.METADATA, 1)
    + struct.pack(">i", 2**31 - 1),
    "http": b"GET / HTTP/1.1\r\nHost: example\r\n\r\n",
    "tls": bytes.fromhex("1603010200010001fc0303") + bytes(500),
}


@pytest.mark.parametrize("case", BAD_FRAMES)
def test_closes_that_connection_alone(
    client: WireClient, broker: EmbeddedCluster, case: str
) -> None:
    assert client.call(ApiKey.API_VERSIONS, 0).error_code == ErrorCode.none
    with WireClient(broker.bootstrap) as bad:
        assert bad.call(ApiKey.API_VERSIONS, 0).error_code == ErrorCode.none
        bad.send_bytes(BAD_FRAMES[case])
        assert bad.read_frame() is None
    assert client.call(ApiKey.API_VERSIONS, 0).error_code == ErrorCode.none


def test_frames_may_come_in_pieces(client: WireClient) -> None:
    frame = struct.pack(">i", 10) + header(ApiKey.API_VERSIONS, 0)
    for byte in frame:
        client.send_bytes(bytes([byte]))
    answer = client.read_frame()
    assert answer is not None
    assert int.from_bytes(answer[:4], "big") == 7


def test_frames_may_come_together(client: WireClient) -> None:
    client.send_bytes(
        b"".join(
            struct.pack(">i", 10) + header(ApiKey.API_VERSIONS, 0, number) for number in range(100)
        )
    )
    frames = [client.read_frame() for _ in range(100)]
    ids = [int.from_bytes(frame[:4], "big") for frame in frames if frame is not None]
    assert ids == list(range(100))


@pytest.mark.parametrize("version", range(3))
def test_find_coordinator_is_answered(client: WireClient, version: int) -> None:
    """Groups are not served yet: the answer is a node or a retriable refusal."""
    values = {"key": "group"} | ({"key_type": 0} if version >= 1 else {})
    answer = client.call(ApiKey.FIND_COORDINATOR, version, **values)
    assert answer.error_code in {ErrorCode.none, ErrorCode.coordinator_not_available}
