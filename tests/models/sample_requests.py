"""One valid request of each API and version, by kio. Pure."""

import types
import typing
import uuid
from dataclasses import fields, is_dataclass
from datetime import timedelta
from typing import Any

from bucketlog.log_format.wire.api_keys import ApiKey
from tests.rigs.wire_client import build, build_batch, encode_entity, request_schema

KEPT_SHORT_MS = 5


class Named(typing.NamedTuple):
    """The name of everything that a request names, and the id of its topics."""

    name: str
    topic_id: uuid.UUID = uuid.UUID(int=1)


def sample_body(key: ApiKey, version: int, topic: str | Named) -> Any:
    """The entity of kio; each array has one item."""
    named = Named(topic) if isinstance(topic, str) else topic
    return _sample(request_schema(key, version), named)


def sample_request(key: ApiKey, version: int, topic: str | Named) -> bytes:
    """Header and body, without the frame's length."""
    schema = request_schema(key, version)
    header = {
        "request_api_key": schema.__api_key__,
        "request_api_version": version,
        "correlation_id": 7,
        "client_id": "fuzz",
    }
    body = encode_entity(sample_body(key, version, topic))
    return encode_entity(build(schema.__header_schema__, header)) + body


def _sample(schema: type[Any], named: Named) -> Any:
    hints = typing.get_type_hints(schema)
    return schema(
        **{field.name: _value(field.name, hints[field.name], named) for field in fields(schema)}
    )


def _value(name: str, hint: Any, named: Named) -> Any:
    if isinstance(hint, types.UnionType):
        if name in {"transactional_id", "cluster_id"}:
            return None
        hint = next(arm for arm in typing.get_args(hint) if arm is not type(None))
    if typing.get_origin(hint) is tuple:
        return (_value(name, typing.get_args(hint)[0], named),)
    if is_dataclass(hint):
        return _sample(typing.cast("type[Any]", hint), named)
    return _plain(name, hint, named)


def _plain(name: str, hint: Any, named: Named) -> Any:
    word = hint.__name__
    if word == "Records":
        return build_batch([(b"key", b"value" * 20)] * 3)
    if "Timedelta" in word:
        return timedelta(milliseconds=KEPT_SHORT_MS)
    if hint is bytes:
        return b"bytes"
    if hint is bool:
        return False
    if hint is uuid.UUID:
        return named.topic_id
    if issubclass(hint, str):
        return named.name
    numbers = {"acks": -1, "timestamp": -1, "replication_factor": 1, "replica_id": -1}
    known = numbers | {"num_partitions": 1, "resource_type": 2, "count": 2, "max_bytes": 1000}
    return known.get(name, 0)
