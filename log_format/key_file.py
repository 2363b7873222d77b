"""Files with secret keys, one per line in hexadecimal. The first key is the current one.

Invariant: a file that others may read is refused, as by ssh and PostgreSQL.
"""

import hmac
import os
import stat
from hashlib import sha256
from pathlib import Path

from bucketlog.log_format.errors import ConfigurationError

KEY_BYTES_MIN = 32
KEYS_MAX = 16
KEY_FILE_BYTES_MAX = 64 * 1024


def key_id(secret: bytes) -> bytes:
    """8 bytes that identify a key without revealing it."""
    return hmac.digest(secret, b"bucketlog key id", sha256)[:8]


def read_key_file(path: Path) -> tuple[bytes, ...]:
    """Read a file with one key per line, in hexadecimal. Raises `ConfigurationError`."""
    remedy = f"write one with: (umask 077; openssl rand -hex {KEY_BYTES_MIN} > {path})"
    secrets = []
    for number, line in read_private_lines(path, remedy):
        try:
            secret = bytes.fromhex(line)
        except ValueError:
            secret = b""
        if len(secret) < KEY_BYTES_MIN:  # do not quote the line: it may be a secret
            raise ConfigurationError(
                f"line {number} of the key file {path} is not a key of {KEY_BYTES_MIN} bytes or "
                "more in hexadecimal",
                remedy=remedy,
            )
        secrets.append(secret)
    if not 0 < len(secrets) <= KEYS_MAX:
        raise ConfigurationError(
            f"the key file {path} has {len(secrets)} keys; 1 to {KEYS_MAX} are allowed",
            remedy=remedy,
        )
    return tuple(secrets)


def read_private_lines(path: Path, remedy: str) -> list[tuple[int, str]]:
    """The lines of a key file with their numbers, without comments and empty lines. Like ssh and
    PostgreSQL, refuse a file that others may read: the mode must be 0600 or less, or 0640 or less
    if root owns the file. Raises `ConfigurationError`."""
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            text = file.read(KEY_FILE_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigurationError(
            f"the key file {path} cannot be read: {error.strerror}", remedy=remedy
        ) from error
    mode = stat.S_IMODE(status.st_mode)
    if mode & (0o037 if status.st_uid == 0 else 0o077):
        raise ConfigurationError(
            f"others may use the key file {path} (mode {mode:04o})", remedy=f"run: chmod 600 {path}"
        )
    if len(text) > KEY_FILE_BYTES_MAX:
        raise ConfigurationError(f"the key file {path} is too large", remedy=remedy)
    lines = [line.strip() for line in text.decode(errors="replace").splitlines()]
    return [
        (number, line) for number, line in enumerate(lines, 1) if line and not line.startswith("#")
    ]
