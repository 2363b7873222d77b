"""`bucketlog completion`: the script that makes a shell complete commands and flags."""

from enum import StrEnum
from typing import Annotated

import typer

COMPLETE = "_BUCKETLOG_COMPLETE"
"""The variable by which a shell asks this program for completions."""


class ShellName(StrEnum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(
    shell: Annotated[ShellName, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")],
) -> None:
    """Print a script for the shell, as in: eval "$(bucketlog completion bash)"."""
    from typer._completion_shared import get_completion_script

    print(get_completion_script(prog_name="bucketlog", complete_var=COMPLETE, shell=shell.value))
