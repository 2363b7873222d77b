"""Requests of all served APIs and versions, valid and mutated, from a seed. Pure.

Each request depends only on the seed and its number, so that a harmful request can be made again.
Topic ids are an exception: brokers choose them when a run creates its topics.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.log_format.wire.served_versions import SERVED_VERSIONS
from tests.fuzz.byte_changes import BYTE_CHANGES, framed
from tests.fuzz.shapes import Field, Raw, Shape, encode_request, request_shape
from tests.fuzz.tree_changes import TREE_CHANGES, spots, with_hostile_values
from tests.fuzz.values import World, plausible_tree

WAITING_APIS = frozenset({ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP})
"""APIs whose answers may wait for other members."""
VALID, VALUES, STRUCTURE, BYTES = "valid", "values", "structure", "bytes"
APIS = tuple(SERVED_VERSIONS)
LEVELS = (VALID, VALUES, STRUCTURE, BYTES)
WEIGHTS = (25, 35, 20, 20)
CLIENT_IDS = ("fuzz", "fuzz", "fuzz", "", None, "zone=a", "ü" * 100, "x" * 5000)
PRODUCE_BYTES_MAX, OTHER_BYTES_MAX = 100 << 20, 4 << 20
"""Defaults of request_bytes_max and other_request_bytes_max: brokers do not take larger frames."""
LARGEST_ID = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Frame:
    """`data` are the bytes to send, with their length. `kind` says how they were made. A broker
    must answer a `well_formed` request, except a `silent` one, which demands no answer (acks=0)."""

    number: int
    kind: str
    key: ApiKey
    version: int
    data: bytes
    well_formed: bool
    silent: bool
    tree: Any
    """The body of the request, if `data` is its encoding."""

    @property
    def waits(self) -> bool:
        return self.key in WAITING_APIS

    @property
    def correlation_id(self) -> int:
        return int(struct.unpack_from(">i", self.data, 8)[0])


def is_unicode(shape: Shape, tree: Any) -> bool:
    """Whether all texts in the tree are UTF-8."""
    return not any(
        _is_broken(spot.field, spot.owner[spot.field.name]) for spot in spots(shape, tree)
    )


def _is_broken(field: Field, value: Any) -> bool:
    if field.kind != "string":
        return isinstance(value, Raw)
    return any(isinstance(text, bytes) for text in (value if isinstance(value, list) else [value]))


def make_frame(
    number: int,
    kind: str,
    key: ApiKey,
    version: int,
    tree: Any,
    *,
    well_formed: bool = True,
    client_id: str | None = "fuzz",
    correlation_id: int | None = None,
) -> Frame:
    answer_id = number if correlation_id is None else correlation_id
    data = framed(encode_request(key, version, answer_id, tree, client_id))
    silent = key is ApiKey.PRODUCE and tree.get("acks") not in {-1, 1}
    is_taken = len(data) < (PRODUCE_BYTES_MAX if key is ApiKey.PRODUCE else OTHER_BYTES_MAX)
    sound = well_formed and is_taken
    return Frame(number, kind, key, version, data, sound, silent, tree)


class Generator:
    """Requests of `apis`, at all served versions."""

    def __init__(self, world: World, seed: int, apis: Sequence[ApiKey] = APIS) -> None:
        self.world = world
        self.seed = seed
        self._apis = apis

    def random(self, number: int) -> Random:
        return Random(f"{self.seed}/{number}")

    def frame(self, number: int) -> Frame:
        random = self.random(number)
        key = random.choice(self._apis)
        version = random.choice(SERVED_VERSIONS[key].each())
        shape = request_shape(key, version)
        tree = plausible_tree(random, self.world, shape)
        (level,) = random.choices(LEVELS, WEIGHTS)
        if level == BYTES:
            return self._changed_bytes(random, number, key, version, tree)
        kind, well_formed = level, True
        if level == VALUES:
            tree = with_hostile_values(random, self.world, shape, tree)
            well_formed = is_unicode(shape, tree)
        elif level == STRUCTURE:
            kind = random.choice(list(TREE_CHANGES))
            well_formed = TREE_CHANGES[kind](random, self.world, shape, tree)
        client_id = random.choice(CLIENT_IDS)
        answer_id = random.choice((number, number, 0, -1, LARGEST_ID))
        return make_frame(
            number,
            kind,
            key,
            version,
            tree,
            well_formed=well_formed,
            client_id=client_id,
            correlation_id=answer_id,
        )

    def _changed_bytes(
        self, random: Random, number: int, key: ApiKey, version: int, tree: Any
    ) -> Frame:
        kind = random.choice(list(BYTE_CHANGES))
        data = BYTE_CHANGES[kind](random, encode_request(key, version, number, tree))
        return Frame(number, kind, key, version, data, False, True, None)
