"""The fuzzer itself: encoding, seeds, shrinking, and the judge on planted faults."""

import struct
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.served_versions import SERVED_VERSIONS
from tests.fuzz.byte_changes import BYTE_CHANGES, framed
from tests.fuzz.judge import FuzzFailureError, Judge, Sent, sent_in
from tests.fuzz.requests import VALID, VALUES, Frame, Generator, make_frame
from tests.fuzz.run import LogWatch
from tests.fuzz.shapes import encode_request, request_shape, tree_of
from tests.fuzz.shrinking import find_cause, shrunk
from tests.fuzz.tree_changes import TREE_CHANGES, spots
from tests.fuzz.values import World
from tests.models.sample_requests import sample_body, sample_request

WORLD = World({"topic": UUID(int=1)})
EVERY_VERSION = [
    pytest.param(key, version, id=f"{key.message_name}-{version}")
    for key in SERVED_VERSIONS
    for version in SERVED_VERSIONS[key].each()
]


@pytest.mark.parametrize(("key", "version"), EVERY_VERSION)
def test_requests_are_encoded_as_kio_encodes_them(key: ApiKey, version: int) -> None:
    tree = tree_of(sample_body(key, version, "topic"))
    unset = [
        spot
        for spot in spots(request_shape(key, version), tree)
        if spot.field.tag is not None and spot.owner[spot.field.name] is None
    ]
    for spot in unset:  # kio does not write tagged fields that have their default
        del spot.owner[spot.field.name]
    assert encode_request(key, version, 7, tree) == sample_request(key, version, "topic")


def test_requests_follow_from_the_seed() -> None:
    first, again, other = (Generator(WORLD, seed) for seed in (5, 5, 6))
    frames = [first.frame(number) for number in range(2000)]
    assert frames == [again.frame(number) for number in range(2000)]
    assert frames[:100] != [other.frame(number) for number in range(100)]
    assert {frame.kind for frame in frames} == {VALID, VALUES, *TREE_CHANGES, *BYTE_CHANGES}
    assert {frame.key for frame in frames} == set(SERVED_VERSIONS)


ASKED = make_frame(3, VALID, ApiKey.API_VERSIONS, 0, {})
SENT = Sent(ApiKey.API_VERSIONS, 0, 3)
ANSWER = struct.pack(">ihi", 3, 0, 1) + struct.pack(">hhh", 18, 0, 4)


def test_a_sound_answer_is_accepted() -> None:
    expected = [Sent(ApiKey.PRODUCE, 9, 1), SENT]
    assert Judge().match(expected, ANSWER, ASKED) == SENT
    assert not expected


@pytest.mark.parametrize(
    ("expected", "answer", "complaint"),
    [
        ([SENT], struct.pack(">i", 4) + ANSWER[4:], "correlation id 4"),
        ([Sent(ApiKey.METADATA, 1, 2), SENT], ANSWER, "correlation id 3 answers"),
        ([], ANSWER, "answers no request"),
        ([SENT], ANSWER[:-1], "cannot be decoded"),
        ([SENT], ANSWER + b"\0", "cannot be decoded"),
        ([SENT], struct.pack(">ihi", 3, -1, 0), "UNKNOWN_SERVER_ERROR"),
        ([Sent(None, 0, 3)], ANSWER, "unknown API"),
        ([Sent(ApiKey.METADATA, 99, 3)], ANSWER, "not served"),
    ],
)
def test_a_planted_fault_is_found(expected: list[Sent], answer: bytes, complaint: str) -> None:
    with pytest.raises(FuzzFailureError, match=complaint):
        Judge().match(expected, answer, ASKED)


def test_what_was_sent_is_read_as_the_broker_reads_it() -> None:
    request = struct.pack(">hhi", ApiKey.METADATA, 1, 7)
    assert sent_in(framed(request) * 2) == ([Sent(ApiKey.METADATA, 1, 7)] * 2, True)
    assert sent_in(framed(request)[:-1]) == ([], False)
    assert sent_in(framed(request) + framed(b"short")) == ([Sent(ApiKey.METADATA, 1, 7)], False)


def test_an_error_in_the_log_is_found_once(tmp_path: Path) -> None:
    log = tmp_path / "broker.log"
    log.write_text('{"level": "INFO"}\n')
    watch = LogWatch(log)
    assert watch.bad_lines() == []
    with log.open("a") as file:
        file.write('{"level": "ERROR", "message": "Fetch failed"}\n')
    assert len(watch.bad_lines()) == 1
    assert watch.bad_lines() == []


def holds(word: bytes) -> Callable[[Frame], bool]:
    return lambda frame: word in frame.data


def test_the_cause_is_found_and_shrunk() -> None:
    generator = Generator(WORLD, 1, (ApiKey.METADATA,))
    harmless = [generator.frame(number) for number in range(50)]
    topics = [{"name": f"topic-{number}"} for number in range(40)]
    bad = make_frame(50, VALID, ApiKey.METADATA, 1, {"topics": topics})
    does_harm = holds(b"topic-23")
    cause = find_cause([*harmless[:20], bad, *harmless[20:]], does_harm)
    assert cause is bad
    small = shrunk(cause, does_harm)
    assert small.tree == {"topics": [{"name": "topic-23"}]}


def test_changed_bytes_are_shrunk() -> None:
    data = framed(bytes(14) + bytes(500) + b"evil" + bytes(300))
    small = shrunk(Frame(1, "bits", ApiKey.FETCH, 4, data, False, True, None), holds(b"evil"))
    assert small.data == framed(bytes(14) + b"evil")
