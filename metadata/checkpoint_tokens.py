"""The delegation tokens in a checkpoint's state, for version 8. Pure.

This part follows the state of version 7 (docs/format/checkpoint.md). A checkpoint has it only if
the log has tokens. Their secrets are not here, as they are not in the log.
"""

import struct

from bucketlog.metadata.checkpoint_bytes import COUNT, StateReader, binary, text_bytes
from bucketlog.metadata.delegation_tokens import DelegationToken, TokenIdentity
from bucketlog.metadata.fold import LogState

_TOKEN = struct.Struct(">qqqI")


def has_tokens(state: LogState) -> bool:
    return bool(state.delegation_tokens.by_id)


def encode_tokens(state: LogState) -> list[bytes]:
    tokens = state.delegation_tokens.by_id.values()
    pieces = [COUNT.pack(len(tokens))]
    for identity, expires_ms in tokens:
        times = identity.issued_ms, identity.max_ms, expires_ms
        principals = identity.owner, identity.requester, *identity.renewers
        pieces += [
            _TOKEN.pack(*times, len(identity.renewers)),
            text_bytes(identity.token_id),
            binary(identity.key_id),
            *map(text_bytes, principals),
        ]
    return pieces


def decode_tokens(reader: StateReader, state: LogState) -> None:
    """Decode into `state`. Raises `InvalidDataError`."""
    (count,) = reader.take(COUNT)
    reader.expect(count, _TOKEN)
    for _ in range(count):
        issued_ms, max_ms, expires_ms, renewers = reader.take(_TOKEN)
        token_id, key_id = reader.text(), reader.binary()
        owner, requester = reader.text(), reader.text()
        reader.expect(renewers, COUNT)
        names = tuple(reader.text() for _ in range(renewers))
        identity = TokenIdentity(token_id, owner, requester, names, issued_ms, max_ms, key_id)
        state.delegation_tokens.add(DelegationToken(identity, expires_ms))
    if len(state.delegation_tokens) != count:
        raise reader.wrong("it has a delegation token twice")
