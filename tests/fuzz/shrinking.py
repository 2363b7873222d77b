"""Finds the harmful request among thousands, and a smaller request that is harmful. Pure."""

import copy
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from tests.fuzz.byte_changes import framed
from tests.fuzz.requests import Frame, make_frame
from tests.fuzz.shapes import TAGS, request_shape
from tests.fuzz.tree_changes import spots

DoesHarm = Callable[[Frame], bool]
TRIES_MAX = 300
KEPT_BYTES = 14
"""Size of a request's header, which shrinking does not change."""


def find_cause(frames: Iterable[Frame], does_harm: DoesHarm) -> Frame | None:
    """The newest frame that is harmful on its own."""
    return next((frame for frame in reversed(list(frames)) if does_harm(frame)), None)


def shrunk(frame: Frame, does_harm: DoesHarm) -> Frame:
    """A smaller harmful frame, or `frame` itself."""
    tries = 0
    found = True
    while found:
        found = False
        for candidate in _smaller(frame):
            tries += 1
            if tries > TRIES_MAX:
                return frame
            if does_harm(candidate):
                frame, found = candidate, True
                break
    return frame


def _smaller(frame: Frame) -> Iterator[Frame]:
    return _smaller_trees(frame) if frame.tree is not None else _smaller_bytes(frame)


def _smaller_trees(frame: Frame) -> Iterator[Frame]:
    """Variants with half an array, without tags, or with half a text."""
    shape = request_shape(frame.key, frame.version)
    for number in range(len(list(spots(shape, frame.tree)))):
        tree = copy.deepcopy(frame.tree)
        spot = list(spots(shape, tree))[number]
        value = spot.owner[spot.field.name]
        if isinstance(value, list | str | bytes) and value:
            for part in (value[: len(value) // 2], value[len(value) // 2 :]):
                if len(part) < len(value):
                    spot.owner[spot.field.name] = part
                    yield _again(frame, copy.deepcopy(tree))
        if TAGS in spot.owner:
            del spot.owner[TAGS]
            yield _again(frame, tree)


def _again(frame: Frame, tree: Any) -> Frame:
    return make_frame(
        frame.number,
        frame.kind,
        frame.key,
        frame.version,
        tree,
        well_formed=frame.well_formed,
        correlation_id=frame.correlation_id,
    )


def _smaller_bytes(frame: Frame) -> Iterator[Frame]:
    """Variants with ever smaller pieces cut out after the header."""
    payload = frame.data[4:]
    size = (len(payload) - KEPT_BYTES) // 2
    while size > 0:
        for at in range(KEPT_BYTES, len(payload) - size + 1, size):
            yield replace(frame, data=framed(payload[:at] + payload[at + size :]))
        size //= 2
