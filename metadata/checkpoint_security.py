"""The SCRAM credentials, ACLs and client quotas in a checkpoint's state, for version 6. Pure.

This part follows the state of version 5 (docs/format/checkpoint.md). A checkpoint has it only if
the log has credentials, ACLs or quotas. The keys of credentials are sealed here, as in the log.
"""

import struct
from math import isfinite

from bucketlog.metadata.acl_bindings import (
    AclBinding,
    AclOperation,
    PatternType,
    Permission,
    ResourceType,
)
from bucketlog.metadata.checkpoint_bytes import COUNT, StateReader, binary, text_bytes
from bucketlog.metadata.fold import LogState
from bucketlog.metadata.quota_entities import QuotaChange
from bucketlog.metadata.scram_credentials import CredentialName, SealedCredential

_CREDENTIAL = struct.Struct(">I")
_ACL = struct.Struct(">BBBB")
_QUOTA = struct.Struct(">Bd")
_USER, _CLIENT_ID, _IP = 1, 2, 4
"""Bits for the parts that the entity of a quota has."""


def has_security(state: LogState) -> bool:
    return bool(state.scram_credentials.by_name or state.acls or state.client_quotas)


def encode_security(state: LogState) -> list[bytes]:
    credentials, acls = state.scram_credentials.by_name, state.acls.bindings
    pieces = [COUNT.pack(len(credentials))]
    for (user, mechanism), credential in credentials.items():
        pieces += [
            text_bytes(user),
            text_bytes(mechanism),
            _CREDENTIAL.pack(credential.iterations),
            *map(binary, (credential.salt, credential.key_id, credential.sealed)),
        ]
    pieces.append(COUNT.pack(len(acls)))
    for acl in acls:
        numbers = acl.operation, acl.permission, acl.resource_type, acl.pattern_type
        pieces += [_ACL.pack(*numbers), *map(text_bytes, (acl.principal, acl.host, acl.name))]
    quotas = state.client_quotas.rows()
    pieces.append(COUNT.pack(len(quotas)))
    for (entity, key), value in quotas.items():
        bits = zip((_USER, _CLIENT_ID, _IP), entity, strict=True)
        has = sum(bit for bit, name in bits if name is not None)
        pieces += [_QUOTA.pack(has, value), text_bytes(key)]
        pieces += [text_bytes(name) for name in entity if name is not None]
    return pieces


def decode_security(reader: StateReader, state: LogState) -> None:
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
    (count,) = reader.take(COUNT)
    reader.expect(count, _ACL)
    state.acls.add([_acl(reader) for _ in range(count)])
    if len(state.acls) != count:
        raise reader.wrong("it has an ACL twice")
    (count,) = reader.take(COUNT)
    reader.expect(count, _QUOTA)
    for _ in range(count):
        state.client_quotas.put(_quota(reader))
    if len(state.client_quotas.rows()) != count:
        raise reader.wrong("it has a quota twice")


def _quota(reader: StateReader) -> QuotaChange:
    has, value = reader.take(_QUOTA)
    key = reader.text()
    if not 0 < has <= _USER | _CLIENT_ID | _IP:
        raise reader.wrong("a quota has an unknown entity")
    if not isfinite(value):
        raise reader.wrong("a quota is not a finite number")
    names = [reader.text() if has & bit else None for bit in (_USER, _CLIENT_ID, _IP)]
    return QuotaChange(names[0], names[1], names[2], key, value)


def _acl(reader: StateReader) -> AclBinding:
    operation, permission, resource_type, pattern_type = reader.take(_ACL)
    principal, host, name = reader.text(), reader.text(), reader.text()
    try:
        return AclBinding(
            principal,
            host,
            AclOperation(operation),
            Permission(permission),
            ResourceType(resource_type),
            name,
            PatternType(pattern_type),
        )
    except ValueError as error:
        raise reader.wrong(f"an ACL has {error}") from None
