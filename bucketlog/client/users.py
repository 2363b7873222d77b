"""Administration of users: list, set a password, delete.

Invariant: a password does not leave this process. librdkafka computes the salted password with a
random salt, and brokers get that. Source: KIP-554.
"""

from dataclasses import dataclass
from typing import get_args

from confluent_kafka import KafkaException
from confluent_kafka.admin._scram import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from bucketlog.client.admin import Admin
from bucketlog.client.kafka_errors import log_error
from bucketlog.client.mechanisms import (
    DEFAULT_ITERATIONS,
    DEFAULT_MECHANISM,
    CredentialMechanism,
)
from bucketlog.log_format.errors import ConfigurationError

_NUMBERS: dict[CredentialMechanism, ScramMechanism] = {
    "SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256,
    "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512,
}
_NAMES = {number: name for name, number in _NUMBERS.items()}


@dataclass(frozen=True, slots=True)
class UserCredential:
    """Credential of a user, without the password. Returned by `Users.list`.

    Attributes:
        user: Name of the user.
        mechanism: "SCRAM-SHA-512" or "SCRAM-SHA-256".
        iterations: Number of iterations with which the password is salted.

    Examples:
        >>> log.users.set_password("ann", "a long secret")
        >>> log.users.list()
        [UserCredential(user='ann', mechanism='SCRAM-SHA-512', iterations=8192)]
    """

    user: str
    mechanism: CredentialMechanism
    iterations: int


class Users:
    """Administration of users and their passwords (KIP-554). Used for `log.users`.

    Examples:
        >>> log.users.set_password("bob", "a long secret")
        >>> "bob" in [each.user for each in log.users.list()]
        True
        >>> log.users.delete("bob")
    """

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    def list(self) -> list[UserCredential]:
        """List the credentials of all users, by name and mechanism.

        Returns:
            The credentials, without passwords.

        Raises:
            LogError: If no broker answers, or if it refuses.
        """
        doing = "listing users"
        try:
            future = self._admin.client.describe_user_scram_credentials(
                request_timeout=self._admin.timeout_s
            )
        except KafkaException as error:
            raise log_error(error.args[0], doing) from error
        found = self._admin.wait(future, doing)  # type: ignore[arg-type]  # one for all users
        rows = [
            UserCredential(user, _NAMES[info.mechanism], info.iterations)
            for user, description in found.items()
            for info in description.scram_credential_infos
            if info.mechanism in _NAMES
        ]
        return sorted(rows, key=lambda row: (row.user, row.mechanism))

    def set_password(
        self,
        user: str,
        password: str,
        *,
        mechanism: CredentialMechanism = DEFAULT_MECHANISM,
        iterations: int = DEFAULT_ITERATIONS,
    ) -> None:
        """Add a user, or change the password. Each mechanism has its own password.

        Args:
            user: Name of the user.
            password: New password.
            mechanism: "SCRAM-SHA-512" or "SCRAM-SHA-256".
            iterations: Number of iterations with which the password is salted: 4,096 to 16,384.
                Default: 8,192.

        Raises:
            ConfigurationError: If an argument is not valid.
            LogError: If the broker refuses the change.
        """
        _check(user, mechanism)
        if not password:
            raise ConfigurationError(
                f"the password of {user!r} is empty", remedy="give at least one character"
            )
        if iterations < 1:
            raise ConfigurationError(f"{iterations} iterations", remedy="give 4096 to 16384")
        info = ScramCredentialInfo(_NUMBERS[mechanism], iterations)
        change = UserScramCredentialUpsertion(user, info, password.encode())
        self._alter(change, f"setting the {mechanism} password of {user!r}")

    def delete(self, user: str, *, mechanism: CredentialMechanism = DEFAULT_MECHANISM) -> None:
        """Delete one credential of a user.

        Args:
            user: Name of the user.
            mechanism: "SCRAM-SHA-512" or "SCRAM-SHA-256".

        Raises:
            ConfigurationError: If an argument is not valid.
            LogError: With the code RESOURCE_NOT_FOUND if the user has no such credential.
        """
        _check(user, mechanism)
        change = UserScramCredentialDeletion(user, _NUMBERS[mechanism])
        self._alter(change, f"deleting the {mechanism} password of {user!r}")

    def _alter(self, change: UserScramCredentialAlteration, doing: str) -> None:
        try:
            futures = self._admin.client.alter_user_scram_credentials(
                [change], request_timeout=self._admin.timeout_s
            )
        except KafkaException as error:
            raise log_error(error.args[0], doing) from error
        for future in futures.values():
            self._admin.wait(future, doing)


def _check(user: str, mechanism: str) -> None:
    if not user:
        raise ConfigurationError("a user without a name", remedy="give the name")
    if mechanism not in _NUMBERS:
        raise ConfigurationError(
            f"the mechanism {mechanism!r} has no passwords of users",
            remedy=f"choose one of {', '.join(get_args(CredentialMechanism))}",
        )
