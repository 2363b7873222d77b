"""The broker's settings for transactions: a part of `BrokerSettings`."""

from pydantic import Field
from pydantic_settings import BaseSettings

from bucketlog.metadata.sequencer.transaction_requests import TransactionLimits
from bucketlog.stateless_broker.settings.types import NotNegative, Positive


class TransactionSettings(BaseSettings):
    transactions: bool = Field(
        False,
        description="Whether clients may use transactions. Turn it on when all brokers of the "
        "cluster, and all other readers of the bucket, know transactions.",
    )
    transaction_two_phase_commit: bool = Field(
        False,
        description="transaction.two.phase.commit.enable: whether clients may use two-phase commit "
        "(KIP-939). Its transactions have no timeout and outlive their producer. Turn it on when "
        "all brokers of the cluster, and all other readers of the bucket, support two-phase "
        "commit.",
    )
    transaction_timeout_ms_max: Positive = Field(900_000, description="transaction.max.timeout.ms")
    transactional_id_expiration_ms: Positive = Field(
        604_800_000,
        description="transactional.id.expiration.ms: an id without a transaction for this time is "
        "forgotten.",
    )
    transaction_abort_check_interval_ms: NotNegative = Field(
        2_000,
        description="transaction.abort.timed.out.transaction.cleanup.interval.ms; 0: this broker "
        "never looks.",
    )
    transactional_id_expiration_check_interval_ms: NotNegative = Field(
        3_600_000,
        description="transaction.remove.expired.transaction.cleanup.interval.ms; 0: this broker "
        "never looks.",
    )
    transaction_wait_ms_max: NotNegative = Field(
        5_000,
        description="How long a request waits while another entry of its transactional id is on "
        "the way into the log. Then the client gets CONCURRENT_TRANSACTIONS and asks again.",
    )
    transaction_request_ms_max: Positive = Field(
        30_000,
        description="How long InitProducerId, EndTxn and TxnOffsetCommit may take. Then the client "
        "asks again.",
    )
    transaction_pause_ms_max: Positive = Field(
        1_000,
        description="An InitProducerId, or an EndTxn or TxnOffsetCommit of version 1, is not "
        "executed if the broker stood still for longer than this since it read the request.",
    )
    transaction_partitions_max: Positive = Field(
        1_000, description="Limit of the partitions of a transaction."
    )
    transaction_groups_max: Positive = Field(
        100, description="Limit of the consumer groups whose offsets are in a transaction."
    )
    transaction_offset_rows_max: Positive = Field(
        10_000,
        description="Limit of the offsets in a transaction. Each 128 bytes of metadata count as "
        "one more offset.",
    )
    transactional_ids_max: Positive = Field(
        100_000,
        description="Limit of transactional ids in the cluster. At the limit, a new id is refused "
        "(POLICY_VIOLATION).",
    )
    transaction_names_bytes_max: Positive = Field(
        268_435_456,
        description="Limit of the names of partitions and groups in all transactions "
        "together, which Redis keeps until they end. At the limit, no partition or group is "
        "added.",
    )
    transactional_id_bytes_max: Positive = Field(1_024, description="Limit of a transactional id.")

    @property
    def transaction_limits(self) -> TransactionLimits:
        return TransactionLimits(
            partitions=self.transaction_partitions_max,
            groups=self.transaction_groups_max,
            offset_rows=self.transaction_offset_rows_max,
            ids=self.transactional_ids_max,
            name_bytes=self.transaction_names_bytes_max,
        )
