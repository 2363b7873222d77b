"""The modules that a produced batch crosses, from the bytes on the socket to the acknowledgement.

A module is crossed when one of its functions is called for the request. Three rules select the
calls for the request; all other calls are counted separately:

- A task that started before the request arrived works for all requests, and is counted separately:
  the view's feed, the heartbeat, the watches. The commit loop is counted with the request.
- The feed's call of `Committer.became_visible`, and the calls below it, are the acknowledgement.
  They are counted with the request. The feed's other work on a segment serves all readers, and is
  counted separately, also if the answer of this broker's publication causes the work.
- The calls below the bucket's outermost decorator are the store. They depend on the configuration,
  and are counted separately.
"""

import asyncio
import re
import socket
import struct
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from bucketlog.log_format.wire.api_keys import ApiKey
from bucketlog.stateless_broker.fetch.feed import ViewFeed
from bucketlog.stateless_broker.network import open_connections
from bucketlog.stateless_broker.network.connection_owner import Entrance
from bucketlog.stateless_broker.network.listener import Listener
from bucketlog.stateless_broker.network.open_connections import OpenConnections
from bucketlog.stateless_broker.network.request_figures import RequestFigures
from bucketlog.stateless_broker.produce.commit import Committer
from bucketlog.tiered_storage.counting import CountingBucket
from tests.models.repository import PRODUCT, ROOT
from tests.rigs.broker_rig import Rig, produce, until
from tests.rigs.patience import PATIENCE_S
from tests.rigs.wire_client import build_batch, decode_response, encode_request

MODULES_MAX = 26
OF_THE_REQUEST = {Committer.run.__code__, Committer.became_visible.__code__}
DOOR_OF_THE_STORE = CountingBucket.create.__code__
DOOR_OF_THE_FEED = ViewFeed.note_published.__code__
THREADS_OF_THE_STORE = "bucket"
VERSION, CORRELATION_ID = 9, 7
_LENGTH = struct.Struct(">i")


class CrossedModules:
    """Modules of the product with their called functions, in the order of the first calls: `own`
    for the request, `apart` for all other calls."""

    def __init__(self) -> None:
        self.own: dict[str, set[str]] = {}
        self.apart: dict[str, set[str]] = {}
        self._others: set[asyncio.Task[Any]] = set()

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """Record calls within the block, from the event loop and from threads that start in it."""
        self._others = asyncio.all_tasks() - {asyncio.current_task()}
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    def _note(self, frame: FrameType, event: str, arg: object) -> None:
        if event == "call" and (module := _module_of(frame.f_code)) is not None:
            found = self.own if self._is_own(frame) else self.apart
            found.setdefault(module, set()).add(frame.f_code.co_qualname)

    def _is_own(self, frame: FrameType) -> bool:
        callers = set(_callers_of(frame))
        if DOOR_OF_THE_STORE in callers:
            return False
        if OF_THE_REQUEST & {frame.f_code, *callers}:
            return True
        if DOOR_OF_THE_FEED in {frame.f_code, *callers}:
            return False
        try:
            return asyncio.current_task() not in self._others
        except RuntimeError:  # in a thread, where no event loop runs
            return not threading.current_thread().name.startswith(THREADS_OF_THE_STORE)

    def report(self) -> str:
        lines = []
        for title, found in (("of the request", self.own), ("apart", self.apart)):
            lines.append(f"{title}: {len(found)}")
            lines += [
                f"  {module}: {', '.join(sorted(called))}" for module, called in found.items()
            ]
        return "\n".join(lines)


def _module_of(code: CodeType) -> str | None:
    """The module's path in the repository; None for code outside the product."""
    path = Path(code.co_filename).resolve()
    if not path.is_relative_to(ROOT):
        return None
    inside = path.relative_to(ROOT)
    return inside.as_posix() if inside.parts[0] in PRODUCT else None


def _callers_of(frame: FrameType) -> Iterator[CodeType]:
    """The callers within the same task, or the same callback of the event loop."""
    caller = frame.f_back
    while caller is not None:
        yield caller.f_code
        caller = caller.f_back


def _request() -> bytes:
    rows = [{"index": 0, "records": build_batch([(None, b"value")])}]
    values = {
        "acks": -1,
        "timeout": 20_000,
        "topic_data": [{"name": "t", "partition_data": rows}],
    }
    payload = encode_request(ApiKey.PRODUCE, VERSION, CORRELATION_ID, values)
    return _LENGTH.pack(len(payload)) + payload


@pytest.fixture
async def crossed(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> CrossedModules:
    """The modules of one produce through a socket, on a broker that has served one before."""
    monkeypatch.setattr(open_connections, "LOOK_S", 2 * PATIENCE_S)  # no request causes its checks
    before = asyncio.all_tasks()
    await produce(rig, b"warm")
    await until(lambda: asyncio.all_tasks() <= before)  # its publication is answered, too
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor())  # of new threads
    connections = OpenConnections(
        settings=rig.settings,
        handler=rig.node.dispatcher.handle,
        budget=rig.budget,
        answers=rig.node.answers,
        figures=RequestFigures(slow_request_ms=0),
    )
    listening = socket.create_server(("127.0.0.1", 0))
    connections.start()
    listener = Listener(Entrance("PLAINTEXT"), listening, connections, backlog=1)
    await listener.start()
    reader, writer = await asyncio.open_connection(*listening.getsockname())
    request, crossed = _request(), CrossedModules()
    async with asyncio.timeout(PATIENCE_S):
        with crossed.recorded():
            writer.write(request)
            (size,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
            answer = await reader.readexactly(size)
    writer.close()
    await writer.wait_closed()
    listener.stop_accepting()
    connections.take_no_more()
    await connections.stop()
    _, response = decode_response(ApiKey.PRODUCE, VERSION, answer)
    row = response.responses[0].partition_responses[0]
    assert (row.error_code, row.base_offset) == (ErrorCode.none, 1)
    return crossed


def _documented() -> list[str]:
    """The modules that ARCHITECTURE.md lists."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    section = text.split("### The way of a produced batch")[1].split("\n## ")[0]
    return re.findall(r"^\| `([\w/]+\.py)` \|", section, re.MULTILINE)


async def test_a_newcomer_can_follow_it(crossed: CrossedModules) -> None:
    assert len(crossed.own) <= MODULES_MAX, crossed.report()


async def test_the_page_shows_it_in_its_order(crossed: CrossedModules) -> None:
    assert _documented() == list(crossed.own), crossed.report()


async def test_the_acknowledgement_is_counted_and_the_feed_is_not(crossed: CrossedModules) -> None:
    feed, commit = "stateless_broker/fetch/feed.py", "stateless_broker/produce/commit.py"
    assert "ViewFeed.run" in crossed.apart[feed]
    assert feed not in crossed.own
    assert "Committer.became_visible" in crossed.own[commit]
    assert "OpenProduce.settle" in crossed.own["stateless_broker/handlers/open_produce.py"]


async def test_the_door_of_the_store_is_counted_and_the_store_is_not(
    crossed: CrossedModules,
) -> None:
    assert "CountingBucket.create" in crossed.own["tiered_storage/counting.py"]
    assert not any(module.startswith("tiered_storage/backends/") for module in crossed.own)
    assert "ThreadedBucket.create" in crossed.apart["tiered_storage/backends/threaded.py"]
