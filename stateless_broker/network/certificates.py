"""The broker's certificates while it runs: files that change are loaded again.

Invariants: new connections get the newest context that works; connections that are open keep
theirs. If changed files do not work, the former context stays, and `/readyz` says why. Files that
are replaced one after another are not a fault, unless they do not fit at the next look, either.
"""

import asyncio
import logging
import ssl
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_format.printable import printable
from bucketlog.stateless_broker.health import BrokerPart, Health
from bucketlog.stateless_broker.network.connection import ANONYMOUS
from bucketlog.stateless_broker.network.distinguished_name import subject_name
from bucketlog.stateless_broker.network.tls_channel import PrincipalRefusedError
from bucketlog.stateless_broker.network.tls_context import LoadedTls, load_tls
from bucketlog.stateless_broker.settings.principal_rules import user_of
from bucketlog.stateless_broker.settings.tls import TlsSettings

logger = logging.getLogger(__name__)


class FileMark(NamedTuple):
    """A mark of a file that changes when the file is replaced or written, also behind a link."""

    inode: int
    modified_ns: int
    size_bytes: int


Marks = tuple[FileMark | None, ...]


class Certificates:
    """The broker's certificates. Call `start` before anything else. `now_s` is Unix time."""

    def __init__(
        self,
        settings: TlsSettings,
        health: Health,
        *,
        now_s: Callable[[], float],
        load: Callable[[TlsSettings], LoadedTls] = load_tls,
    ) -> None:
        self._settings = settings
        self._health = health
        self._now_s = now_s
        self._load = load
        self._files = [
            file
            for file in (
                settings.ssl_certificate_file,
                settings.ssl_key_file,
                settings.ssl_key_password_file,
                settings.ssl_ca_file,
            )
            if file is not None
        ]
        self._rules = settings.principal_rules
        self._loaded: LoadedTls | None = None
        self._marks: Marks = ()
        self._unfit_marks: Marks | None = None
        """The files of the last look, if they did not work."""
        self._asked = asyncio.Event()

    @property
    def context(self) -> ssl.SSLContext:
        assert self._loaded is not None, "not started"
        return self._loaded.context

    @property
    def expires_in_s(self) -> float:
        """Negative once a certificate has expired."""
        assert self._loaded is not None, "not started"
        return self._loaded.expires_s - self._now_s()

    async def start(self) -> None:
        """Load the files. Raises `ConfigurationError`, which names the file and what to do."""
        self._marks = await asyncio.to_thread(self._look_at_files)
        self._loaded = await asyncio.to_thread(self._load, self._settings)

    def reload_soon(self) -> None:
        """Load the files again, whether they have changed or not."""
        self._asked.set()

    async def watch(self) -> None:
        """Look at the files, for ever."""
        interval_ms = self._settings.ssl_reload_interval_ms
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(interval_ms / 1000 if interval_ms else None):
                    await self._asked.wait()
            is_asked = self._asked.is_set()
            self._asked.clear()
            await self.look(is_asked=is_asked)

    async def look(self, *, is_asked: bool = False) -> None:
        """Look at the files. `is_asked`: load them even if they have not changed, and judge them at
        once."""
        marks = await asyncio.to_thread(self._look_at_files)
        if marks == self._marks and not is_asked:
            self._unfit_marks = None
            self._note_validity()
            return
        try:
            loaded = await asyncio.to_thread(self._load, self._settings)
        except ConfigurationError as error:
            if is_asked or marks == self._unfit_marks:
                self._health.degrade(
                    BrokerPart.CERTIFICATES,
                    f"the former certificate stays in use, because the files do not work: {error}",
                )
            self._unfit_marks = marks
            return
        if await asyncio.to_thread(self._look_at_files) != marks:
            return  # they are being replaced: the next look finds them different again
        self._loaded, self._marks, self._unfit_marks = loaded, marks, None
        logger.info("certificates are loaded; they are valid for %.0f s", self.expires_in_s)
        self._note_validity()

    def _note_validity(self) -> None:
        if self.expires_in_s > 0:
            self._health.recover(BrokerPart.CERTIFICATES)
            return
        self._health.degrade(
            BrokerPart.CERTIFICATES,
            f"the certificate in {self._settings.ssl_certificate_file} has expired: replace the "
            "file; it is loaded while the broker runs",
        )

    def _look_at_files(self) -> Marks:
        return tuple(map(_mark, self._files))

    def principal(self, tls: ssl.SSLObject) -> str:
        """Return the principal of a client's certificate. Raises `PrincipalRefusedError`."""
        certificate = tls.getpeercert(binary_form=True)
        if certificate is None:
            return ANONYMOUS
        try:
            name = subject_name(certificate)
        except ValueError as error:
            raise PrincipalRefusedError(f"its certificate is not understood: {error}") from error
        user = user_of(name, self._rules)
        if user is None:
            raise PrincipalRefusedError(
                f"no rule has a user for its certificate {printable(name)!r} "
                "(BUCKETLOG_SSL_PRINCIPAL_MAPPING_RULES)"
            )
        return f"User:{user}"


def _mark(file: Path) -> FileMark | None:
    """Return the mark of a file; None if it does not exist."""
    try:
        found = file.stat()
    except OSError:
        return None
    return FileMark(found.st_ino, found.st_mtime_ns, found.st_size)
