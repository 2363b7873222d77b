"""One request class and one response type for each API, for all its versions.

Both are the union of the versions served (`served_versions.py`), as in Kafka's own generated
classes. In a request, a field that its version lacks has its default. In a response, a field that
the version lacks is left out. `bucketlog.log_format.wire.messages` has one module for each API.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from bucketlog.log_format.wire.api_keys import ApiKey

RequestT = TypeVar("RequestT")
ResponseT = TypeVar("ResponseT", bound=Mapping[str, object])


@dataclass(frozen=True, slots=True, eq=False)
class ApiMessages(Generic[RequestT, ResponseT]):
    key: ApiKey
    request: type[RequestT]
    response: type[ResponseT]
    """A TypedDict."""
