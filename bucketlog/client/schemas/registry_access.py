"""Access to a schema registry, as a value that can be sent to other processes."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from bucketlog.client.schemas.registry import SchemaRegistry
from bucketlog.client.schemas.registry_connection import (
    AUTH_VARIABLE,
    CA_VARIABLE,
    URL_VARIABLE,
    RegistryConnection,
)
from bucketlog.client.schemas.subjects import Subjects


@dataclass(frozen=True, slots=True)
class RegistryAccess:
    """The URL, login and certificate authorities of a schema registry. If `auth` (user and
    password) or `ca_file` is None, the environment's value applies, as in `SchemaRegistry`."""

    url: str
    auth: tuple[str, str] | None = field(default=None, repr=False)
    ca_file: Path | None = None

    def registry(self) -> SchemaRegistry:
        """Return a client of the registry, without a request. Raises `ConfigurationError`."""
        return SchemaRegistry(self.url, auth=self.auth, ca_file=self._ca_file())

    def subjects(self) -> Subjects:
        """Return a client of the registry's subjects, without a request. Raises
        `ConfigurationError`."""
        return Subjects(RegistryConnection(self.url, auth=self.auth, ca_file=self._ca_file()))

    def environment(self) -> dict[str, str]:
        """Return the environment variables of a process that sends requests to this registry."""
        ours = {URL_VARIABLE: self.url}
        if self.auth is not None:
            ours[AUTH_VARIABLE] = ":".join(self.auth)
        if self.ca_file is not None:
            ours[CA_VARIABLE] = str(self.ca_file)
        return {**os.environ, **ours}

    def _ca_file(self) -> str | None:
        return None if self.ca_file is None else str(self.ca_file)
