"""Access to a schema registry, as a value that can be sent to other processes."""

import os
from dataclasses import dataclass
from pathlib import Path

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.schema_registry.registered_schemas import RegisteredSchemas
from bucketlog.schema_registry.registry_connection import (
    AUTH_VARIABLE,
    CA_VARIABLE,
    URL_VARIABLE,
    RegistryConnection,
)
from bucketlog.schema_registry.registry_errors import public
from bucketlog.schema_registry.subjects import Subjects


@dataclass(frozen=True, slots=True)
class RegistryAccess:
    """The URL, login and certificate authorities of a schema registry. If `auth` (user and
    password) or `ca_file` is None, the environment's value applies."""

    url: str
    auth: tuple[str, str] | None = None
    ca_file: Path | None = None

    @classmethod
    def of_environment(
        cls, url: str | None = None, ca_file: Path | None = None
    ) -> "RegistryAccess | None":
        """Return the access with the settings of the environment instead of missing arguments, and
        with the environment's login. So other machines need no settings. Return None if no URL is
        known. Raises `ConfigurationError`."""
        url = url or os.environ.get(URL_VARIABLE)
        if not url:
            return None
        login, authorities = os.environ.get(AUTH_VARIABLE), os.environ.get(CA_VARIABLE)
        user, colon, password = (login or "").partition(":")
        if login and not (user and colon):
            raise ConfigurationError(
                f"{AUTH_VARIABLE} needs a user and a password", remedy="set it to USER:PASSWORD"
            )
        ca_file = ca_file or (Path(authorities) if authorities else None)
        return cls(url, (user, password) if login else None, ca_file)

    def __repr__(self) -> str:
        """The URL may contain a password, too."""
        return f"RegistryAccess({public(self.url)!r})"

    def schemas(self) -> RegisteredSchemas:
        """Return a client of the registry's schemas, without a request. Raises
        `ConfigurationError`."""
        return RegisteredSchemas(self._connection())

    def subjects(self) -> Subjects:
        """Return a client of the registry's subjects, without a request. Raises
        `ConfigurationError`."""
        return Subjects(self._connection())

    def environment(self) -> dict[str, str]:
        """Return the environment variables of a process that sends requests to this registry."""
        ours = {URL_VARIABLE: self.url}
        if self.auth is not None:
            ours[AUTH_VARIABLE] = ":".join(self.auth)
        if self.ca_file is not None:
            ours[CA_VARIABLE] = str(self.ca_file)
        return {**os.environ, **ours}

    def _connection(self) -> RegistryConnection:
        ca_file = None if self.ca_file is None else str(self.ca_file)
        return RegistryConnection(self.url, auth=self.auth, ca_file=ca_file)
