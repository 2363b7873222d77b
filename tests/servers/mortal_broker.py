"""A broker that kills itself by SIGKILL at a point of its work: `python -m` of this module.

It is the product as it stands; bucket and sequencer are wrapped from outside. A point is armed by
making a file of its name in the folder `FAULT_POINTS`: the first broker that comes to it takes the
file away and dies there, whichever it is. `point_of` names the point of one broker alone.

While the file `gate_of` a broker exists, the broker's PUTs of segments wait at this gate. When the
first PUT waits, the broker creates the file `waits_at` the gate.
"""

import functools
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, ParamSpec, TypeVar
from unittest import mock

import bucketlog.stateless_broker.process.environment as composition
import bucketlog.tiered_storage.backends.file as file_backend
from bucketlog.log_format.model import Buffer
from bucketlog.metadata.sequencer.client import Sequencer
from bucketlog.stateless_broker.process.main import run
from bucketlog.tiered_storage import keys
from bucketlog.tiered_storage.backends.location import open_bucket
from bucketlog.tiered_storage.bucket import Bucket
from bucketlog.tiered_storage.segment import HEADER, is_seal
from tests.rigs.patience import let_pass_async

FOLDER = "FAULT_POINTS"
GATE_LOOK_S = 0.005
_P = ParamSpec("_P")
_T = TypeVar("_T")


class Point(StrEnum):
    BEFORE_RESERVE = "before reserve"
    RESERVED = "reserved"
    BEFORE_PUT = "before the PUT"
    IN_PUT = "in the middle of the PUT"
    PUT = "the PUT is done, its answer is not"
    BEFORE_PUBLISH = "before publish"
    PUBLISHED = "published, not acknowledged"
    BEFORE_SEAL = "before a seal"
    SEALED = "sealed, not fenced"
    FENCED = "fenced"
    NONCE = "the nonce is there"
    CLAIMED = "the epoch is claimed"
    BEFORE_ACTIVATION = "before activation"
    ACTIVATED = "activated"
    REGISTERED = "the writer is registered in the bucket"
    KNOWN = "the writer is registered at the sequencer"
    BEFORE_CHECKPOINT = "before a checkpoint"
    CHECKPOINT = "the checkpoint is written"


def point_of(node_id: int, point: Point) -> str:
    return f"{point}, broker {node_id}"


def gate_of(node_id: int) -> str:
    return f"gate of broker {node_id}"


def waits_at(gate: str) -> str:
    return f"{gate}, waiting"


def die_at(point: Point) -> None:
    """Where the point is armed, and nobody was sooner."""
    for name in (point_of(_node_id(), point), point):
        try:
            os.unlink(os.path.join(os.environ[FOLDER], name))
        except FileNotFoundError:
            continue
        os.kill(os.getpid(), signal.SIGKILL)


def _node_id() -> int:
    return int(os.environ["BUCKETLOG_NODE_ID"])


async def _pass_gate() -> None:
    while _waits():
        await let_pass_async(GATE_LOOK_S)


def _waits() -> bool:
    gate = Path(os.environ[FOLDER], gate_of(_node_id()))
    if not gate.exists():
        return False
    gate.with_name(waits_at(gate.name)).touch()
    return True


def mortal(
    verb: Callable[_P, Awaitable[_T]], before: Point | None, after: Point | None
) -> Callable[_P, Awaitable[_T]]:
    @functools.wraps(verb)
    async def call(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        if before is not None:
            die_at(before)
        answer = await verb(*args, **kwargs)
        if after is not None:
            die_at(after)
        return answer

    return call


VERBS: dict[str, tuple[Point | None, Point | None]] = {
    "reserve": (Point.BEFORE_RESERVE, Point.RESERVED),
    "publish": (Point.BEFORE_PUBLISH, Point.PUBLISHED),
    "fence": (None, Point.FENCED),
    "add_nonce": (None, Point.NONCE),
    "activate": (Point.BEFORE_ACTIVATION, Point.ACTIVATED),
    "register_writer": (None, Point.KNOWN),
}


def _points_of(key: str, parts: Sequence[Buffer]) -> tuple[Point | None, Point | None]:
    if key.startswith(keys.LOG):
        if is_seal(sum(len(part) for part in parts)):
            return Point.BEFORE_SEAL, Point.SEALED
        return Point.BEFORE_PUT, Point.PUT
    if key.startswith(keys.EPOCHS):
        return None, Point.CLAIMED
    if key.startswith(keys.WRITERS):
        return None, Point.REGISTERED
    if key.startswith(keys.CHECKPOINTS):
        return Point.BEFORE_CHECKPOINT, Point.CHECKPOINT
    return None, None


async def _open_mortal(*args: Any, **kwargs: Any) -> Bucket:
    bucket = await open_bucket(*args, **kwargs)
    create = bucket.create

    async def mortal_create(
        key: str, parts: Sequence[Buffer], *, crc32c: int | None = None
    ) -> bool:
        before, after = _points_of(key, parts)
        if before is not Point.BEFORE_PUT:
            return await mortal(create, before, after)(key, parts, crc32c=crc32c)
        die_at(Point.BEFORE_PUT)
        await _pass_gate()
        return await mortal(create, None, after)(key, parts, crc32c=crc32c)

    mock.patch.object(bucket, "create", mortal_create).start()
    return bucket


_write_durably = file_backend._write_durably


def _write_half(temporary: str, parts: Sequence[Buffer], mode: int) -> int:
    armed = os.path.join(os.environ[FOLDER], Point.IN_PUT)
    if bytes(parts[0][: len(HEADER)]) == HEADER and os.path.exists(armed):
        whole = b"".join(bytes(part) for part in parts)
        _write_durably(temporary, [whole[: len(whole) // 2]], mode)
        die_at(Point.IN_PUT)
    return _write_durably(temporary, parts, mode)


def main() -> int:
    mock.patch.object(composition, "open_bucket", _open_mortal).start()
    mock.patch.object(file_backend, "_write_durably", _write_half).start()
    for name, (before, after) in VERBS.items():
        verb = mortal(getattr(Sequencer, name), before, after)
        mock.patch.object(Sequencer, name, verb).start()
    return run()


if __name__ == "__main__":
    sys.exit(main())
