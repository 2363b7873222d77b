"""Produce: slice and validate batches, pass them to the commit path, answer when all are settled.

Invariant: a request's frame stays in the memory budget until the last of its batches is settled,
even if the request was answered before. Requests with many partitions are handled and answered in
slices. `BatchValidation` validates the content of batches. Source for the checks and their codes:
Kafka's LogValidator, ReplicaManager, KafkaApis.handleProduceRequest.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kio.schema.errors import ErrorCode

from bucketlog.log_format import batch as record_batch
from bucketlog.log_format.batch import (
    BatchTooLargeError,
    InvalidBatchError,
)
from bucketlog.log_format.errors import BucketlogError, InvalidDataError, UnknownTopicError
from bucketlog.log_format.model import TopicId, TopicIdPartition, WallClock
from bucketlog.log_format.wire import produce
from bucketlog.log_format.wire.frames import FrameReader
from bucketlog.log_format.wire.plain_produce import PlainProduce
from bucketlog.metadata.acl_bindings import AclOperation
from bucketlog.metadata.fold import TopicState
from bucketlog.metadata.internal_topics import INTERNAL_TOPICS
from bucketlog.metadata.resource_configs import ResourceConfigs
from bucketlog.metadata.sequencer.transaction_requests import BatchTransaction
from bucketlog.metadata.topic_configs import MAX_MESSAGE_BYTES
from bucketlog.metadata.topic_defaults import TopicDefaults
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.authorization.authorizer import Access
from bucketlog.stateless_broker.handlers.batch_validation import (
    BatchValidation,
    UncheckedBatch,
    Verdict,
)
from bucketlog.stateless_broker.handlers.open_produce import OpenProduce, SlicedWork
from bucketlog.stateless_broker.handlers.produce_outcomes import (
    ID_NOT_AUTHORIZED,
    INTERNAL_TOPIC,
    LED_BY_OTHERS,
    MIRROR_NOT_AUTHORIZED,
    NOT_AUTHORIZED,
    UNKNOWN_ID,
    UNKNOWN_PARTITION,
    mirror_error,
    refusal_of,
)
from bucketlog.stateless_broker.handlers.topic_rules import TopicRules
from bucketlog.stateless_broker.membership.membership import Membership
from bucketlog.stateless_broker.network.apis import Request
from bucketlog.stateless_broker.network.exchange import Frame, ResponseSlot
from bucketlog.stateless_broker.network.turns import Slices
from bucketlog.stateless_broker.produce.intake import (
    TIMED_OUT,
    BatchOutcome,
    Intake,
    PendingBatch,
)

ACKS_ALL = -1
ACKS_ALLOWED = (ACKS_ALL, 0, 1)
ZSTD_SINCE_VERSION = 7
"""KIP-110."""
SMALL_PARTITIONS = 500
"""Requests with at most about this many topics and partitions are not handled in slices."""
STEP_PARTITIONS = 50
"""Larger requests are handled in steps of about this many topics and partitions."""
_TOPICS_KEPT = 10_000


@dataclass(frozen=True, slots=True)
class ProduceLimits:
    batch_decompressed_bytes_max: int
    timeout_ms_max: int
    transactions: bool
    transactional_id_bytes_max: int


class ProduceHandler:
    def __init__(
        self,
        *,
        view: View,
        validation: BatchValidation,
        intake: Intake,
        membership: Membership,
        limits: ProduceLimits,
        topic_defaults: TopicDefaults,
        now_ms: WallClock,
        sliced: SlicedWork,
    ) -> None:
        self._view = view
        self._validation = validation
        self._commit = intake.add
        self._refused = intake.refused
        self._deadlines = intake.deadlines
        self._membership = membership
        self._limits = limits
        self._topic_defaults = topic_defaults
        self._now_ms = now_ms
        self._sliced = sliced
        self._rules: dict[TopicId, TopicRules] = {}
        self._configs: ResourceConfigs | None = None
        self._configs_version = 0

    def __call__(
        self,
        request: Request,
        frame: Frame,
        reader: FrameReader,
        answer: ResponseSlot,
    ) -> None:
        try:
            body = produce.RequestReader(reader, request.header.api_version, self._name_of)
            is_small = body.read(SMALL_PARTITIONS)
        except InvalidDataError:
            frame.release()
            raise
        if not is_small:
            answer.hold_back_later_requests()
            work = self._take_large(request, frame, body, answer)
            self._sliced.spawn(work, answer)
            return
        wire = body.request()
        call = OpenProduce(request.header, wire, frame, answer, self._log_start, self._refused)
        if not wire.partitions:
            frame.release()
            call.give_up(TIMED_OUT)
            return
        rows = range(len(wire.partitions))
        refusal = self._refusal(wire, request.access)
        if refusal is not None:
            for row in rows:
                call.settle(row, refusal)
            return
        if wire.acks == 0:
            # The client sees no answer, but its later requests' answers must not wait for this one.
            answer.send([], is_settled=False)
        self._submit(call, request, wire, rows)
        self._start_timer(call, wire)

    def take_plain(
        self, request: Request, frame: Frame, body: PlainProduce, answer: ResponseSlot
    ) -> bool:
        """Queue a batch that needs no further checks. Returns False, without any effect, if
        `__call__` must take the request."""
        topic_id = None
        if isinstance(body.topic, str):
            topic = self._view.topic(body.topic)
        else:
            topic_id = body.topic
            topic = self._view.topic_by_id(topic_id)
        if (
            topic is None
            or not 0 <= body.partition < topic.partitions
            or self._membership.has_handed_over
            or not _may_write(request.access, topic.name)
            or not self._rules_of(topic).are_kept_by(body, self._now_ms())
            or not self._validation.accepts_at_once(request.connection, body.header)
        ):
            return False
        part = produce.ProducePartitionData(topic.name, body.partition, body.records, topic_id)
        wire = produce.ProduceRequest(None, body.acks, body.timeout_ms, [part])
        call = OpenProduce(request.header, wire, frame, answer, self._log_start, self._refused)
        where = TopicIdPartition(topic.topic_id, body.partition)
        self._commit(PendingBatch(topic.name, where, body.records, body.header, call, 0))
        self._start_timer(call, wire)
        return True

    async def _take_large(
        self,
        request: Request,
        frame: Frame,
        body: produce.RequestReader,
        answer: ResponseSlot,
    ) -> None:
        """Handle a large request like `__call__`, but in slices. Later requests wait for the
        response."""
        slices = Slices(self._sliced.turns)
        try:
            while not body.read(STEP_PARTITIONS):
                await slices.spend(STEP_PARTITIONS)
        except InvalidDataError as error:
            frame.release()
            answer.close(str(error))
            return
        wire = body.request()
        call = OpenProduce(
            request.header, wire, frame, answer, self._log_start, self._refused, self._sliced
        )
        count = len(wire.partitions)
        refusal = self._refusal(wire, request.access)
        for start in range(0, count, STEP_PARTITIONS):
            rows = range(start, min(start + STEP_PARTITIONS, count))
            await slices.spend(len(rows))
            if refusal is None:
                self._submit(call, request, wire, rows)
            else:
                for row in rows:
                    call.settle(row, refusal)
        if wire.acks == 0 and refusal is None:
            answer.send([], is_settled=False)
        self._start_timer(call, wire)

    def _start_timer(self, call: OpenProduce, wire: produce.ProduceRequest) -> None:
        """The timeout of the request applies to acks=all only, as in Kafka."""
        timeout_ms = self._limits.timeout_ms_max
        if wire.acks == ACKS_ALL:
            timeout_ms = min(max(wire.timeout_ms, 0), timeout_ms)
        self._deadlines.add(call, timeout_ms)

    def _name_of(self, topic_id: TopicId) -> str:
        topic = self._view.topic_by_id(topic_id)
        return "" if topic is None else topic.name

    def _refusal(self, wire: produce.ProduceRequest, access: Access) -> BatchOutcome | None:
        if wire.acks not in ACKS_ALLOWED:
            return BatchOutcome(ErrorCode.invalid_required_acks, -1, f"acks={wire.acks}")
        if wire.is_mirror and (wire.acks != ACKS_ALL or wire.transactional_id is not None):
            return BatchOutcome(ErrorCode.invalid_request, -1, "a mirror has acks=all, and no id")
        if wire.is_mirror and not access.may_on_cluster(AclOperation.CLUSTER_ACTION):
            return MIRROR_NOT_AUTHORIZED
        if wire.transactional_id is not None and not self._limits.transactions:
            return BatchOutcome(
                ErrorCode.transactional_id_authorization_failed,
                -1,
                "transactions are off (BUCKETLOG_TRANSACTIONS)",
            )
        if wire.transactional_id is not None and not access.may_id(
            AclOperation.WRITE, wire.transactional_id
        ):
            return ID_NOT_AUTHORIZED
        if wire.transactional_id is not None and not self._is_id(wire.transactional_id):
            return BatchOutcome(
                ErrorCode.invalid_request, -1, "the transactional id is empty or too long"
            )
        if self._membership.has_handed_over:
            return LED_BY_OTHERS
        return None

    def _is_id(self, transactional_id: str) -> bool:
        return 0 < len(transactional_id.encode()) <= self._limits.transactional_id_bytes_max

    def _log_start(self, topic_name: str, partition: int) -> int:
        topic = self._view.topic(topic_name)
        if topic is None or not 0 <= partition < topic.partitions:
            return -1
        return self._view.log_start(TopicIdPartition(topic.topic_id, partition))

    def _submit(
        self,
        call: OpenProduce,
        request: Request,
        wire: produce.ProduceRequest,
        rows: range,
    ) -> None:
        """Validate the batches, then commit them. Batches that are not admitted are settled."""
        now_ms = self._now_ms()
        unchecked = []
        transaction = _transaction(wire.transactional_id, call.version)
        is_mirror = wire.is_mirror
        for row in rows:
            part = wire.partitions[row]
            is_known = bool(part.topic) or part.topic_id is None
            if is_known and not request.access.may_topic(AclOperation.WRITE, part.topic):
                call.settle(row, NOT_AUTHORIZED)
                continue
            try:
                unchecked.append(
                    self._admit(part, call, row, now_ms, transaction, is_mirror=is_mirror)
                )
            except UnknownTopicError:
                call.settle(row, self._not_found(part))
            except InvalidDataError as error:
                call.settle(row, refusal_of(error))
        if unchecked:
            self._validation.submit(
                request.connection,
                unchecked,
                lambda verdicts: self._commit_checked(unchecked, verdicts),
            )

    def _not_found(self, part: produce.ProducePartitionData) -> BatchOutcome:
        if part.topic in INTERNAL_TOPICS:
            return INTERNAL_TOPIC
        if part.topic_id is not None and self._view.topic_by_id(part.topic_id) is None:
            return UNKNOWN_ID
        return UNKNOWN_PARTITION

    def _commit_checked(
        self, batches: Sequence[UncheckedBatch], verdicts: Sequence[Verdict]
    ) -> None:
        for batch, verdict in zip(batches, verdicts, strict=True):
            pending = batch.pending
            if isinstance(verdict, BucketlogError):
                pending.settle(refusal_of(verdict))
            elif verdict is None:
                pending.settle(
                    BatchOutcome(ErrorCode.unknown_server_error, -1, "the batch was not checked")
                )
            else:
                pending.header = verdict
                self._commit(pending)

    def _admit(
        self,
        part: produce.ProducePartitionData,
        call: OpenProduce,
        row: int,
        now_ms: int,
        transaction: BatchTransaction | None,
        *,
        is_mirror: bool,
    ) -> UncheckedBatch:
        """The batch with its topic's rules. Raises `InvalidDataError` if the topic does not exist,
        or the bytes are not exactly one batch within the topic's size limit."""
        topic = self._view.topic(part.topic)
        if topic is None or not 0 <= part.partition < topic.partitions:
            raise UnknownTopicError("the partition does not exist")
        if part.topic_id is not None and part.topic_id != topic.topic_id:
            raise UnknownTopicError("the topic was deleted, and created again")
        data = part.records
        if data is None or not len(data):
            raise InvalidBatchError("no records")
        header = record_batch.read_header(data)
        if header.size_bytes != len(data):
            raise InvalidBatchError(
                f"{len(data)} bytes of records are not exactly one batch of {header.size_bytes}"
            )
        rules = self._rules_of(topic)
        if is_mirror != bool(rules.mirror_source):
            raise mirror_error(part.topic, rules.mirror_source)
        where = TopicIdPartition(topic.topic_id, part.partition)
        if is_mirror:
            placed = PendingBatch(topic.name, where, data, header, call, row, is_placed=True)
            return UncheckedBatch(placed, rules.of_mirror, True, None)
        if len(data) > rules.batch_bytes_max:
            raise BatchTooLargeError(
                f"a batch of {len(data)} bytes is too large: {MAX_MESSAGE_BYTES} of {part.topic!r} "
                f"is {rules.batch_bytes_max}"
            )
        if rules.has_append_time:
            call.note_append_time(row, now_ms)
        return UncheckedBatch(
            PendingBatch(
                topic.name,
                where,
                data,
                header,
                call,
                row,
                transaction,
            ),
            rules.records(now_ms),
            call.version >= ZSTD_SINCE_VERSION,
            now_ms if rules.has_append_time else None,
            rules.encrypted_by,
            rules.compression,
        )

    def _rules_of(self, topic: TopicState) -> TopicRules:
        configs = self._view.resource_configs
        if configs is not self._configs or configs.version != self._configs_version:
            self._configs, self._configs_version = configs, configs.version
            self._rules.clear()  # defaults of topics may have changed
        rules = self._rules.get(topic.topic_id)
        if rules is None or rules.topic is not topic:  # new topic or changed configs
            if len(self._rules) >= _TOPICS_KEPT:
                self._rules.clear()
            rules = TopicRules(
                topic, self._topic_defaults, self._limits.batch_decompressed_bytes_max
            )
            self._rules[topic.topic_id] = rules
        return rules


def _may_write(access: Access, topic: str) -> bool:
    """Return whether the client may write to the topic. A denied right is not reported."""
    return access.authorizer is None or access.quiet.may_topic(AclOperation.WRITE, topic)


def _transaction(transactional_id: str | None, version: int) -> BatchTransaction | None:
    if transactional_id is None:
        return None
    return BatchTransaction(
        transactional_id,
        2 if version >= produce.TRANSACTION_VERSION_2_FROM else 1,
        version >= produce.ABORTABLE_KNOWN_FROM,
    )
