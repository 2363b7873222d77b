"""Each rule of the sequencer's scripts, broken once: the random walks must notice."""

import pytest
from redis.exceptions import RedisError

from bucketlog.log_format.errors import BucketlogError
from bucketlog.metadata.sequencer import redis_server
from bucketlog.metadata.sequencer.scripts import SequencerVerb, script_text
from tests.property.sequencer_walk import Walk
from tests.servers.sequencing import Sequencing

pytestmark = pytest.mark.long

# Each breaks one rule in the scripts' text: what is replaced, and by what.
BROKEN: dict[str, tuple[str, str]] = {
    "any settled segment frees the first of a list": ("at == 1 and left:match", "left:match"),
    "nobody is freed": ("free(freed, next_one)\n  end", "end"),
    "no dependency by partition": (
        "if record.open ~= '' then blocked = blocked + 1 end",
        "",
    ),
    "no dependency on the previous of the chain": ("me.open == '' and 0 or 1", "0"),
    "a topic entry does not touch its partitions": (
        "      touch(field, nil)\n",
        "",
    ),
    "a deletion touches no partitions": (
        "has_empty_list(found)) then",
        "true) then",
    ),
    "a topic entry does not depend on the one before it": (
        "and not topics_dirty[name] then blocked = blocked + 1 end",
        "and false then blocked = blocked + 1 end",
    ),
    "a topic entry's place in a list is a base offset": ("if base ~= NO_BASE then", "if true then"),
    "a fresh stamp is next": ("stamps[i] = record.visible_end", "stamps[i] = record.next"),
    "a stamp alone is nothing to write": ("and stamps_alone == 0 then", "then"),
    "a stamp alone touches its partition": (
        "stamps_alone = stamps_alone + 1",
        "stamps_alone = stamps_alone + 1; touch(field, nil)",
    ),
    "any seq may be fenced": ("if seq ~= me.first then return", "if false then return"),
    "a fence voids one reservation only": (
        "if tonumber(at) >= seq then",
        "if tonumber(at) == seq then",
    ),
    "a fence voids what was decided": ("if tonumber(at) >= seq then", "if true then"),
    "a fenced writer may reserve": ("if me.fenced >= 0 then return", "if false then return"),
    "a fenced writer may publish": ("if me.fenced >= 0 and seq >= me.fenced then", "if false then"),
    "a fence counts void segments as visible": (
        "{tonumber(ticket), false}",
        "{tonumber(ticket), true}",
    ),
    "nobody waits for another writer": (
        "foreign[other] = holder and",
        "foreign[other] = false and",
    ),
    "later batches of a waiting producer do not wait": ("waiting[field] = true", ""),
    "decided counts as pending": ("holder:sub(1, 1) == 'p' and", ""),
    "no topic waits": ("if current and pending_elsewhere(current[1]) then return 'wait' end", ""),
    "no control entry waits": (
        "if current and pending_elsewhere(current[1]) then status = 'wait'\n  elseif",
        "if",
    ),
    "an old producer epoch is accepted": (
        "if producer_epoch < newest[2] then return 'fenced' end",
        "",
    ),
    "a new producer epoch may start anywhere": (
        "(newest[4] + 1) % 2147483648 or 0",
        "(newest[4] + 1) % 2147483648 or first",
    ),
    "sequences do not wrap": ("(newest[4] + 1) % 2147483648 or 0", "(newest[4] + 1) or 0"),
    "unknown producers may start anywhere": (
        "if first ~= 0 then return 'unknown_producer', 0 end",
        "",
    ),
    "an open duplicate has its offset already": (
        "row[1] < 0 and 'duplicate' or 'open'",
        "'duplicate'",
    ),
    "six batches are kept": ("PRODUCER_BATCHES_KEPT = 5", "PRODUCER_BATCHES_KEPT = 6"),
    "four batches are kept": ("PRODUCER_BATCHES_KEPT = 5", "PRODUCER_BATCHES_KEPT = 4"),
    "the stamp is next": (
        "lowest_base(record.open) or base",
        "base",
    ),
    "the low ticket is one's own": ("lowest ~= '' and tonumber(lowest) or ticket", "ticket"),
    "any pending segment may be published": ("if seq ~= me.first then\n", "if false then\n"),
    "visible as soon as decided": ("if blocked ~= '0' then", "if false then"),
    "visible by the first dependency": ("if left == 0 and decided", "if decided"),
    "visible before it is decided": ("if left == 0 and decided", "if left == 0"),
    "a void producer row stays": (
        "if visible then row[1] = VISIBLE; kept[#kept + 1] = row end",
        "row[1] = VISIBLE; kept[#kept + 1] = row",
    ),
    "a void topic entry stays": (
        "elseif visible then\n        local before",
        "else\n        local before",
    ),
    "a void tail counts as visible": (
        "if visible and records[part[1]] then",
        "if records[part[1]] then",
    ),
    "a deleted topic keeps its partitions": (
        "delete_partitions(keys, version[2], had)\n",
        "\n",
    ),
    "a grown topic starts all its partitions again": (
        "add_partitions(keys, version, had,",
        "add_partitions(keys, version, 0,",
    ),
    "a group's entries do not depend on each other": (
        "blocked = blocked + (record.open == '' and 0 or 1)",
        "",
    ),
    "each of a group's entries in a segment counts": (
        "if not groups_dirty[field] then",
        "if true then",
    ),
    "any coordinator's entries are accepted": ("and record.term == term", ""),
    "a group's entry alone is nothing to write": ("and #groups_touched == 0", ""),
    "a group's entries stay open": (
        "record.open, next_one = without(record.open, ticket)\n    free(freed, next_one)\n    if",
        "if",
    ),
    "a settled entry frees nobody of its group": ("free(freed, next_one)\n    if", "if"),
    "a group forgotten with open entries stays": (
        "if record.term == NO_TERM and record.open == '' then",
        "if false then",
    ),
    "a group that is settled is forgotten": (
        "if record.term == NO_TERM and record.open == '' then",
        "if record.open == '' then",
    ),
    "a forgotten group's open entries are forgotten": (
        "= record.open ~= '' and nobodys(record.open)",
        "= false",
    ),
    "a forgotten group is coordinated still": ("nobodys(record.open)", "record"),
    "entries about tiers depend on nothing": ("enter(field, groups[field])", "'ok'"),
    "entries about tiers are a group": ("'t:'", "'g:g'"),
    "terms are counted by group": ("meta.group_term + 1", "(record.term or 0) + 1"),
    "a term is not used up": (
        "redis.call('HSET', keys.meta, 'group_term', string.format('%d', record.term))",
        "",
    ),
    "who takes a group does not learn what is open": ("tickets_of(record.open)", "{}"),
    "a repeat is reserved anew": ("if seq ~= me.next then", "if false then"),
}
SEEDS_TO_FIND = 150
WALKED = (
    SequencerVerb.RESERVE,
    SequencerVerb.PUBLISH,
    SequencerVerb.FENCE,
    SequencerVerb.TAKE_GROUP,
    SequencerVerb.FORGET_GROUP,
)


@pytest.mark.parametrize("rule", BROKEN)
async def test_a_broken_rule_is_found(
    rule: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad = BROKEN[rule]
    assert {script_text(verb).count(good) for verb in WALKED} in ({0, 1}, {1})
    monkeypatch.setattr(
        redis_server, "script_text", lambda verb: script_text(verb).replace(good, bad)
    )
    for seed in range(SEEDS_TO_FIND):
        sequencing = Sequencing(redis_url)
        try:
            await Walk(seed, sequencing).run()
        except (AssertionError, BucketlogError, pytest.fail.Exception, RedisError):
            return
        finally:
            await sequencing.close()
    pytest.fail(f"{SEEDS_TO_FIND} walks did not notice")
