"""DescribeUserScramCredentials and AlterUserScramCredentials.

Invariant: a password's keys are sealed before they leave the handler. Source: KIP-554; Kafka's
ScramControlManager and ScramPublisher.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from kio.schema.errors import ErrorCode

from bucketlog.log_format.model import WallClock
from bucketlog.log_format.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from bucketlog.log_format.wire.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from bucketlog.metadata.scram_credentials import CredentialName, ScramMechanism
from bucketlog.metadata.security_facts import (
    ScramCredentialDeleted,
    ScramCredentialSet,
    SecurityFact,
)
from bucketlog.metadata.view import View
from bucketlog.stateless_broker.authentication.scram import (
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    ScramCredential,
    keys_of,
)
from bucketlog.stateless_broker.authentication.sealing import CredentialSeal
from bucketlog.stateless_broker.authorization.needs import CLUSTER_NOT_AUTHORIZED
from bucketlog.stateless_broker.handlers.security_changes import DONE, Refusal, SecurityChanges
from bucketlog.stateless_broker.network.apis import Request

MECHANISMS: Mapping[int, ScramMechanism] = {1: ScramMechanism.SHA_256, 2: ScramMechanism.SHA_512}
"""Mechanisms by their numbers in requests."""
SALT_BYTES_MAX = 512
_NUMBERS = {mechanism: number for number, mechanism in MECHANISMS.items()}


class CredentialLimits(NamedTuple):
    credentials_max: int
    user_bytes_max: int


class ScramCredentialsHandler:
    """`seal` is None without a key for credentials: they cannot be changed then."""

    def __init__(
        self,
        *,
        view: View,
        changes: SecurityChanges,
        seal: CredentialSeal | None,
        limits: CredentialLimits,
        now_ms: WallClock,
    ) -> None:
        self._view = view
        self._changes = changes
        self._seal = seal
        self._limits = limits
        self._now_ms = now_ms

    async def describe(
        self, request: Request, message: DescribeUserScramCredentialsRequest
    ) -> DescribeUserScramCredentialsResponse:
        """Users without a name mean all users."""
        known: dict[str, list[CredentialInfo]] = {}
        for (user, mechanism), credential in self._view.scram_credentials.by_name.items():
            info: CredentialInfo = {
                "mechanism": _NUMBERS.get(ScramMechanism(mechanism), 0),
                "iterations": credential.iterations,
            }
            known.setdefault(user, []).append(info)
        asked = Counter(each.name for each in message.users or ())
        results: list[DescribeUserScramCredentialsResult] = []
        for user in asked or sorted(known):
            error, text = ErrorCode.none, None
            if asked[user] > 1:
                error = ErrorCode.duplicate_resource
                text = (
                    "Cannot describe SCRAM credentials for the same user twice in a single "
                    f"request: {user}"
                )
            elif user not in known:
                error = ErrorCode.resource_not_found
                text = f"Attempt to describe a user credential that does not exist: {user}"
            infos = known.get(user, []) if error is ErrorCode.none else []
            results.append(
                {
                    "user": user,
                    "error_code": error,
                    "error_message": text,
                    "credential_infos": sorted(infos, key=lambda info: info["mechanism"]),
                }
            )
        return {"error_code": ErrorCode.none, "error_message": None, "results": results}

    async def alter(
        self, request: Request, message: AlterUserScramCredentialsRequest
    ) -> AlterUserScramCredentialsResponse:
        return await self.change(message, by=request.principal)

    async def change(
        self, message: AlterUserScramCredentialsRequest, *, by: str
    ) -> AlterUserScramCredentialsResponse:
        """A user that is named twice is refused. All other changes are made, each by itself. `by`:
        who asks for the changes."""
        asked: list[ScramCredentialDeletion | ScramCredentialUpsertion]
        asked = [*message.deletions, *message.upsertions]
        named = Counter(each.name for each in asked)
        results = dict[str, Refusal]()
        changes: dict[str, SecurityFact] = {}
        added = 0
        for each in asked:
            refusal = self._refusal(each, named[each.name], added)
            if refusal is not None:
                results[each.name] = refusal
            elif isinstance(each, ScramCredentialDeletion):
                changes[each.name] = ScramCredentialDeleted(
                    user=each.name,
                    mechanism=MECHANISMS[each.mechanism],
                    by=by,
                    at_ms=self._now_ms(),
                )
            else:
                changes[each.name] = self._sealed(each, by)
                added += self._is_new(each)
        outcomes = await asyncio.gather(*map(self._changes.commit, changes.values()))
        for user, outcome in zip(changes, outcomes, strict=True):
            results[user] = outcome or DONE
        return {
            "results": [
                {"user": user, "error_code": error, "error_message": text}
                for user, (error, text) in results.items()
            ]
        }

    def _refusal(
        self,
        change: ScramCredentialDeletion | ScramCredentialUpsertion,
        times_named: int,
        added_before: int,
    ) -> Refusal | None:
        unacceptable = ErrorCode.unacceptable_credential
        mechanism = MECHANISMS.get(change.mechanism)
        known = self._view.scram_credentials.by_name
        limits = self._limits
        if times_named > 1:
            return Refusal(
                ErrorCode.duplicate_resource,
                "A user credential cannot be altered twice in the same request",
            )
        if not change.name:
            return Refusal(unacceptable, "Username must not be empty")
        if mechanism is None:
            return Refusal(ErrorCode.unsupported_sasl_mechanism, "Unknown SCRAM mechanism")
        if self._seal is None:
            return Refusal(
                ErrorCode.security_disabled,
                "This broker has no key for credentials: set BUCKETLOG_CREDENTIALS_KEY_FILE",
            )
        if isinstance(change, ScramCredentialDeletion):
            if CredentialName(change.name, mechanism) in known:
                return None
            return Refusal(
                ErrorCode.resource_not_found,
                "Attempt to delete a user credential that does not exist",
            )
        if change.iterations < ITERATIONS_MIN:
            return Refusal(unacceptable, "Too few iterations")
        if change.iterations > ITERATIONS_MAX:
            return Refusal(unacceptable, "Too many iterations")
        if len(change.name.encode()) > limits.user_bytes_max:
            text = f"The name has more than {limits.user_bytes_max} bytes"
            return Refusal(unacceptable, f"{text} (BUCKETLOG_USER_BYTES_MAX)")
        if not 0 < len(change.salt) <= SALT_BYTES_MAX or not change.salted_password:
            return Refusal(
                unacceptable, f"The salt must have 1 to {SALT_BYTES_MAX} bytes, and the password 1"
            )
        if self._is_new(change) and len(known) + added_before >= limits.credentials_max:
            text = f"The cluster may have {limits.credentials_max} SCRAM credentials"
            return Refusal(ErrorCode.policy_violation, f"{text} (BUCKETLOG_SCRAM_CREDENTIALS_MAX)")
        return None

    def _is_new(self, change: ScramCredentialUpsertion) -> bool:
        name = CredentialName(change.name, MECHANISMS[change.mechanism])
        return name not in self._view.scram_credentials.by_name

    def _sealed(self, change: ScramCredentialUpsertion, by: str) -> ScramCredentialSet:
        assert self._seal is not None, "refused without a key"
        mechanism = MECHANISMS[change.mechanism]
        keys = keys_of(mechanism, change.salted_password)
        sealed = self._seal.seal(
            CredentialName(change.name, mechanism),
            ScramCredential(change.iterations, change.salt, keys),
        )
        return ScramCredentialSet(
            user=change.name, mechanism=mechanism, by=by, at_ms=self._now_ms(), **sealed._asdict()
        )


def deny_describe_credentials(
    message: DescribeUserScramCredentialsRequest,
) -> DescribeUserScramCredentialsResponse:
    denied = ErrorCode.cluster_authorization_failed
    return {
        "error_code": denied,
        "error_message": CLUSTER_NOT_AUTHORIZED,
        "results": [
            {
                "user": each.name,
                "error_code": denied,
                "error_message": CLUSTER_NOT_AUTHORIZED,
                "credential_infos": (),
            }
            for each in message.users or ()
        ],
    }


def deny_alter_credentials(
    message: AlterUserScramCredentialsRequest,
) -> AlterUserScramCredentialsResponse:
    users = dict.fromkeys(each.name for each in message.deletions)
    users |= dict.fromkeys(each.name for each in message.upsertions)
    return {
        "results": [
            {
                "user": user,
                "error_code": ErrorCode.cluster_authorization_failed,
                "error_message": CLUSTER_NOT_AUTHORIZED,
            }
            for user in users
        ]
    }
