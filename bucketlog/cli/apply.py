"""`bucketlog apply topics.yaml`: topics as a file says them; a plan first, then it is done."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bucketlog.cli.options import DEFAULT_BOOTSTRAP, Bootstrap, OutputFormat
from bucketlog.cli.security import connected, secured
from bucketlog.log_format.errors import BucketlogError, ConfigurationError, LogError
from bucketlog.terminal import (
    EXIT_CHANGES,
    EXIT_FAILED,
    EXIT_OK,
    Output,
    confirm,
    counted,
    note,
    print_rows,
    say,
)

if TYPE_CHECKING:
    from bucketlog.cli.topic_plan import TopicPlanStep
    from bucketlog.client.log import Log


@secured
def apply(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="YAML file; -: standard input.")],
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Print the plan only; exit code 3: there is something to do."
        ),
    ] = False,
    prune: Annotated[
        bool, typer.Option("--prune", help="Delete topics that the file does not name.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    output: OutputFormat = Output.TABLE,
) -> int:
    """Make topics what a file says: + new, ~ changed, = the same, - deleted, ! impossible."""
    is_stdin = str(file) == "-"
    if is_stdin and not (yes or dry_run):
        raise ConfigurationError(
            "nobody can answer: the file is standard input", remedy="add --yes"
        )
    from bucketlog.cli.topic_plan import Action, plan_of, summary
    from bucketlog.cli.topics_file import read_topics, read_topics_file
    from bucketlog.cli.yaml_document import FILE_BYTES_MAX

    if is_stdin:
        wanted = read_topics("stdin", sys.stdin.buffer.read(FILE_BYTES_MAX + 1))
    else:
        wanted = read_topics_file(file)
    with connected(bootstrap) as log:
        names = [info.name for info in log.topics.list()]
        named = {topic.name for topic in wanted}
        there = {name: log.topics.describe(name) for name in names if name in named}
        unwanted = [name for name in names if name not in named] if prune else ()
        steps = [_checked(log, step) for step in plan_of(wanted, there, unwanted)]
        _print(steps, output)
        note(summary(steps))
        todo = [step for step in steps if step.action is not Action.SAME]
        if any(step.action is Action.REFUSED for step in steps):
            note("nothing is done: what is marked ! must be corrected first")
            return EXIT_FAILED
        if not todo:
            return EXIT_OK
        if dry_run:
            return EXIT_CHANGES
        if not yes:
            confirm(f"Do this to {counted(len(todo), 'topic')} at {bootstrap}?")
        _carry_out(log, todo)
    return EXIT_OK


def _checked(log: "Log", step: "TopicPlanStep") -> "TopicPlanStep":
    """Refused if the broker would not do it: it knows the rules of names, configs and limits."""
    try:
        _do(log, step, dry_run=True)
    except LogError as error:
        if error.retriable:
            raise
        return step.refused(error.message)
    return step


def _carry_out(log: "Log", steps: "list[TopicPlanStep]") -> None:
    for done, step in enumerate(steps):
        try:
            _do(log, step, dry_run=False)
        except BucketlogError as error:
            error.add_note(
                f"{done} of {counted(len(steps), 'change')} made before it remain; "
                "run the same command to continue"
            )
            raise
        note(f"{step.action.sign} {step.topic}: done")


def _do(log: "Log", step: "TopicPlanStep", *, dry_run: bool) -> None:
    match step.action:
        case "create":
            log.topics.create(
                step.topic, partitions=step.partitions, configs=step.configs, dry_run=dry_run
            )
        case "change":
            if step.configs:
                log.topics.configure(step.topic, step.configs, dry_run=dry_run)
            if step.partitions is not None:
                log.topics.add_partitions(step.topic, step.partitions, dry_run=dry_run)
        case "delete" if not dry_run:
            log.topics.delete(step.topic)


def _print(steps: "list[TopicPlanStep]", output: Output) -> None:
    if output is not Output.TABLE:
        print_rows([step.row() for step in steps], (), output)
        return
    width = max((len(step.topic) for step in steps), default=0)
    for step in steps:
        told = ", ".join(map(str, step.changes))
        remark = f"({step.remark})" if step.remark and told else step.remark
        rest = " ".join(filter(None, (told, remark)))
        say(f"{step.action.sign} {step.topic:<{width}}  {rest}".rstrip())
    sys.stdout.flush()
