"""The sequencer's verbs: which Lua files make a script.

Scripts are loaded by their text's SHA-1 (EVALSHA, then EVAL where the server does not know it),
so a wiped server needs no preparation.
"""

from enum import StrEnum
from functools import cache
from importlib.resources import files

from bucketlog.metadata.sequencer.redis_keys import lua_key_table


class SequencerVerb(StrEnum):
    RESERVE = "reserve"
    PUBLISH = "publish"
    FENCE = "fence"
    REGISTER_WRITER = "register_writer"
    OVERDUE = "overdue"
    PRODUCER_IDS = "producer_ids"
    FORGET_PRODUCERS = "forget_producers"
    POSITION = "position"
    VISIBLE_NUMBER = "visible_number"
    TAKE_GROUP = "take_group"
    STORE_GROUP = "store_group"
    FORGET_GROUP = "forget_group"
    LIST_GROUPS = "list_groups"
    HEARTBEAT = "heartbeat"
    LEAVE = "leave"
    ADD_TO_TRANSACTION = "add_to_transaction"
    BIND_END = "bind_end"
    OVERDUE_TRANSACTIONS = "overdue_transactions"
    IDLE_TRANSACTIONAL_IDS = "idle_transactional_ids"
    LIST_TRANSACTIONS = "list_transactions"
    DESCRIBE_TRANSACTIONS = "describe_transactions"
    LIST_PRODUCERS = "list_producers"
    CHECK_STATE = "check_state"
    ACTIVE_EPOCH = "active_epoch"
    ACTIVATE = "activate"


WHEN_FULL = "write_when_full"
_TRANSACTIONS = ("identity", "records", "open_lists", "group_records", "transaction_records")
_PARTS: dict[SequencerVerb, tuple[str, ...]] = {
    SequencerVerb.RESERVE: (*_TRANSACTIONS, "transaction_rules"),
    SequencerVerb.PUBLISH: (WHEN_FULL, *_TRANSACTIONS, "settle"),
    SequencerVerb.FENCE: (WHEN_FULL, *_TRANSACTIONS, "settle"),
    SequencerVerb.REGISTER_WRITER: ("identity", "records"),
    SequencerVerb.OVERDUE: ("identity", "records", "open_lists"),
    SequencerVerb.PRODUCER_IDS: ("identity",),
    SequencerVerb.FORGET_PRODUCERS: ("identity", "records"),
    SequencerVerb.POSITION: ("identity",),
    SequencerVerb.VISIBLE_NUMBER: ("identity",),
    SequencerVerb.TAKE_GROUP: ("identity", "records", "open_lists", "group_records"),
    SequencerVerb.STORE_GROUP: ("identity", "records", "group_records"),
    SequencerVerb.FORGET_GROUP: ("identity", "records", "group_records"),
    SequencerVerb.LIST_GROUPS: ("identity", "group_records"),
    SequencerVerb.HEARTBEAT: (WHEN_FULL, "identity", "records", "lifelines"),
    SequencerVerb.LEAVE: ("lifelines",),
    SequencerVerb.ADD_TO_TRANSACTION: _TRANSACTIONS,
    SequencerVerb.BIND_END: (*_TRANSACTIONS, "transaction_rules"),
    SequencerVerb.OVERDUE_TRANSACTIONS: _TRANSACTIONS,
    SequencerVerb.IDLE_TRANSACTIONAL_IDS: (*_TRANSACTIONS, "transaction_rules"),
    SequencerVerb.LIST_TRANSACTIONS: (*_TRANSACTIONS, "transaction_listing"),
    SequencerVerb.DESCRIBE_TRANSACTIONS: (*_TRANSACTIONS, "transaction_listing"),
    SequencerVerb.LIST_PRODUCERS: ("identity",),
    SequencerVerb.CHECK_STATE: ("identity",),
    SequencerVerb.ACTIVE_EPOCH: ("identity",),
    SequencerVerb.ACTIVATE: ("identity",),
}


def lua_source(name: str) -> str:
    return (files("bucketlog.metadata.sequencer") / "lua" / f"{name}.lua").read_text()


@cache
def script_text(verb: SequencerVerb) -> str:
    return lua_key_table() + "\n".join(map(lua_source, (*_PARTS[verb], verb.value)))
