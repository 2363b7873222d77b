"""Each rule of the protocol, broken: what the simulation must catch."""

from tests.simulation.source_changes import Change, Mutant, one
from tests.simulation.tier_mutants import TIER_MUTANTS
from tests.simulation.transaction_mutants import TRANSACTION_MUTANTS

NO_LOOK_AT_CLAIMS = Change(
    "bucketlog.stateless_broker.epochs.claim_watch:ClaimWatch.check",
    "if claimed > self._epoch:",
    "if False:",
)

MUTANTS: dict[str, Mutant] = {
    # Reserve -----------------------------------------------------------------------------------
    "wait": one(
        "a batch whose producer's previous one is pending at another writer waits",
        "reserve.lua",
        "if pending_elsewhere(newest[1]) then",
        "if false then",
    ),
    "topic-wait": Mutant(
        "an entry or batch that builds on another writer's pending topic entry waits",
        [
            Change(
                "reserve.lua",
                "if current and pending_elsewhere(current[1]) then status",
                "if false then status",
            ),
            Change(
                "reserve.lua",
                "if current and pending_elsewhere(current[1]) then return 'wait' end",
                "",
            ),
        ],
    ),
    "dependencies": Mutant(
        "a segment depends on all earlier open ones that touch its partitions",
        [
            Change(
                "reserve.lua",
                "if record.open ~= '' then blocked = blocked + 1 end",
                "",
            ),
            Change(
                "settle.lua",
                "record.open, next_one = without(record.open, ticket)\n    free(freed, next_one)\n"
                "  end\n  for _, part",
                "record.open, next_one = without(record.open, ticket)\n  end\n  for _, part",
            ),
        ],
    ),
    "stamp-open": one(
        "a hw stamp is the lowest open base offset",
        "reserve.lua",
        "stamps[i] = lowest_base(record.open) or base",
        "stamps[i] = base",
    ),
    "stamp-next": one(
        "a stamp of a partition that gets no batches is the high watermark shown, never `next`",
        "reserve.lua",
        "stamps[i] = record.visible_end",
        "stamps[i] = record.next",
    ),
    "low-ticket": one(
        "the low ticket is the lowest one neither visible nor void",
        "reserve.lua",
        "lowest ~= '' and tonumber(lowest) or ticket, stamps",
        "ticket, stamps",
    ),
    "open-duplicate": one(
        "a duplicate of an open batch waits for its outcome",
        "reserve.lua",
        "row[1] < 0 and 'duplicate' or 'open'",
        "'duplicate'",
    ),
    "first-sequence": one(
        "without producer state only sequence 0 is accepted",
        "reserve.lua",
        "if first ~= 0 then return 'unknown_producer', 0 end",
        "",
    ),
    "producer-ids": one(
        "producer ids carry their epoch: none is given twice",
        "bucketlog.metadata.sequencer.client:Sequencer.producer_ids",
        "producer_id(epoch, int(rest[0]))",
        "int(rest[0])",
    ),
    "group-term": one(
        "offsets are committed by the coordinator that took the group last",
        "reserve.lua",
        "return coordinates(record, term) and enter(group, record) or 'not_coordinator'",
        "return record and enter(group, record) or 'not_coordinator'",
    ),
    "group-unsettled": one(
        "a coordinator waits for what earlier ones had reserved",
        "bucketlog.consumers.offsets:GroupOffsets._settle",
        "while held.unsettled:",
        "while False:",
    ),
    # Write -------------------------------------------------------------------------------------
    "create-only": one(
        "whoever creates a key first decides it",
        "tests.simulation.bucket:Store.create",
        "if key in self.objects:",
        "if False:",
    ),
    "compare": one(
        "a refused PUT is ours only if the bytes are",
        "bucketlog.stateless_broker.produce.commit_steps:CommitSteps.write",
        'if body.data != b"".join(assembled.parts):',
        "if False:",
    ),
    # Publish -----------------------------------------------------------------------------------
    "chain-order": Mutant(
        "segments are published in chain order, the first pending alone",
        [
            Change(
                "bucketlog.stateless_broker.produce.commit:Committer._write_and_publish",
                "if before is not None and not before.done():",
                "if False:",
            ),
            Change("publish.lua", "if seq ~= me.first then", "if false then"),
        ],
    ),
    "cascade": one(
        "a decided segment is visible once its dependencies are settled",
        "publish.lua",
        "if blocked ~= '0' then",
        "if false then",
    ),
    # Acknowledge -------------------------------------------------------------------------------
    "held-acks": one(
        "what is held when an epoch ends counts if the next one's chains have it",
        "bucketlog.stateless_broker.produce.unsettled:UnsettledWork.settle",
        "elif seq < end:",
        "elif True:",
    ),
    "newest": one(
        "only the newest epoch answers that offsets are out of range or out of order, and which"
        " offsets are committed",
        "bucketlog.stateless_broker.assembly.epoch_work:EpochWork._is_newest",
        "is None",
        "is not False",
    ),
    # Seal --------------------------------------------------------------------------------------
    "seal-before-fence": one(
        "a reservation is void only when its key is sealed",
        "bucketlog.stateless_broker.epochs.sealing:segment_or_seal",
        "if await bucket.create(key, [encode_seal(Seal(segment, epoch, now_ms))]):",
        "if await bucket.head(key) is None:",
    ),
    "fence-rollback": one(
        "a fence rolls producer state back",
        "settle.lua",
        "if visible then row[1] = VISIBLE; kept[#kept + 1] = row end",
        "row[1] = VISIBLE; kept[#kept + 1] = row",
    ),
    "fence-first": Mutant(
        "a fence is at the seal, which is at the first pending segment",
        [
            Change(
                "bucketlog.stateless_broker.epochs.sealing:Sealer._close",
                "fence = await self._sequencer.fence(self._epoch, segment)",
                "fence = await self._sequencer.fence(self._epoch, first)",
            ),
            Change("fence.lua", "if seq ~= me.first then", "if false then"),
        ],
    ),
    "fresh-stamps": one(
        "if no stamp reaches the end of a gap, a broker writes one",
        "bucketlog.stateless_broker.produce.fresh_stamps:FreshStamps.due",
        "if not gaps:",
        "if True:",
    ),
    "stamps-in-turn": one(
        "if the brokers before it write no stamp, the next broker in line does",
        "bucketlog.stateless_broker.produce.fresh_stamps:FreshStamps.due",
        "self._rounds[partition] >= patience",
        "patience == 0",
    ),
    # Epochs ------------------------------------------------------------------------------------
    "identity": one(
        "run_id alone is not the identity",
        "identity.lua",
        "if meta[2] ~= run_id or meta[3] ~= replid then",
        "if meta[2] ~= run_id then",
    ),
    "missing-key": one(
        "a missing key is never read as an empty one",
        "identity.lua",
        "if redis.call('EXISTS', unpack(always)) ~= #always then",
        "if false then",
    ),
    "nonce": one(
        "an activation uses up its nonce",
        "activate.lua",
        "if redis.call('SISMEMBER', keys.nonces, ARGV[2]) == 0 then",
        "if false then",
    ),
    "upwards": one(
        "an activation is of a higher epoch",
        "activate.lua",
        "if current and current >= epoch then",
        "if false then",
    ),
    "claimed-server": one(
        "an activation is for the server that was claimed for",
        "activate.lua",
        "if run_id ~= ARGV[3] or replid ~= ARGV[4] then",
        "if false then",
    ),
    "claim-alone": one(
        "an epoch is claimed by one broker",
        "bucketlog.stateless_broker.epochs.activation:EpochStarter.start",
        "if not await self._claim(epoch, identity, nonce):",
        "if not await self._claim(epoch, identity, nonce) and False:",
    ),
    "claim-first": Mutant(
        "who claims an epoch claims, then lists writers",
        [
            Change(
                "bucketlog.stateless_broker.epochs.activation:EpochStarter.start",
                "if not await self._claim(epoch, identity, nonce):",
                "log = await self._sealed_log(epoch)\n"
                "        if not await self._claim(epoch, identity, nonce):",
            ),
            Change(
                "bucketlog.stateless_broker.epochs.activation:EpochStarter.start",
                '        logger.info("epoch %d is claimed", epoch)\n'
                "        log = await self._sealed_log(epoch)\n",
                "",
            ),
        ],
    ),
    "register-check": Mutant(
        "a writer registers, then checks that no higher epoch is claimed",
        [
            Change(
                "bucketlog.stateless_broker.epochs.activation:EpochStarter.register_writer",
                "if highest > epoch:",
                "if False:",
            ),
        ],
        [NO_LOOK_AT_CLAIMS],  # else it finds out before it publishes
    ),
    "claims-looked-at": Mutant("who publishes has looked at the claims", [NO_LOOK_AT_CLAIMS]),
    "works-elsewhere": one(
        "an epoch that works on another Redis is left alone if as many brokers or more are there",
        "bucketlog.stateless_broker.epochs.takeover:Takeover.reason_to_wait",
        "if self._looks >= self._limits.looks_min and silent_s >= self._quiet_s(self._lost.count):",
        "if True:",
    ),
    "more-brokers": one(
        "if more brokers are here than in an epoch on another Redis, they take the log from it",
        "bucketlog.stateless_broker.epochs.takeover:Takeover.reason_to_wait",
        "if found.here > found.there:",
        "if False:",
    ),
    "leaves-what-works": one(
        "a broker that alone loses its server does not leave an epoch that works for others",
        "bucketlog.stateless_broker.epochs.server_choice:Outage.note_signs",
        "elif signs.shows_work_since(earlier, own=self._own):",
        "elif False:",
    ),
    "gives-back": one(
        "the broker that runs the Valkey moves the log back when the configured Redis is steady",
        "bucketlog.stateless_broker.epochs.server_watch:ServerWatch._look_back",
        "if await self._servers.may_return():",
        "if False:",
    ),
    "seal-all": one(
        "all writers of earlier epochs are sealed before the fold",
        "bucketlog.stateless_broker.epochs.activation:EpochStarter._seal",
        "while not chain.sealed:",
        "while False:",
    ),
    "checkpoint-again": Mutant(
        "checkpoints are listed again after the seals",
        [
            Change(
                "bucketlog.stateless_broker.epochs.activation:EpochStarter._sealed_log",
                "newer = await self._committed.checkpoint(unless=checkpoint)",
                "newer = None",
            ),
        ],
        [NO_LOOK_AT_CLAIMS],  # else nobody writes on until chains go
    ),
    "producers-folded": one(
        "a new epoch knows what producers have written",
        "bucketlog.metadata.fold:LogState._apply_batches",
        "self._note_producer(state, row)",
        "pass",
    ),
    "producers-idle": one(
        "a checkpoint forgets only producers that have not written for long",
        "bucketlog.metadata.producers:IdleLimit.since_ms",
        "clock.now_ms) - self.idle_ms",
        "clock.now_ms)",
    ),
    # Checkpoints and readers -------------------------------------------------------------------
    "checkpoint-cut": one(
        "a checkpoint is cut at a low ticket of the first pass",
        "bucketlog.tiered_storage.checkpoint_cut:low_ticket",
        "index.low_ticket) for",
        "index.ticket.number) for",
    ),
    "two-passes": one(
        "a reader of the bucket alone lists twice, and crosses gaps by the first pass' stamps",
        "bucketlog.tiered_storage.log_cut_reading:LogReader._read_once",
        "snapshot = cut_log(first, second, self._footers, checkpoint)",
        "snapshot = cut_log(second, second, self._footers, checkpoint)",
    ),
    "gaps": one(
        "a reader of the bucket alone stops at a gap that no stamp reaches past",
        "bucketlog.tiered_storage.log_cut:_walk",
        "if base > end and base > stamp:",
        "if False:",
    ),
}
MUTANTS |= TIER_MUTANTS | TRANSACTION_MUTANTS
