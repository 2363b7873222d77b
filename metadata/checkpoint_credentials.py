"""The SCRAM credentials in a checkpoint's state, for version 6. Pure.

This part follows the state of version 5 (docs/format/checkpoint.md). A checkpoint has it only if
the log has credentials. Their keys are sealed here, as in the log.
"""

import struct

from bucketlog.metadata.checkpoint_bytes import COUNT, StateReader, binary, text_bytes
from bucketlog.metadata.fold import LogState
from bucketlog.metadata.scram_credentials import CredentialName, SealedCredential

_CREDENTIAL = struct.Struct(">I")


def has_credentials(state: LogState) -> bool:
    return bool(state.scram_credentials.by_name)


def encode_credentials(state: LogState) -> list[bytes]:
    credentials = state.scram_credentials.by_name
    pieces = [COUNT.pack(len(credentials))]
    for (user, mechanism), credential in credentials.items():
        pieces += [
            text_bytes(user),
            text_bytes(mechanism),
            _CREDENTIAL.pack(credential.iterations),
            *map(binary, (credential.salt, credential.key_id, credential.sealed)),
        ]
    return pieces


def decode_credentials(reader: StateReader, state: LogState) -> None:
    """Decode into `state`. Raises `InvalidDataError`."""
    (count,) = reader.take(COUNT)
    reader.expect(count, _CREDENTIAL)
    credentials = state.scram_credentials.by_name
    for _ in range(count):
        name = CredentialName(reader.text(), reader.text())
        if name in credentials:
            raise reader.wrong("a user has two credentials of one mechanism")
        (iterations,) = reader.take(_CREDENTIAL)
        credentials[name] = SealedCredential(
            iterations, reader.binary(), reader.binary(), reader.binary()
        )
