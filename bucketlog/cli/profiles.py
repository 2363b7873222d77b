"""Profiles: settings under a name, in one TOML file, each as if it stood in the environment.

    profile = "local"                  # the one in use

    [profiles.local]
    bootstrap = "localhost:9092"       # BUCKETLOG_BOOTSTRAP
    aws_profile = "minio"              # AWS_PROFILE

Invariants: what the environment has goes before a profile; a setting is known or the file is
refused; an edit changes one line and keeps the rest, comments and all, or changes nothing.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_format.private_files import make_file, make_folder

CHOICE = "BUCKETLOG_PROFILE"
PREFIX = "BUCKETLOG_"
_AWS = "aws_"
_NAME = re.compile(r"[A-Za-z0-9_-]+")
_SETTING = re.compile(r"[a-z][a-z0-9_]*")
_SECRET = re.compile(r"password|secret|token|credential|private|registry_auth", re.IGNORECASE)
_PATH = re.compile(r"_file$", re.IGNORECASE)
"""The path of a file with a secret is not secret."""
_USER_INFO = re.compile(r"(?<=://)[^/@\s]+@")
MASK = "********"


@dataclass(frozen=True, slots=True)
class Profiles:
    """`chosen` is the file's own choice."""

    path: Path
    chosen: str | None
    settings: Mapping[str, Mapping[str, str]]

    def named(self, name: str) -> Mapping[str, str]:
        """Raises `ConfigurationError`."""
        if name in self.settings:
            return self.settings[name]
        there = ", ".join(sorted(self.settings)) or "none"
        raise ConfigurationError(
            f"there is no profile {name!r} in {self.path}",
            remedy=f"there are: {there}; `bucketlog --profile {name} config set bootstrap "
            "HOST:PORT` begins it",
        )


def config_path(environment: Mapping[str, str]) -> Path:
    home = environment.get("XDG_CONFIG_HOME") or str(Path("~/.config").expanduser())
    return Path(home) / "bucketlog" / "config.toml"


def read_profiles(path: Path) -> Profiles:
    """One that is not there has none. Raises `ConfigurationError`, which names what is wrong."""
    return _checked(path, _loaded(path, _text(path)))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path} is not UTF-8", remedy="write it anew") from None


def _loaded(path: Path, text: str) -> dict[str, Any]:
    if not text:
        return {}
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{path} is not TOML: {error}", remedy="correct it") from error


def _checked(path: Path, data: Mapping[str, Any]) -> Profiles:
    def wrong(what: str) -> ConfigurationError:
        return ConfigurationError(f"{path}: {what}", remedy="see docs/cli.md, profiles")

    if unknown := sorted(data.keys() - {"profile", "profiles"}):
        raise wrong(f"unknown key {unknown[0]!r}: there are 'profile' and [profiles.NAME]")
    chosen, tables = data.get("profile"), data.get("profiles", {})
    if not (chosen is None or isinstance(chosen, str)):
        raise wrong("'profile' is not a name")
    if not isinstance(tables, dict):
        raise wrong("'profiles' is not a table")
    settings: dict[str, dict[str, str]] = {}
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise wrong(f"profiles.{name} is not a table")
        settings[name] = {}
        for key, value in table.items():
            if isinstance(value, bool):
                settings[name][key] = str(value).lower()
            elif isinstance(value, str | int | float):
                settings[name][key] = str(value)
            else:
                raise wrong(f"profiles.{name}.{key} is not a text, number or bool")
    return Profiles(path, chosen, settings)


def variable(setting: str) -> str:
    """The environment variable that says the same: `bootstrap` is BUCKETLOG_BOOTSTRAP."""
    return setting.upper() if setting.startswith(_AWS) else f"{PREFIX}{setting.upper()}"


def setting(name: str) -> str:
    """The other way."""
    return name.removeprefix(PREFIX).lower()


def check_known(settings: Iterable[str], known: Iterable[str], where: str) -> None:
    """`known` are variables. Raises `ConfigurationError` for a setting that is none of them."""
    names = set(known)
    for one in settings:
        if one.startswith(_AWS) and _SETTING.fullmatch(one):
            continue
        if variable(one) in names and _SETTING.fullmatch(one):
            continue
        alike = get_close_matches(one, sorted(map(setting, names)), 1)
        meant = f"did you mean {alike[0]!r}? " if alike else ""
        raise ConfigurationError(
            f"{where}: there is no setting {one!r}",
            remedy=f"{meant}`bucketlog config show --all` lists those of the commands, "
            "docs/configuration.md those of brokers",
        )


@contextmanager
def restored(environment: MutableMapping[str, str]) -> Iterator[None]:
    """Restore the environment at the end of the block."""
    before = dict(environment)
    try:
        yield
    finally:
        for name in environment.keys() - before.keys():
            del environment[name]
        environment.update(before)


def shown(name: str, value: str) -> str:
    """For people: without what is secret by its name, or the user and password of a URL."""
    is_secret = value and _SECRET.search(name) and not _PATH.search(name)
    return MASK if is_secret else _USER_INFO.sub(f"{MASK}@", value)


def change(path: Path, profile: str | None, key: str, value: str) -> None:
    """Set one key of a profile, or, with None, of the file itself. Raises `ConfigurationError`."""
    if profile is not None and not _NAME.fullmatch(profile):
        raise ConfigurationError(
            f"{profile!r} is not a profile name", remedy="use letters, digits, - and _"
        )
    before = _text(path)
    wanted = _loaded(path, before)
    _checked(path, wanted)
    table = wanted if profile is None else wanted.setdefault("profiles", {}).setdefault(profile, {})
    table[key] = value
    after = edited(before, profile, key, value)
    if after is None or not _parses_to(after, wanted):
        raise ConfigurationError(
            f"{path} is written in a way that only its writer can change",
            remedy=f"set {key} = {json.dumps(value)} there"
            + (f" under [profiles.{profile}]" if profile else ", at the top"),
        )
    _replace(path, after)


def _parses_to(text: str, wanted: Mapping[str, Any]) -> bool:
    import tomllib

    try:
        return tomllib.loads(text) == wanted
    except tomllib.TOMLDecodeError:
        return False


def edited(text: str, profile: str | None, key: str, value: str) -> str | None:
    """The text with one line more or changed; None where the value cannot be in a line."""
    if not value.isprintable():
        return None
    line = f"{key} = {json.dumps(value, ensure_ascii=False)}\n"
    lines = [one if one.endswith("\n") else f"{one}\n" for one in text.splitlines(keepends=True)]
    tables = [at for at, one in enumerate(lines) if one.lstrip().startswith("[")]
    begin = 0
    if profile is not None:
        header = re.compile(rf"\s*\[\s*profiles\s*\.\s*(['\"]?){profile}\1\s*\]")
        found = [at for at in tables if header.match(lines[at])]
        if not found:
            gap = ["\n"] if lines else []
            return "".join([*lines, *gap, f"[profiles.{profile}]\n", line])
        begin = found[0] + 1
    end = next((at for at in tables if at >= begin), len(lines))
    for at in range(begin, end):
        if re.match(rf"\s*{re.escape(key)}\s*=", lines[at]):
            return "".join([*lines[:at], line, *lines[at + 1 :]])
    while end > begin and not lines[end - 1].strip():
        end -= 1
    if profile is None and begin == end and lines:
        line += "\n"
    return "".join([*lines[:end], line, *lines[end:]])


def _replace(path: Path, text: str) -> None:
    """Whole or not at all; for its owner alone, for it may hold secrets."""
    path = path.resolve()  # a link stays one
    make_folder(path.parent)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(make_file(temporary, os.O_WRONLY | os.O_EXCL), "w") as file:
            file.write(text)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
