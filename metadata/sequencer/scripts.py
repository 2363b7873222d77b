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
    FENCE = "fence"
    REGISTER_WRITER = "register_writer"
    OVERDUE = "overdue"
    PRODUCER_IDS = "producer_ids"
    POSITION = "position"
    VISIBLE_NUMBER = "visible_number"
    TAKE_GROUP = "take_group"
    STORE_GROUP = "store_group"
    FORGET_GROUP = "forget_group"
    LIST_GROUPS = "list_groups"
    HEARTBEAT = "heartbeat"
    LEAVE = "leave"
    CHECK_STATE = "check_state"
    ACTIVE_EPOCH = "active_epoch"
    ACTIVATE = "activate"


_PARTS: dict[Verb, tuple[str, ...]] = {
    Verb.RESERVE: ("identity", "records", "open_lists", "group_records"),
    Verb.PUBLISH: ("identity", "records", "open_lists", "group_records", "settle"),
    Verb.FENCE: ("identity", "records", "open_lists", "group_records", "settle"),
    Verb.REGISTER_WRITER: ("identity", "records"),
    Verb.OVERDUE: ("identity", "records", "open_lists"),
    Verb.PRODUCER_IDS: ("identity",),
    Verb.POSITION: ("identity",),
    Verb.VISIBLE_NUMBER: ("identity",),
    Verb.TAKE_GROUP: ("identity", "records", "open_lists", "group_records"),
    Verb.STORE_GROUP: ("identity", "records", "group_records"),
    Verb.FORGET_GROUP: ("identity", "records", "group_records"),
    Verb.LIST_GROUPS: ("identity", "group_records"),
    Verb.HEARTBEAT: ("records",),
    Verb.LEAVE: (),
    Verb.CHECK_STATE: ("identity",),
    Verb.ACTIVE_EPOCH: ("identity",),
    Verb.ACTIVATE: ("identity",),
}


def lua_source(name: str) -> str:
    return (files("metadata.sequencer") / "lua" / f"{name}.lua").read_text()


@cache
def script_text(verb: Verb) -> str:
    return lua_key_table() + "\n".join(map(lua_source, (*_PARTS[verb], verb.value)))
