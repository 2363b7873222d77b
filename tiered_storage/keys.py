"""All keys of the bucket, in one place (docs/format/segment.md, "Keys").

Keys are relative to the shard's root `<prefix>/<shard>/`. Numbers have 20 zero-padded digits, so
that the order of the text is the order of the numbers. No order of a *listing* is trusted.
"""

from bucketlog.log_format.errors import InvalidDataError
from bucketlog.log_format.model import (
    SegmentId,
    StoredObject,
    Ticket,
    TierObject,
    TopicId,
    TopicIdPartition,
    WriterId,
)

DIGITS = 20
EPOCH_MAX = 2**23 - 1
"""Producer ids begin with the epoch, and have 63 bits: 40 are left to a counter."""
WRITER_DIGITS = 32
TOPIC_DIGITS = 32
TIER_DIGITS = 16
_HEX = frozenset("0123456789abcdef")
CLUSTER = "cluster.json"
EPOCHS = "epochs/"
WRITERS = "writers/"
LOG = "log/"
CHECKPOINTS = "checkpoints/"
FLOORS = "floors/"
SEGMENTS = "segments/"
MANIFESTS = "manifests/"
PROBES = "probes/"


def number(value: int) -> str:
    return f"{value:0{DIGITS}d}"


def epoch_claim(epoch: int) -> str:
    """Return the key of an epoch's claim. Raises `InvalidDataError` for an epoch that no reader
    would accept."""
    if epoch > EPOCH_MAX:
        raise InvalidDataError(
            f"there is no epoch after {EPOCH_MAX}",
            remedy=f"delete the claims under {EPOCHS!r} that no broker wrote",
        )
    return f"{EPOCHS}{number(epoch)}"


def writer_registration(epoch: int, writer: WriterId) -> str:
    return f"{WRITERS}{number(epoch)}/{writer}"


def segment(segment_id: SegmentId) -> str:
    return f"{LOG}{segment_id.writer}/{number(segment_id.seq)}"


def before(segment_id: SegmentId) -> str:
    """Return the key after which to list a chain, to see the chain from this segment on."""
    at = segment_id.seq
    return segment(SegmentId(segment_id.writer, at - 1)) if at else ""


def chain(writer: WriterId) -> str:
    return f"{LOG}{writer}/"


def checkpoint(ticket: Ticket) -> str:
    return f"{CHECKPOINTS}{_ticket(ticket)}"


def floor(ticket: Ticket) -> str:
    return f"{FLOORS}{_ticket(ticket)}"


def tier_name(planned: Ticket, identifier: str) -> str:
    """Return the name of a tier object whose job was planned below that ticket; `identifier` is 16
    hexadecimal digits."""
    return f"{_ticket(planned)}-{identifier}"


def tier_object(there: TierObject) -> str:
    kind = MANIFESTS if there.manifest else SEGMENTS
    return f"{tier_of(kind, there.partition)}{number(there.start)}-{there.name}"


def object_key(there: StoredObject) -> str:
    return segment(there) if isinstance(there, SegmentId) else tier_object(there)


def tier_of(kind: str, partition: TopicIdPartition) -> str:
    """The prefix of a partition's segments or manifests."""
    return f"{kind}{partition.topic_id.hex()}/{number(partition.partition)}/"


def parse_tier_object(key: str) -> TierObject:
    kind = MANIFESTS if key.startswith(MANIFESTS) else SEGMENTS
    topic_id, partition, name = _parts(key, kind, 3)
    start, _, rest = name.partition("-")
    planned_below(rest, key)
    if len(topic_id) != TOPIC_DIGITS or not _HEX.issuperset(topic_id):
        raise InvalidDataError(
            f"unexpected key {key!r}: {topic_id!r} is not a topic's {TOPIC_DIGITS} hexadecimal "
            "digits",
            remedy="keep other objects out of the log",
        )
    there = TopicIdPartition(TopicId(bytes.fromhex(topic_id)), _number(partition, key))
    return TierObject(there, _number(start, key), rest, kind == MANIFESTS)


def planned_below(name: str, key: str) -> Ticket:
    """The ticket in a tier object's name. Raises `InvalidDataError`."""
    epoch, _, rest = name.partition("-")
    at, _, identifier = rest.partition("-")
    if len(identifier) != TIER_DIGITS or not _HEX.issuperset(identifier):
        raise InvalidDataError(
            f"unexpected key {key!r}: {name!r} is not a name of a tier's object",
            remedy="keep other objects out of the log",
        )
    return Ticket(_epoch(epoch, key), _number(at, key))


def _ticket(ticket: Ticket) -> str:
    return f"{number(ticket.epoch)}-{number(ticket.number)}"


def _parts(key: str, prefix: str, count: int) -> list[str]:
    parts = key[len(prefix) :].split("/") if key.startswith(prefix) else []
    if len(parts) != count or not all(parts):
        raise InvalidDataError(
            f"unexpected key {key!r} under {prefix!r}", remedy="keep other objects out of the log"
        )
    return parts


def _number(text: str, key: str) -> int:
    if len(text) != DIGITS or not (text.isascii() and text.isdigit()):
        raise InvalidDataError(
            f"unexpected key {key!r}: {text!r} is not a {DIGITS}-digit number",
            remedy="keep other objects out of the log",
        )
    return int(text)


def _epoch(text: str, key: str) -> int:
    epoch = _number(text, key)
    if epoch > EPOCH_MAX:
        raise InvalidDataError(
            f"unexpected key {key!r}: no log has had more than {EPOCH_MAX} epochs",
            remedy="keep other objects out of the log",
        )
    return epoch


def parse_epoch_claim(key: str) -> int:
    (epoch,) = _parts(key, EPOCHS, 1)
    return _epoch(epoch, key)


def parse_writer_registration(key: str) -> tuple[int, WriterId]:
    epoch, writer = _parts(key, WRITERS, 2)
    if len(writer) != WRITER_DIGITS or not _HEX.issuperset(writer):
        raise InvalidDataError(
            f"unexpected key {key!r}: {writer!r} is not a writer's {WRITER_DIGITS} hexadecimal "
            "digits",
            remedy="keep other objects out of the log",
        )
    return _epoch(epoch, key), WriterId(writer)


def parse_segment(key: str) -> SegmentId:
    writer, seq = _parts(key, LOG, 2)
    return SegmentId(WriterId(writer), _number(seq, key))


def parse_checkpoint(key: str) -> Ticket:
    return _parse_ticket(key, CHECKPOINTS)


def parse_floor(key: str) -> Ticket:
    return _parse_ticket(key, FLOORS)


def _parse_ticket(key: str, prefix: str) -> Ticket:
    (name,) = _parts(key, prefix, 1)
    epoch, _, at = name.partition("-")
    return Ticket(_number(epoch, key), _number(at, key))
