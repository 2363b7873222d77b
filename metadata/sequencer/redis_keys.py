"""All keys that bucketlog keeps in Redis: name, type, owner, lifetime (docs/format/redis.md).

All keys of a shard share one hash tag, hence one slot: `bucketlog:{<cluster id>/<shard>}:<name>`.
Every script gets all of them in the order declared here. None has an expiry: scripts decide what is
old, by the time that they are given. All keys except `brokers` live from an epoch's activation to
the next one.
"""

from typing import NamedTuple


class RedisKey(NamedTuple):
    name: str
    redis_type: str
    content: str


KEYS: tuple[RedisKey, ...] = (
    RedisKey("meta", "hash", "epoch, run_id, replid, next ticket, last visible number, next ids"),
    RedisKey("topics", "hash", "topic name -> versions [ticket, topic id, partitions, deleted]"),
    RedisKey("partitions", "hash", "topic id:partition -> next, visible_end, log_start, open"),
    RedisKey("producers", "hash", "producer id:topic id:partition -> open and last five batches"),
    RedisKey("writers", "hash", "writer -> first pending, next, open, fenced, heartbeat"),
    RedisKey("reservations", "hash", "ticket -> what was reserved; dropped once visible or void"),
    RedisKey("holders", "hash", "ticket -> p (pending) or d (decided), then the writer"),
    RedisKey("blocked", "hash", "ticket -> in how many open lists it is not the first"),
    RedisKey("indexes", "hash", "ticket -> index of a decided segment, until it is visible"),
    RedisKey("open", "sorted set", "tickets neither visible nor void"),
    RedisKey("visible", "stream", "visible segments, in order; feeds the brokers' views"),
    RedisKey("groups", "hash", "group -> term, owner, revision, state, protocol type, open"),
    RedisKey("group_snapshots", "hash", "group -> snapshot of its members, as it was last stored"),
    RedisKey(
        "txns", "hash", "transactional id -> owner, last transaction, open entry, ongoing one"
    ),
    RedisKey("txn_parts", "hash", "transactional id -> partitions of its ongoing transaction"),
    RedisKey("txn_deadlines", "sorted set", "transactional id -> when its transaction times out"),
    RedisKey("nonces", "set", "one-use nonces of claimed epochs that are not active yet"),
    RedisKey("brokers", "hash", "node id -> incarnation, heartbeat, address"),
)

ALWAYS_THERE = tuple(
    key.name
    for key in KEYS
    if key.redis_type in ("hash", "sorted set") and key.name not in ("meta", "brokers")
)
"""Keys that hold an empty field (of the sorted set: an empty member, last) from an activation on,
so that a key that was lost is never taken for an empty one."""

STAGED = ("topics", "partitions", "producers", "txns", "txn_parts", "txn_deadlines")
"""The keys that an activation loads beforehand, under `staged:<attempt>:<name>`."""


def key_prefix(cluster_id: str, shard: int) -> str:
    return f"bucketlog:{{{cluster_id}/{shard}}}:"


def lua_key_table() -> str:
    """The Lua prelude that gives the keys their names."""
    names = ", ".join(f"'{key.name}'" for key in KEYS)
    always = ", ".join(f"'{name}'" for name in ALWAYS_THERE)
    staged = ", ".join(f"'{name}'" for name in STAGED)
    sorted_sets = ", ".join(f"{key.name} = true" for key in KEYS if key.redis_type == "sorted set")
    return (
        f"local KEY_NAMES = {{{names}}}\n"
        f"local ALWAYS_THERE = {{{always}}}\n"
        f"local STAGED = {{{staged}}}\n"
        f"local SORTED_SETS = {{{sorted_sets}}}\n"
        "local function keys_by_name(given)\n"
        "  local named = {}\n"
        "  for i, name in ipairs(KEY_NAMES) do named[name] = given[i] end\n"
        "  return named\n"
        "end\n"
    )
