"""`bucketlog config`: profiles, and what is in effect and where it comes from."""

import os
from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import typer

from bucketlog.cli.options import DEFAULT_BOOTSTRAP, Bootstrap, OutputFormat
from bucketlog.cli.profiles import (
    CHOICE,
    PREFIX,
    change,
    check_known,
    config_path,
    read_profiles,
    setting,
    shown,
    variable,
)
from bucketlog.terminal import Output, note, print_rows

app = typer.Typer(
    help="Profiles, and where each setting comes from.", no_args_is_help=True, rich_markup_mode=None
)
SHOWN_ALWAYS = ("profile", "bootstrap", "bucket_url", "output")
FIRST_PROFILE = "default"
SETTING_COLUMNS = ("setting", "value", "source", "variable")


class ProfileChoice(NamedTuple):
    """The profile, None without one; `source` is what chose it; `variables` are those that it sets,
    for the environment does not have them."""

    name: str | None = None
    source: str = "default"
    variables: frozenset[str] = frozenset()


class Flag(NamedTuple):
    """An option of a command, or an argument that a variable can give."""

    command: str
    name: str
    variable: str | None
    default: Any


def flags_of(
    command: Any, path: str = "", prefix: str = PREFIX.removesuffix("_")
) -> Iterator[Flag]:
    """Of a click command and all below it; `variable` is None where none sets it."""
    for parameter in command.params:
        is_option = parameter.param_type_name == "option"
        name = max(parameter.opts, key=len) if is_option else str(parameter.name)
        given = parameter.envvar
        if given is None and is_option and getattr(parameter, "allow_from_autoenv", False):
            given = f"{prefix}_{parameter.name}".upper()
        if is_option or given:
            default = None if callable(parameter.default) else parameter.default
            yield Flag(path, name, given if isinstance(given, str) else None, default)
    for name, below in getattr(command, "commands", {}).items():
        whole = f"{path} {name}".strip()
        yield from flags_of(below, whole, f"{prefix}_{name}".upper().replace("-", "_"))


def use_profile(wanted: str | None, source: str, command: Any, *, is_strict: bool) -> ProfileChoice:
    """Put the profile's settings into the environment of this process, beside what is there.

    `command` is the root, which knows every flag. Raises `ConfigurationError`; for a profile that
    is not there only if it `is_strict`."""
    profiles = read_profiles(config_path(os.environ))
    name = wanted or profiles.chosen
    if name is None:
        return ProfileChoice()
    found = ProfileChoice(name, source if wanted else "file")
    if name not in profiles.settings and not is_strict:
        return found
    settings = profiles.named(name)
    flags = {flag.variable for flag in flags_of(command) if flag.variable}
    if not all(variable(one) in flags for one in settings):
        check_known(settings, flags | variables_without_flag(), f"{profiles.path}, profile {name}")
    ours = {variable(one): value for one, value in settings.items()}
    new = {one: value for one, value in ours.items() if not os.environ.get(one)}
    os.environ.update(new)
    return found._replace(variables=frozenset(new))


def broker_variables() -> frozenset[str]:
    """What brokers, and whoever opens a bucket on S3, take from the environment."""
    from bucketlog.stateless_broker.settings.broker import BrokerSettings
    from bucketlog.tiered_storage.backends.s3_options import S3Options

    return frozenset(
        [
            "BUCKETLOG_LOG_LEVEL",
            "BUCKETLOG_LOG_FORMAT",
            *(f"{PREFIX}{name}".upper() for name in BrokerSettings.model_fields),
            *(f"{PREFIX}S3_{name}".upper() for name in S3Options.model_fields),
        ]
    )


def variables_without_flag() -> frozenset[str]:
    """Return the variables that something reads, though no flag has their name."""
    from bucketlog.console.settings import ConsoleSettings

    of_console = (f"{PREFIX}CONSOLE_{name}".upper() for name in ConsoleSettings.model_fields)
    return broker_variables().union(of_console)


@app.command("show")
def show(
    context: typer.Context,
    every: Annotated[
        bool,
        typer.Option(
            "--all", envvar="BUCKETLOG_CONFIG_SHOW_ALL", help="Also show settings that are not set."
        ),
    ] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    output: OutputFormat = Output.TABLE,
) -> None:
    """Show what is in effect: each setting's value and what gave it."""
    in_use: ProfileChoice = context.obj
    if in_use.name is not None:
        read_profiles(config_path(os.environ)).named(in_use.name)
    flags = {flag.variable: flag for flag in flags_of(context.find_root().command) if flag.variable}
    flags.pop(CHOICE, None)
    known = flags.keys() | variables_without_flag()
    given = {
        variable("bootstrap"): ("bootstrap", bootstrap),
        variable("output"): ("output", output.value),
    }
    names = {variable(one) for one in SHOWN_ALWAYS[1:]} | (flags.keys() if every else set())
    names |= {name for name in os.environ if name.startswith((PREFIX, "AWS_"))} - {CHOICE}
    rows = [_row("profile", in_use.name, in_use.source, CHOICE)]
    for name in sorted(names, key=lambda one: (setting(one) not in SHOWN_ALWAYS, one)):
        parameter, value = given.get(name, ("", os.environ.get(name)))
        source = "default"
        if parameter and _is_flag(context, parameter):
            source = "flag"
        elif name in in_use.variables:
            source = f"profile {in_use.name}"
        elif os.environ.get(name):
            source = "environment" if name in known or name.startswith("AWS_") else "unknown"
        elif value is None and name in flags:
            value = flags[name].default
        rows.append(_row(setting(name), value, source, name))
    print_rows(rows, SETTING_COLUMNS, output)
    for row in rows:
        if row["source"] == "unknown":
            note(f"{row['variable']} is in the environment, and no setting has that name")


def _is_flag(context: typer.Context, parameter: str) -> bool:
    source = context.get_parameter_source(parameter)
    return source is not None and source.name == "COMMANDLINE"


def _row(name: str, value: Any, source: str, of_variable: str) -> dict[str, Any]:
    text = value if value is None or isinstance(value, str) else _plain(value)
    return {
        "setting": name,
        "value": None if text is None else shown(name, text),
        "source": source,
        "variable": of_variable,
    }


def _plain(value: Any) -> str | None:
    """A flag's default as it would be typed; None where it has none."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else None


@app.command("list")
def list_profiles(context: typer.Context, output: OutputFormat = Output.TABLE) -> None:
    """List the profiles, and which one is in use."""
    profiles = read_profiles(config_path(os.environ))
    rows = [
        {"profile": name, "in_use": "*" if name == context.obj.name else "", "settings": len(table)}
        for name, table in sorted(profiles.settings.items())
    ]
    print_rows(rows, ("profile", "in_use", "settings"), output)
    if not rows:
        note(
            f"no profiles in {profiles.path}: `bucketlog config set bootstrap HOST:PORT` begins one"
        )


@app.command("set")
def set_one(
    context: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            metavar="SETTING", help="Name of the setting, such as bootstrap or bucket_url."
        ),
    ],
    value: Annotated[str, typer.Argument(metavar="VALUE")],
) -> None:
    """Set one setting of a profile: of --profile, else of the one in use, else of 'default'."""
    flags = {flag.variable for flag in flags_of(context.find_root().command) if flag.variable}
    check_known([name], (flags - {CHOICE}) | variables_without_flag(), "config set")
    path = config_path(os.environ)
    profile = context.obj.name or FIRST_PROFILE
    is_first = not read_profiles(path).settings
    change(path, profile, name, value)
    if is_first and context.obj.source in ("default", "file"):
        change(path, None, "profile", profile)
    note(f"{path}: profile {profile}: {name} = {shown(name, value)}")


@app.command("use")
def use(name: Annotated[str, typer.Argument(metavar="PROFILE")]) -> None:
    """Choose the profile for where neither --profile nor BUCKETLOG_PROFILE names one."""
    path = config_path(os.environ)
    read_profiles(path).named(name)
    change(path, None, "profile", name)
    note(f"{path}: profile {name} is in use")
    if os.environ.get(CHOICE, name) != name:
        note(f"but {CHOICE} is {os.environ[CHOICE]!r} here, and goes before it")
