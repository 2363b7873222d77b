"""`bucketlog acl`: add, list, delete, wait."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from bucketlog.cli.acl_flags import FilterFlags, RuleFlags, with_filters, with_rules
from bucketlog.cli.options import DEFAULT_BOOTSTRAP, Bootstrap, DryRun, OutputFormat
from bucketlog.cli.security import connected, secured
from bucketlog.log_format.errors import ConfigurationError
from bucketlog.terminal import Output, confirm, counted, note, print_rows

if TYPE_CHECKING:
    from bucketlog.client.acl_rules import Acl
    from bucketlog.client.log import Log

app = typer.Typer(
    help="Add, list and delete ACLs, and wait until all brokers enforce them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
COLUMNS = ("resource", "name", "pattern", "principal", "permission", "operation", "host")
TIMEOUT_S = 30.0


@app.command("add")
@secured
@with_rules
def add(
    given: RuleFlags,
    dry_run: DryRun = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    output: OutputFormat = Output.TABLE,
) -> None:
    """Add rules: one for each combination of principal, host, operation and resource.

    Without --operation, the rules are about all operations."""
    rules = given.rules()
    if not rules:
        raise ConfigurationError(
            "no rule is given", remedy="give --allow-principal and --topic; see --help"
        )
    with connected(bootstrap) as log:
        there = set(log.acls.list()).intersection(rules)
        if not dry_run:
            log.acls.create(rules)
    _print(rules, output)
    new = len(rules) - len(there)
    what = f"{counted(new, 'rule')} {_verb(new, dry_run=dry_run)} added"
    note(f"{what}, {counted(len(there), 'rule')} existed before" if there else what)


@app.command("list")
@secured
@with_filters
def list_acls(
    given: FilterFlags,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    output: OutputFormat = Output.TABLE,
) -> None:
    """List the rules that match all flags."""
    with connected(bootstrap) as log:
        rules = _matching(log, given)
    _print(rules, output)


@app.command("delete")
@secured
@with_filters
def delete(
    given: FilterFlags,
    everything: Annotated[
        bool, typer.Option("--all", envvar="BUCKETLOG_ACL_DELETE_ALL", help="Delete all rules.")
    ] = False,
    dry_run: DryRun = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    output: OutputFormat = Output.TABLE,
) -> None:
    """Delete the rules that match all flags, after showing them and asking."""
    if given.is_empty != everything:
        raise ConfigurationError(
            "--all with other flags" if everything else "the flags name no rules to delete",
            remedy="name a principal or a resource, or give --all alone",
        )
    with connected(bootstrap) as log:
        rules = _matching(log, given)
        if not rules:
            raise ConfigurationError(
                "no rule matches the flags", remedy="run `bucketlog acl list` to see all rules"
            )
        _print(rules, output)
        if not dry_run:
            if not yes:
                confirm(f"Delete {counted(len(rules), 'rule')}?")
            log.acls.delete(rules)
    note(f"{counted(len(rules), 'rule')} {_verb(len(rules), dry_run=dry_run)} deleted")


@app.command("wait")
@secured
@with_rules
def wait(
    given: RuleFlags,
    deleted: Annotated[
        bool, typer.Option("--deleted", help="Wait until no broker has the rules any more.")
    ] = False,
    timeout_seconds: Annotated[
        float,
        typer.Option(
            "--timeout-seconds",
            min=0,
            help="Seconds after which the command fails and names a broker that is behind.",
        ),
    ] = TIMEOUT_S,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> None:
    """Wait until every live broker enforces the rules; without rules, all earlier changes."""
    rules = given.rules()
    if deleted and not rules:
        raise ConfigurationError("--deleted without a rule", remedy="name the rules")
    with connected(bootstrap) as log:
        brokers = log.acls.wait(
            created=() if deleted else rules,
            deleted=rules if deleted else (),
            timeout_s=timeout_seconds,
        )
    what = counted(len(rules), "rule") if rules else "the same rules"
    verb = "has" if brokers == 1 else "have"
    note(f"{counted(brokers, 'broker')} {verb} {'none of ' if deleted else ''}{what}")


def _matching(log: "Log", given: FilterFlags) -> "list[Acl]":
    found = (acl for each in given.questions() for acl in log.acls.list(**each._asdict()))
    return list(dict.fromkeys(found))


def _print(rules: "Iterable[Acl]", output: Output) -> None:
    rows = [asdict(acl) for acl in rules]
    print_rows([{name: row[name] for name in COLUMNS} for row in rows], COLUMNS, output)


def _verb(count: int, *, dry_run: bool) -> str:
    return "would be" if dry_run else "is" if count == 1 else "are"
