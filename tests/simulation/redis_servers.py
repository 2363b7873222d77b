"""Servers of the simulated Redis: real Lua on a real Valkey, whose identity, data and life are the
simulation's. Each is a numbered database of one process.

Invariant: the simulation decides what a script sees of the server and its connections (it replaces
the functions of `identity.lua` and `lifelines.lua` that ask for them), and the script's time;
everything else is real.
"""

import re
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any, Protocol, cast

import hiredis
from redis.exceptions import NoScriptError, ReadOnlyError, ResponseError

from bucketlog.metadata.sequencer import scripts
from bucketlog.metadata.sequencer.scripts import SequencerVerb

SERVER_KEY = "simulated-server"
_IDENTITY = re.compile(r"local function identity\(\).*?\nend\n", re.DOTALL)
_SIMULATED_IDENTITY = f"""local function identity()
  local found = redis.call('HMGET', '{SERVER_KEY}', 'run_id', 'replid', 'role')
  return found[1], found[2], found[3]
end
"""
LIFELINE = "lifeline:"
ANNOUNCED = "announced"
_SIMULATED_LIFELINES = f"""local function is_lifeline_held(keys, incarnation)
  return redis.call('HEXISTS', '{SERVER_KEY}', '{LIFELINE}' .. incarnation) == 1
end
local function announce_change(keys)
  redis.call('HSET', '{SERVER_KEY}', '{ANNOUNCED}', '1')
end
"""
_SNAPSHOT = f"""local all = {{}}
for _, key in ipairs(redis.call('KEYS', '*')) do
  if key ~= '{SERVER_KEY}' then
    all[#all + 1] = key
    all[#all + 1] = redis.call('DUMP', key)
  end
end
return all"""

WRITES_FIRST = (SequencerVerb.HEARTBEAT, SequencerVerb.LEAVE)
"""Without a look at who the server is: a replica refuses the write."""
MAY_SHOW = (SequencerVerb.PUBLISH, SequencerVerb.FENCE, SequencerVerb.ACTIVATE)
"""What appends to the stream of visible segments."""
TELLING_KEYS = (b":producers", b":groups", b":open")
TELLING_SHARE = 0.5
Snapshot = list[bytes]
Entry = tuple[bytes, dict[bytes, Any]]
"""Of a stream: its id and its fields."""
LuaPatch = Callable[[str, str], str]
"""Name and text of a Lua file to its text in this run."""


def simulate_identity(patch: LuaPatch) -> None:
    """From now on this process' scripts ask the simulation who the server is."""
    original = scripts.lua_source

    def source(name: str) -> str:
        text = original(name)
        if name == "identity":
            text, found = _IDENTITY.subn(_SIMULATED_IDENTITY, text)
            assert found == 1, "identity.lua has no function identity() any more"
        elif name == "lifelines":
            text = _SIMULATED_LIFELINES
        return patch(name, text)

    scripts.script_text.cache_clear()
    vars(scripts)["lua_source"] = source


class Connection:
    """Commands one after another, without an event loop."""

    def __init__(self, path: Path, database: int) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(path))
        self._reader = hiredis.Reader(replyError=ResponseError)
        self.call("SELECT", database)

    def call(self, *parts: Any) -> Any:
        self._socket.sendall(hiredis.pack_command(parts))
        while (answer := self._reader.gets()) is False:
            data = self._socket.recv(1 << 16)
            assert data, "the Valkey of the simulation has ended"
            self._reader.feed(data)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        self._socket.close()


class LifelineEnd(Protocol):
    """The broker's end of its lifeline."""

    incarnation: str

    def told(self) -> None:
        """Members have changed."""

    def ended(self) -> None:
        """The server has closed the connection."""


class Server:
    def __init__(self, connection: Connection, name: str, new_id: Callable[[], str]) -> None:
        self.name = name
        self._connection = connection
        self._new_id = new_id
        self._known_scripts: set[str] = set()
        self.run_id, self.replid, self.role = new_id(), new_id(), "master"
        self.on_visible: list[Callable[[], None]] = []
        """Whoever waits for the stream: called once when it may have grown."""
        self._lifelines: dict[str, LifelineEnd] = {}
        """By incarnation."""
        self._shown: dict[tuple[str, str, int], Sequence[Entry]] = {}
        """What the stream held when it was read, until something changes."""
        connection.call("FLUSHDB")
        self._tell_identity()

    def _tell_identity(self) -> None:
        self._connection.call(
            "HSET", SERVER_KEY, "run_id", self.run_id, "replid", self.replid, "role", self.role
        )
        for incarnation in self._lifelines:
            self._connection.call("HSET", SERVER_KEY, LIFELINE + incarnation, "1")

    # What brokers ask ------------------------------------------------------------------------

    def evalsha(self, verb: SequencerVerb, sha: str, arguments: tuple[Any, ...]) -> Any:
        if sha not in self._known_scripts:
            raise NoScriptError("NOSCRIPT No matching script.")
        return self._scripted(verb, "EVALSHA", sha, arguments)

    def eval(self, verb: SequencerVerb, text: str, sha: str, arguments: tuple[Any, ...]) -> Any:
        self._known_scripts.add(sha)
        return self._scripted(verb, "EVAL", text, arguments)

    def _refuse_writes(self) -> None:
        if self.role != "master":
            raise ReadOnlyError("You can't write against a read only replica.")

    def _scripted(
        self, verb: SequencerVerb, command: str, script: str, arguments: tuple[Any, ...]
    ) -> Any:
        if verb in WRITES_FIRST:
            self._refuse_writes()
        answer = self._connection.call(command, script, *arguments)
        if verb in WRITES_FIRST and self._connection.call("HDEL", SERVER_KEY, ANNOUNCED):
            for end in list(self._lifelines.values()):
                end.told()
        if verb in MAY_SHOW:
            self._shown.clear()
            waiting, self.on_visible = self.on_visible, []
            for wake in waiting:
                wake()
        return answer

    def command(self, *parts: Any) -> Any:
        self._refuse_writes()
        self._shown.clear()
        return self._connection.call(*parts)

    def info(self, section: str) -> dict[str, str]:
        return {
            "memory": {"maxmemory_policy": "noeviction"},
            "server": {"run_id": self.run_id},
            "replication": {"master_replid": self.replid, "role": self.role},
        }[section]

    def hold_lifeline(self, end: LifelineEnd) -> None:
        self._lifelines[end.incarnation] = end
        self._connection.call("HSET", SERVER_KEY, LIFELINE + end.incarnation, "1")
        end.told()

    def drop_lifeline(self, end: LifelineEnd) -> None:
        """The connection has ended, whoever closed it."""
        if self._lifelines.get(end.incarnation) is end:
            del self._lifelines[end.incarnation]
            self._connection.call("HDEL", SERVER_KEY, LIFELINE + end.incarnation)
            end.ended()

    def read_stream(self, key: str, after: str, count: int) -> Sequence[Entry]:
        asked = key, after, count
        if asked not in self._shown:
            answer = self._connection.call("XREAD", "COUNT", count, "STREAMS", key, after)
            entries = answer[0][1] if answer else ()
            self._shown[asked] = tuple(
                (stream_id, dict(zip(fields[::2], fields[1::2], strict=True)))
                for stream_id, fields in entries
            )
        return self._shown[asked]

    # What happens to it ----------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        return cast(Snapshot, self._connection.call("EVAL", _SNAPSHOT, 0))

    def _load(self, snapshot: Snapshot) -> None:
        self._shown.clear()
        self._connection.call("FLUSHDB")
        for key, dump in zip(snapshot[::2], snapshot[1::2], strict=True):
            self._connection.call("RESTORE", key, 0, dump)
        self._tell_identity()

    def wipe(self) -> None:
        """FLUSHALL: the same server without data."""
        self._load([])

    def lose_key(self, random: Random) -> None:
        """Often one whose loss an epoch could live with for a while."""
        keys = cast(list[bytes], self._connection.call("KEYS", "bucketlog:*"))
        kept = [key for key in sorted(keys) if not key.endswith(b":visible")]
        telling = [key for key in kept if key.endswith(TELLING_KEYS)]
        if kept:
            choice = telling if telling and random.random() < TELLING_SHARE else kept
            self._connection.call("DEL", random.choice(choice))

    def restart(self, data: Snapshot) -> None:
        """Another process, with what was on its disk."""
        self.run_id, self.replid = self._new_id(), self._new_id()
        self._known_scripts.clear()
        for end in list(self._lifelines.values()):
            self.drop_lifeline(end)
        self.role = "master"
        self._load(data)

    def learn_scripts(self, primary: "Server") -> None:
        """Servers before Redis 7 send scripts to their replicas, too."""
        self._known_scripts |= primary._known_scripts

    def promote(self, data: Snapshot) -> None:
        """The same process, with what it had of its primary's data, is a primary from now on."""
        self.replid = self._new_id()
        self.role = "master"
        self._load(data)

    def demote(self) -> None:
        self.role = "slave"
        self._tell_identity()
