"""Changes to the tree of a request: its values, and its structure. Pure."""

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from random import Random
from typing import Any, NamedTuple

from tests.fuzz.shapes import TAGS, Field, Shape, encode_field
from tests.fuzz.values import World, hostile, misfit, plausible

REPEATS = (2, 2, 3, 50, 1000)
REPEATED_BYTES_MAX = 200_000
"""Arrays are repeated up to this size, so that most requests stay small."""
TAG_NUMBERS = (0, 1, 2, 99, 10_000, 2**31 - 1)


class Spot(NamedTuple):
    """A field of a structure in the tree."""

    shape: Shape
    field: Field
    owner: dict[str, Any]


def spots(shape: Shape, tree: Any) -> Iterator[Spot]:
    if not isinstance(tree, dict):
        return
    for field in shape.fields:
        if field.name not in tree:
            continue
        yield Spot(shape, field, tree)
        value = tree[field.name]
        if field.shape is not None:
            for item in value if isinstance(value, list) else [value]:
                yield from spots(field.shape, item)


def _structures(shape: Shape, tree: Any) -> list[dict[str, Any]]:
    found = [tree]
    found += [spot.owner for spot in spots(shape, tree) if spot.owner is not tree]
    return list({id(owner): owner for owner in found}.values())


def with_hostile_values(random: Random, world: World, shape: Shape, tree: Any) -> Any:
    """Give one or several fields a hostile value of their type."""
    changed = copy.deepcopy(tree)
    found = list(spots(shape, changed))
    for spot in random.sample(found, min(len(found), random.choice((1, 1, 1, 2, 5)))):
        value = hostile(random, world, spot.field)
        items = spot.owner.get(spot.field.name)
        if spot.field.is_array and items and spot.field.shape is None and random.random() < 0.8:
            value = [*items, hostile(random, world, _single(spot.field))]
        spot.owner[spot.field.name] = value
    return changed


def _repeat_items(random: Random, world: World, shape: Shape, tree: Any) -> bool:
    arrays = [spot for spot in spots(shape, tree) if spot.field.is_array]
    if not arrays:
        return False
    spot = random.choice(arrays)
    items = spot.owner[spot.field.name] or [
        plausible(random, world, spot.shape, _single(spot.field))
    ]
    if isinstance(items, list):
        size = len(encode_field(spot.field, items, shape.flexible))
        times = max(2, min(random.choice(REPEATS), REPEATED_BYTES_MAX // size))
        spot.owner[spot.field.name] = items * times
    return True


def _single(field: Field) -> Field:
    """The field of one item of an array."""
    return replace(field, is_array=False, nullable=False)


def _shuffle_items(random: Random, world: World, shape: Shape, tree: Any) -> bool:
    for spot in spots(shape, tree):
        items = spot.owner[spot.field.name]
        if isinstance(items, list):
            random.shuffle(items)
    return True


def _drop_field(random: Random, world: World, shape: Shape, tree: Any) -> bool:
    found = list(spots(shape, tree))
    if found:
        spot = random.choice(found)
        del spot.owner[spot.field.name]
    return False


def _swap_fields(random: Random, world: World, shape: Shape, tree: Any) -> bool:
    owner = random.choice(_structures(shape, tree))
    names = list(owner)
    random.shuffle(names)
    values = {name: owner[name] for name in names}
    owner.clear()
    owner.update(values)
    return False


def _unknown_tags(random: Random, world: World, shape: Shape, tree: Any) -> bool:
    """Add unknown tagged fields, which Kafka skips."""
    if not shape.flexible:
        return True
    for owner in random.choices(_structures(shape, tree), k=2):
        known = max((field.tag for field in shape.fields if field.tag is not None), default=-1)
        tags = {random.choice(TAG_NUMBERS) + known + 1 for _ in range(random.choice((1, 2, 30)))}
        sizes = (0, 1, 200)
        owner[TAGS] = [(tag, random.randbytes(random.choice(sizes))) for tag in sorted(tags)]
    return not _has_own_tags(shape)


def _has_own_tags(shape: Shape) -> bool:
    """Whether a nested structure might know an invented tag."""
    nested = [field.shape for field in shape.fields if field.shape is not None]
    return any(field.tag is not None for each in nested for field in each.fields) or any(
        _has_own_tags(each) for each in nested
    )


def _wrong_tags(random: Random, world: World, shape: Shape, tree: Any) -> bool:
    """Add tags that the schema may know, with random values, once or twice."""
    owner = random.choice(_structures(shape, tree))
    tag = random.choice((0, 0, 1))
    owner[TAGS] = [(tag, random.randbytes(random.choice((0, 1, 4, 16))))] * random.choice((1, 2))
    return not shape.flexible


def _misfit(random: Random, world: World, shape: Shape, tree: Any) -> bool:
    found = list(spots(shape, tree))
    if found:
        spot = random.choice(found)
        value = spot.owner[spot.field.name]
        spot.owner[spot.field.name] = misfit(random, spot.field, value, shape.flexible)
    return False


TreeChange = Callable[[Random, World, Shape, Any], bool]
TREE_CHANGES: Mapping[str, TreeChange] = {
    "repeated items": _repeat_items,
    "shuffled items": _shuffle_items,
    "dropped field": _drop_field,
    "swapped fields": _swap_fields,
    "unknown tags": _unknown_tags,
    "wrong tags": _wrong_tags,
    "misfit": _misfit,
}
"""Each changes the tree in place, and returns whether the request is still well-formed."""
