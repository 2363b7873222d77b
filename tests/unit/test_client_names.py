"""A name with a NUL reaches no other topic or group."""

from collections.abc import Callable
from typing import Any, NoReturn

import pytest

from bucketlog.client.groups import Groups
from bucketlog.client.membership import GroupMembership
from bucketlog.client.topics import Topics
from bucketlog.log_format.errors import ConfigurationError


class Silent:
    """A client of which each method fails the test."""

    def __getattr__(self, name: str) -> Callable[..., NoReturn]:
        def call(*given: object, **named: object) -> NoReturn:
            raise AssertionError(f"{name} was called")

        return call


class Admin:
    """The settings of requests, and a client that must not send one."""

    timeout_s = 1.0
    client = Silent()


ADMIN: Any = Admin()
CALLS: dict[str, Callable[[str], object]] = {
    "topics.delete": Topics(ADMIN).delete,
    "topics.describe": Topics(ADMIN).describe,
    "groups.delete": Groups(ADMIN).delete,
    "groups.describe": Groups(ADMIN).describe,
    "groups.members": Groups(ADMIN).members,
    "a consumer": lambda name: GroupMembership(group=name),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_no_request_is_sent(call: Callable[[str], object]) -> None:
    with pytest.raises(ConfigurationError, match="has a NUL"):
        call("bill\0ing")
