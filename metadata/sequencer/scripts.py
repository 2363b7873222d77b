"""The sequencer's verbs: which Lua files make a script.

Scripts are loaded by their text's SHA-1 (EVALSHA, then EVAL where the server does not know it),
so a wiped server needs no preparation.
"""

from enum import StrEnum
from functools import cache
from importlib.resources import files

from metadata.sequencer.redis_keys import lua_key_table


class Verb(StrEnum):
    RESERVE = "reserve"
    PUBLISH = "publish"
    REGISTER_WRITER = "register_writer"
    PRODUCER_IDS = "producer_ids"
    HEARTBEAT = "heartbeat"
    LEAVE = "leave"
    CHECK_STATE = "check_state"
    ACTIVATE = "activate"


_PARTS: dict[Verb, tuple[str, ...]] = {
    Verb.RESERVE: ("identity", "records"),
    Verb.PUBLISH: ("identity", "records", "settle"),
    Verb.REGISTER_WRITER: ("identity", "records"),
    Verb.PRODUCER_IDS: ("identity",),
    Verb.HEARTBEAT: (),
    Verb.LEAVE: (),
    Verb.CHECK_STATE: ("identity",),
    Verb.ACTIVATE: ("identity",),
}


def lua_source(name: str) -> str:
    return (files("metadata.sequencer") / "lua" / f"{name}.lua").read_text()


@cache
def script_text(verb: Verb) -> str:
    return lua_key_table() + "\n".join(map(lua_source, (*_PARTS[verb], verb.value)))
