"""Rules about transactions, broken."""

from tests.simulation.source_changes import Change, Mutant, one

TRANSACTION_MUTANTS: dict[str, Mutant] = {
    "txn-check": one(
        "only the pair that owns a transactional id may write",
        "transaction_records.lua",
        "if is_owner(r, producer, epoch) then return nil end",
        "if true then return nil end",
    ),
    "txn-init-aborts": one(
        "an init aborts what is open",
        "transaction_rules.lua",
        "if r.ongoing then\n    local places = judge_markers(ctx, field, r, false)",
        "if false then\n    local places = judge_markers(ctx, field, r, false)",
    ),
    "txn-init-raises": one(
        "an init raises the epoch",
        "transaction_rules.lua",
        "record.producer, record.epoch = raised(r, candidate)\n  set_next(ctx, field, r, 'init'",
        "record.producer, record.epoch = r.producer, r.epoch\n  set_next(ctx, field, r, 'init'",
    ),
    "txn-init-visible": one(
        "an init is answered when it is visible",
        "bucketlog.stateless_broker.produce.commit:Committer._flush",
        "if fact.when_reserved:",
        'if fact.when_reserved or type(fact.wanted).__name__ == "WantedInit":',
    ),
    "txn-recover": one(
        "an init leaves no usable last pair of another producer",
        "transaction_rules.lua",
        "  record.producer, record.epoch = raised(r, candidate)\n  set_next(ctx, field, r, 'init'",
        "  record.last_producer, record.last_epoch = r.producer, r.epoch\n"
        "  record.producer, record.epoch = raised(r, candidate)\n  set_next(ctx, field, r, 'init'",
    ),
    "txn-marker-depends": one(
        "a marker depends on all that is open in its partition",
        "reserve.lua",
        "touch(field, base)\n  return base, lowest or base",
        "partitions_dirty[field] = record\n  return base, lowest or base",
    ),
    "txn-carry": one(
        "an epoch begins with the transactions that the log shows open",
        "bucketlog.metadata.sequencer.staging:_is_ongoing",
        "return transactional_id in transactions.pending or",
        "return False and",
    ),
    "txn-aborted-list": one(
        "readers get the list of aborted transactions",
        "bucketlog.log_format.transactions:PartitionTransactions.aborted_in",
        "if first < end:",
        "if False:",
    ),
    "txn-stable-end": one(
        "read_committed ends at the last stable offset",
        "bucketlog.log_format.transactions:PartitionTransactions.stable_end",
        "high_watermark if first is None else min(high_watermark, max(first.first_offset, start))",
        "high_watermark",
    ),
    # One at a time -----------------------------------------------------------------------------
    "txn-open-batch": one(
        "batches and offsets wait while an init or end of their id is open",
        "transaction_records.lua",
        "if r.next then return 'wait' end",
        "",
    ),
    "txn-open-init": one(
        "an init waits while another init or an end of the id is open",
        "transaction_rules.lua",
        "if r.next then return {'wait'} end\n  if expected ~= '' then",
        "if expected ~= '' then",
    ),
    "txn-open-end": one(
        "an end waits while an init or another end of the id is open",
        "transaction_rules.lua",
        "if r.next then return {'wait'} end\n  local answer",
        "local answer",
    ),
    "txn-rollback": one(
        "a void init or end leaves the id as it was",
        "transaction_records.lua",
        "if visible then\n        redis.call('ZREM'",
        "if true then\n        redis.call('ZREM'",
    ),
    # Ends --------------------------------------------------------------------------------------
    "txn-end-epoch": one(
        "an end names the pair of its transaction",
        "transaction_rules.lua",
        "if not is_owner(r, producer, epoch) then\n    local was_last",
        "if false then\n    local was_last",
    ),
    "txn-end-raises": one(
        "an end of version 2 raises the epoch",
        "transaction_rules.lua",
        "if version >= 2 or by == 'server' then",
        "if by == 'server' then",
    ),
    "txn-server-raises": one(
        "an end by the server raises the epoch",
        "transaction_rules.lua",
        "if version >= 2 or by == 'server' then",
        "if version >= 2 then",
    ),
    "txn-held-ack": one(
        "an entry of a transactional id is acknowledged when it is visible, not at its PUT",
        "bucketlog.stateless_broker.produce.commit_steps:CommitSteps.write",
        "if created:\n",
        "if created:\n"
        "                    for fact in assembled.facts:\n"
        "                        if fact.change is not None:\n"
        "                            fact.settle(FactStatus.OK)\n",
    ),
    "txn-serial": one(
        "an end of version 1 ends the transaction that was open when it arrived, or none",
        "transaction_rules.lua",
        "if serial >= 0 and serial ~= r.serial then return {'again'} end",
        "",
    ),
    "txn-bound-open": one(
        "an end of version 1 that finds nothing open is never executed later",
        "bind_end.lua",
        "if r.ongoing and is_owner(r, producer, epoch) then",
        "if is_owner(r, producer, epoch) then",
    ),
    "txn-alive": one(
        "an end of version 1 is not executed after its broker has stood still",
        "bucketlog.stateless_broker.produce.transaction_log:TransactionLog.finish",
        "read_at if version == VERSION_1 else None",
        "None",
    ),
    "txn-forgiving": one(
        "an end of nothing ends the forgiveness for its id",
        "bind_end.lua",
        "if r.forgiving and answer[1] == 'done' and is_owner(r, producer, epoch) then",
        "if false then",
    ),
    "txn-newest": Mutant(
        "only the newest epoch gives final answers about transactional ids",
        [
            Change(
                "bucketlog.stateless_broker.produce.transaction_log:TransactionLog._told",
                "if status in FINAL and not await self._is_newest():",
                "if False:",
            ),
            Change(
                "bucketlog.stateless_broker.produce.pending_facts:settle_refused",
                "elif status in FINAL and not is_newest:",
                "elif False:",
            ),
        ],
    ),
    # Markers and offsets -----------------------------------------------------------------------
    "txn-reused": one(
        "a batch never counts as a duplicate of a batch of an earlier transaction",
        "reserve.lua",
        "  return r and row[7] and row[7] ~= r.serial",
        "  return false",
    ),
    "txn-every-marker": one(
        "an end has a marker in every partition of its transaction",
        "transaction_rules.lua",
        "for i, place in ipairs(places) do",
        "for i, place in ipairs({places[1]}) do",
    ),
    "txn-marker-topic": one(
        "an end waits while a change of one of its topics is open",
        "transaction_rules.lua",
        "if newest and ctx.pending_elsewhere(newest[1]) then return nil end",
        "",
    ),
    "txn-marker-skip": one(
        "an end has no marker in a topic that is gone",
        "transaction_rules.lua",
        "local lives = newest and not newest[4] and newest[2] == part[2] and ",
        "local lives = true or ",
    ),
    "txn-marker-batch": one(
        "a marker does not count as a batch of its producer",
        "bucketlog.metadata.fold:LogState._apply_batches",
        "and self._keep_producers and not row.attributes & CONTROL",
        "and self._keep_producers",
    ),
    "txn-outcome": one(
        "a marker has the outcome of its producer's transaction",
        "bucketlog.metadata.transactions:note_batch",
        "committed = outcomes.get(row.producer_id)",
        "committed = next(iter(outcomes.values()), None)",
    ),
    "txn-offsets-in-end": one(
        "the offsets of a transaction are committed by its commit alone",
        "bucketlog.metadata.fold:LogState._apply_transaction_fact",
        "if fact.committed:",
        "if True:",
    ),
    "txn-offsets-visible": one(
        "offsets of a transaction are answered when they are visible",
        "bucketlog.stateless_broker.produce.commit:Committer._flush",
        "if fact.when_reserved:",
        'if fact.when_reserved or type(fact.wanted).__name__ == "WantedTransactionOffsets":',
    ),
    "txn-group-key": one(
        "an end depends on all open offsets of its groups",
        "transaction_rules.lua",
        "ctx.enter(field, ctx.groups[field])",
        "",
    ),
    "txn-stable": one(
        "a fetch of stable offsets waits for those of open transactions",
        "bucketlog.consumers.offsets:GroupOffsets.fetch",
        "frozenset(self._view.pending_offsets(group_id))",
        "frozenset()",
    ),
    "txn-generation": one(
        "offsets of a transaction name the group's generation",
        "bucketlog.consumers.group:Group.check_commit",
        "error = self._refusal(identity)",
        "error = None if transactional else self._refusal(identity)",
    ),
    # Epochs and tiers --------------------------------------------------------------------------
    "txn-deadline": one(
        "an epoch begins with the timeouts of the transactions that are open",
        "bucketlog.metadata.sequencer.staging:staged_deadlines",
        "if _is_ongoing(state, each, owner)",
        "if False",
    ),
    "txn-checkpoint-open": one(
        "a checkpoint has the transactions that are open",
        "bucketlog.metadata.checkpoint_transactions:encode_transactions",
        "for producer_id, (epoch, first) in part.transactions.open.items():",
        "for producer_id, (epoch, first) in ():",
    ),
    "txn-checkpoint-pending": one(
        "a checkpoint has the offsets that are pending",
        "bucketlog.metadata.checkpoint_transactions:encode_transactions",
        "for each, groups in transactions.pending.items()",
        "for each, groups in ()",
    ),
    "txn-split-stable": one(
        "a split ends at or before the last stable offset",
        "bucketlog.tiered_storage.tier_plan:plan_split",
        "bisect_right(log.next_offsets, log.last_stable_offset)",
        "len(log.next_offsets)",
    ),
    "txn-tier-drop": one(
        "a split leaves out what is aborted",
        "bucketlog.tiered_storage.splitting:_Part.append",
        "bool(row.attributes & CONTROL) or row in self._aborted",
        "bool(row.attributes & CONTROL)",
    ),
}
