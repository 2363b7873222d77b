"""A request of each API and version that brokers serve, and the error codes of the answers."""

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.served_versions import SERVED_VERSIONS
from tests.models.sample_requests import Named, sample_request
from tests.rigs.patience import Deadline
from tests.rigs.wire_client import WireClient, decode_response

ApiAnswer = tuple[ApiKey, int, Any | None]
"""None: the broker closed the connection."""


def leaf_codes(value: Any) -> Iterator[ErrorCode]:
    """The error codes of an answer: those of rows, and those above rows only if there are none
    below, or if they are errors."""
    own, below = list[ErrorCode](), list[ErrorCode]()
    for field in fields(value):
        found = getattr(value, field.name)
        if field.name.endswith("error_code") and field.name != "topic_config_error_code":
            own.append(ErrorCode(found))
        elif isinstance(found, tuple):
            for each in found:
                if is_dataclass(each):
                    below += leaf_codes(each)
        elif is_dataclass(found):
            below += leaf_codes(found)
    yield from below
    yield from (code for code in own if code is not ErrorCode.none or not below)


def answers(
    bootstrap: str,
    named: Callable[[ApiKey], Named],
    begin: Callable[[WireClient], object] = lambda _: None,
) -> Iterator[ApiAnswer]:
    """The answers to a request of each API and version about `named`, each on a connection that
    `begin` made ready. A request that takes too long is sent again."""
    for key, served in SERVED_VERSIONS.items():
        for version in served.each():
            deadline = Deadline(f"{key.message_name} {version}: the request takes too long")
            while is_late(answer := _ask(bootstrap, begin, key, version, named(key))):
                deadline.pause()
            yield key, version, answer


def is_late(answer: Any | None) -> bool:
    """Sample requests have timeouts of milliseconds."""
    return answer is not None and ErrorCode.request_timed_out in leaf_codes(answer)


def _ask(
    bootstrap: str, begin: Callable[[WireClient], object], key: ApiKey, version: int, named: Named
) -> Any | None:
    with WireClient(bootstrap) as client:
        begin(client)
        client.send_frame(sample_request(key, version, named))
        frame = client.read_frame()
        return None if frame is None else decode_response(key, version, frame)[1]


def walk(bootstrap: str, named: Named) -> Iterator[tuple[ApiKey, int, Any]]:
    """As `answers`, of a broker that must answer all."""
    for key, version, answer in answers(bootstrap, lambda _: named):
        assert answer is not None, f"{key.message_name} {version}: closed"
        yield key, version, answer
