"""Compose this broker's part in transactions within an epoch: log, handlers, duties."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from bucketlog.consumers.transactional_commits import TransactionalCommits
from bucketlog.log_format.wire.messages.add_offsets_to_txn import ADD_OFFSETS_TO_TXN
from bucketlog.log_format.wire.messages.add_partitions_to_txn import ADD_PARTITIONS_TO_TXN
from bucketlog.log_format.wire.messages.describe_producers import DESCRIBE_PRODUCERS
from bucketlog.log_format.wire.messages.describe_transactions import DESCRIBE_TRANSACTIONS
from bucketlog.log_format.wire.messages.end_txn import END_TXN
from bucketlog.log_format.wire.messages.list_transactions import LIST_TRANSACTIONS
from bucketlog.log_format.wire.messages.txn_offset_commit import TXN_OFFSET_COMMIT
from bucketlog.log_format.wire.messages.write_txn_markers import WRITE_TXN_MARKERS
from bucketlog.metadata.acl_bindings import AclOperation
from bucketlog.stateless_broker.assembly.broker_parts import BrokerParts
from bucketlog.stateless_broker.assembly.consumer_groups import ConsumerGroups
from bucketlog.stateless_broker.authorization.needs import BY_RESOURCE, NeedsCluster
from bucketlog.stateless_broker.duties.transaction_timeouts import (
    TransactionalIdExpiry,
    TransactionTimeouts,
)
from bucketlog.stateless_broker.epochs.end import EpochEnd
from bucketlog.stateless_broker.handlers.audited_changes import ended_transactions
from bucketlog.stateless_broker.handlers.producers import ProducersHandler
from bucketlog.stateless_broker.handlers.transaction_admin import (
    TransactionAdminHandler,
    deny_markers,
)
from bucketlog.stateless_broker.handlers.transaction_offsets import TransactionOffsetsHandler
from bucketlog.stateless_broker.handlers.transactions import TransactionRules, TransactionsHandler
from bucketlog.stateless_broker.network.apis import Api
from bucketlog.stateless_broker.network.request_order import Ordering, State, reads
from bucketlog.stateless_broker.produce.loop_pauses import LoopPauses
from bucketlog.stateless_broker.produce.producer_ids import ProducerIds
from bucketlog.stateless_broker.produce.transaction_log import TransactionLog, TransactionTimes

TRANSACTED = State.RECORDS | State.OFFSETS | State.TRANSACTIONS
"""The state that the end of a transaction depends on, and changes."""


class TransactionParts:
    def __init__(
        self,
        broker: BrokerParts,
        *,
        end: EpochEnd,
        groups: ConsumerGroups,
        is_newest: Callable[[], Awaitable[bool]],
    ) -> None:
        settings, cluster = broker.settings, broker.cluster
        self._broker = broker
        self._end = end
        self._pauses = LoopPauses(
            settings.transaction_pause_ms_max, lambda: asyncio.get_running_loop().time()
        )
        self.producer_ids = ProducerIds(cluster.sequencer, end)
        self.log = TransactionLog(
            end=end,
            intake=broker.log.intake,
            sequencer=cluster.sequencer,
            producer_ids=self.producer_ids,
            is_newest=is_newest,
            pauses=self._pauses,
            times=TransactionTimes(
                settings.transaction_wait_ms_max, settings.transaction_request_ms_max
            ),
            counts=broker.counts.transactions,
        )
        self._commits: TransactionalCommits = groups.transactional_commits(self.log)

    def start(self, spawn: Callable[[Coroutine[Any, Any, None], str], object]) -> None:
        settings, cluster = self._broker.settings, self._broker.cluster
        if not settings.transactions:
            return
        spawn(self._pauses.run(), "the watch for pauses")
        place_in_line = cluster.membership.place_in_line
        if settings.transaction_abort_check_interval_ms:
            timeouts = TransactionTimeouts(
                epoch=self._end.epoch,
                sequencer=cluster.sequencer,
                abort=self.log.abort_overdue,
                place_in_line=place_in_line,
                interval_ms=settings.transaction_abort_check_interval_ms,
                counts=self._broker.counts.transactions,
            )
            spawn(timeouts.run(), "the timeouts of transactions")
        if settings.transactional_id_expiration_check_interval_ms:
            expiry = TransactionalIdExpiry(
                epoch=self._end.epoch,
                sequencer=cluster.sequencer,
                forget=self.log.forget,
                place_in_line=place_in_line,
                clocks=(cluster.membership.now_ms, self._broker.now_ms),
                idle_ms=settings.transactional_id_expiration_ms,
                interval_ms=settings.transactional_id_expiration_check_interval_ms,
            )
            spawn(expiry.run(), "the expiry of transactional ids")

    def handler(self, end: EpochEnd) -> TransactionsHandler:
        settings = self._broker.settings
        membership = self._broker.cluster.membership
        return TransactionsHandler(
            transactions=self.log,
            view=self._broker.log.view,
            end=end,
            is_leaving=lambda: membership.has_handed_over,
            rules=TransactionRules(
                settings.transaction_timeout_ms_max,
                settings.transactional_id_bytes_max,
                settings.transaction_partitions_max,
                settings.group_id_bytes_max,
                settings.transaction_two_phase_commit,
            ),
            turns=self._broker.turns,
        )

    def apis(self, transactions: TransactionsHandler) -> list[Api[Any, Any]]:
        offsets = TransactionOffsetsHandler(
            commits=self._commits,
            transactions=transactions,
            view=self._broker.log.view,
            metadata_bytes_max=self._broker.settings.offset_metadata_bytes_max,
            turns=self._broker.turns,
        )
        return [
            Api(
                ADD_PARTITIONS_TO_TXN,
                transactions.add_partitions,
                BY_RESOURCE,
                Ordering(State.TOPICS, State.TRANSACTIONS),
            ),
            Api(
                ADD_OFFSETS_TO_TXN,
                transactions.add_offsets,
                BY_RESOURCE,
                Ordering(State.GROUPS, State.TRANSACTIONS),
            ),
            Api(END_TXN, transactions.end, BY_RESOURCE, Ordering(TRANSACTED, TRANSACTED)),
            Api(
                TXN_OFFSET_COMMIT,
                offsets.commit,
                BY_RESOURCE,
                Ordering(
                    State.TRANSACTIONS | State.GROUPS,
                    State.TRANSACTIONS | State.GROUPS | State.OFFSETS,
                ),
            ),
            *self._admin_apis(),
        ]

    def _admin_apis(self) -> list[Api[Any, Any]]:
        broker, membership = self._broker, self._broker.cluster.membership
        admin = TransactionAdminHandler(
            transactions=self.log,
            sequencer=broker.cluster.sequencer,
            view=broker.log.view,
            end=self._end,
            is_mine=lambda each: (
                membership.transaction_coordinator_of(each).node_id == membership.me.node_id
            ),
            now_ms=membership.now_ms,
            turns=broker.turns,
        )
        producers = ProducersHandler(
            sequencer=broker.cluster.sequencer,
            view=broker.log.view,
            end=self._end,
            turns=broker.turns,
        )
        return [
            Api(
                LIST_TRANSACTIONS,
                admin.list,
                BY_RESOURCE,
                reads(State.TRANSACTIONS | State.RECORDS),
                large_answers=True,
            ),
            Api(
                DESCRIBE_TRANSACTIONS,
                admin.describe,
                BY_RESOURCE,
                reads(State.TRANSACTIONS | State.RECORDS),
                large_answers=True,
            ),
            Api(
                DESCRIBE_PRODUCERS,
                producers.describe,
                BY_RESOURCE,
                reads(State.TRANSACTIONS | State.RECORDS),
                large_answers=True,
            ),
            Api(
                WRITE_TXN_MARKERS,
                admin.write_markers,
                NeedsCluster((AclOperation.ALTER, AclOperation.CLUSTER_ACTION), deny_markers),
                Ordering(TRANSACTED, TRANSACTED),
                audit=ended_transactions,
            ),
        ]
