"""SCRAM credentials in the fold. Pure.

Invariant: the keys of a credential are sealed. The fold cannot read them, and neither can a reader
of the bucket.
"""

from enum import StrEnum
from typing import NamedTuple

from bucketlog.metadata.security_facts import (
    CredentialFact,
    ScramCredentialDeleted,
    ScramCredentialSet,
)


class ScramMechanism(StrEnum):
    """Source: RFC 5802 and RFC 7677; KIP-84."""

    SHA_256 = "SCRAM-SHA-256"
    SHA_512 = "SCRAM-SHA-512"


class CredentialName(NamedTuple):
    user: str
    mechanism: str


class SealedCredential(NamedTuple):
    """A credential. `sealed` has the stored key and the server key; `key_id` names the key that
    seals them."""

    iterations: int
    salt: bytes
    key_id: bytes
    sealed: bytes


class ScramCredentials:
    """All credentials of the log, by user and mechanism."""

    def __init__(self) -> None:
        self.by_name: dict[CredentialName, SealedCredential] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ScramCredentials) and self.by_name == other.by_name

    __hash__ = None  # type: ignore[assignment]  # values change

    def apply(self, fact: CredentialFact) -> None:
        """Apply the fact. A deletion of a credential that is not there has no effect: two
        administrators may delete it at the same time."""
        name = CredentialName(fact.user, fact.mechanism)
        match fact:
            case ScramCredentialSet():
                self.by_name[name] = SealedCredential(
                    fact.iterations, fact.salt, fact.key_id, fact.sealed
                )
            case ScramCredentialDeleted():
                self.by_name.pop(name, None)
