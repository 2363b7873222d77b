"""Changes of the log: the fields of their forms, and the plans that pages show before a change.

Invariant: to make a plan changes nothing. `ChangePlan.apply` makes the changes in the rows of the
plan, or raises an error.
"""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from bucketlog.client.log import Log
from bucketlog.console.log_view import LogView
from bucketlog.console.page_query import PageQuery
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.log_format.printable import printable

NAME_BYTES_MAX = 2**15 - 1
"""Bytes of a name in Kafka's protocol."""


class FieldKind(StrEnum):
    """The control of a field in a form."""

    TEXT = "text"
    NUMBER = "number"
    LINES = "lines"
    CHOICE = "choice"


class FormField(NamedTuple):
    """A field of a form. `hint` explains the value. `choices` are the values of a CHOICE; the first
    is the default. With `by_hand`, the address does not fill in the field."""

    name: str
    label: str
    kind: FieldKind = FieldKind.TEXT
    hint: str = ""
    choices: Sequence[str] = ()
    by_hand: bool = False


class PlanRow(NamedTuple):
    """A value before and after the change. An empty text means that there is no value."""

    what: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class ChangePlan:
    """The effects of a change. `rows` are all values that change. `warnings` are sentences about
    consequences. `obstacle` is the reason why the change is not possible now, or empty.
    `command` makes the same change in a terminal. `apply` changes the log, and returns a sentence
    about the result, or raises `LogError`. `page` is the address of the page with the result."""

    title: str
    button: str
    rows: Sequence[PlanRow]
    command: str
    apply: Callable[[], str]
    page: str
    warnings: Sequence[str] = ()
    obstacle: str = ""

    @property
    def shown_command(self) -> str:
        """`command`, or empty text if a value has characters that control a terminal. A command
        with escapes in their place would change something else."""
        return self.command if printable(self.command) == self.command else ""


@dataclass(frozen=True, slots=True)
class ChangeScene:
    """The sources of a plan: the log as the bucket shows it, a connection to its brokers, and
    the values of the form. `bootstrap` is the address for commands. `look` returns the log as the
    bucket shows it later, when the plan is applied."""

    view: LogView
    log: Log
    values: PageQuery
    bootstrap: str
    look: Callable[[], LogView]

    def command(self, *words: str, name: str) -> str:
        """Return a command line of bucketlog. `name` is the command's argument, and may begin
        with a dash."""
        bootstrap = ("--bootstrap", self.bootstrap)
        return shlex.join(("bucketlog", *words, *bootstrap, "--", name))


MakePlan = Callable[[ChangeScene], ChangePlan]


@dataclass(frozen=True, slots=True)
class LogChange:
    """A kind of change. `name` is its name in addresses. `plan` raises `ConfigurationError`,
    `InvalidDataError` and `LogError`."""

    name: str
    title: str
    fields: Sequence[FormField]
    plan: MakePlan


def required(values: PageQuery, field: FormField) -> str:
    """The text of a field. Raises `ConfigurationError` if the field is empty."""
    found = values.text(field.name)
    if not found:
        raise ConfigurationError(f"{field.label} is empty", remedy="fill in this field")
    return found


def optional_name(values: PageQuery, field: FormField) -> str:
    """The name in a field, empty if there is none. Raises `ConfigurationError` if no client can
    send the name: librdkafka ends names at a NUL, and so would change something else."""
    found = values.text(field.name)
    if "\0" in found:
        raise ConfigurationError(f"{field.label} has a NUL", remedy="give a name without it")
    if len(found.encode()) > NAME_BYTES_MAX:
        raise ConfigurationError(
            f"{field.label} has more than {NAME_BYTES_MAX} bytes", remedy="give a shorter name"
        )
    return found


def optional_number(
    values: PageQuery, field: FormField, *, least: int = 0, most: int
) -> int | None:
    """The number in a field, from `least` to `most`; None if the field is empty. Raises
    `ConfigurationError`."""
    if not values.text(field.name).strip():
        return None
    return values.number(field.name, 0, least=least, most=most)


def required_name(values: PageQuery, field: FormField) -> str:
    """The name in a field. Raises `ConfigurationError` as `required` and `optional_name` do."""
    required(values, field)
    return optional_name(values, field)


def lines_of(values: PageQuery, field: FormField) -> list[str]:
    """The lines of a field that are not empty, without the spaces around them. Raises
    `ConfigurationError` for a NUL, at which librdkafka would end a name."""
    found = values.text(field.name)
    if "\0" in found:
        raise ConfigurationError(f"{field.label} has a NUL", remedy="remove it")
    return [line for raw in found.splitlines() if (line := raw.strip())]


def assignments(values: PageQuery, field: FormField) -> dict[str, str]:
    """The lines NAME=VALUE of a field. Raises `ConfigurationError` for other lines, and for a name
    that is given twice."""
    found: dict[str, str] = {}
    for line in lines_of(values, field):
        name, sign, value = line.partition("=")
        if not sign or not name.strip():
            raise ConfigurationError(
                f"{line[:80]!r} in {field.label} is not NAME=VALUE",
                remedy="write one NAME=VALUE on each line",
            )
        if name.strip() in found:
            raise ConfigurationError(
                f"{field.label} has {name.strip()[:80]!r} twice", remedy="give each name once"
            )
        found[name.strip()] = value.strip()
    return found


def repeated(flag: str, values: Mapping[str, str]) -> list[str]:
    """The words of a command in which `flag` is repeated for each NAME=VALUE."""
    return [word for name, value in values.items() for word in (flag, f"{name}={value}")]
