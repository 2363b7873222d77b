"""Pages of help: headings in bold on a terminal, and whole sentences in the lists of commands."""

from typing import Any, TypeVar

import typer

from bucketlog.terminal import BOLD, styled

_Formatter: Any = typer.Context.formatter_class
C = TypeVar("C")


class _HelpFormatter(_Formatter):  # type: ignore[misc]  # typer does not export its class
    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        super().write_usage(prog, args, prefix)
        self.buffer[0] = self.buffer[0].replace("Usage:", styled("Usage:", BOLD), 1)

    def write_heading(self, heading: str) -> None:
        self.write(f"{'':>{self.current_indent}}{styled(f'{heading}:', BOLD)}\n")


class _HelpContext(typer.Context):
    formatter_class = _HelpFormatter


def with_help_pages(command: C, *, is_root: bool = True) -> C:
    """The command, and all below it, with these pages."""
    found: Any = command
    found.context_class = _HelpContext
    if not is_root and found.help:
        found.short_help = _first_sentence(found.help)
    for below in getattr(found, "commands", {}).values():
        with_help_pages(below, is_root=False)
    return command


def _first_sentence(text: str) -> str:
    paragraph = " ".join(text.partition("\n\n")[0].split())
    first, stop, _ = paragraph.partition(". ")
    return f"{first}." if stop else paragraph
