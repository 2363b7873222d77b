"""`--watch`: the output of a command again and again, until Ctrl-C.

On a terminal, each output replaces the last one. Elsewhere, the outputs follow each other, with an
empty line between tables.
"""

import sys
import time
from collections.abc import Iterator
from typing import Annotated

import typer

from bucketlog.cli.signals import sigterm_interrupts
from bucketlog.terminal import Output

DEFAULT_INTERVAL_S = 2.0
INTERVAL_S_MIN, INTERVAL_S_MAX = 0.1, 3600.0
CLEAR = "\x1b[H\x1b[J"
"""Cursor to the top left corner, then erase from there to the end of the screen (ECMA-48)."""

Watch = Annotated[bool, typer.Option("--watch", "-w", help="Update the output until Ctrl-C.")]
IntervalS = Annotated[
    float,
    typer.Option(
        "--interval-s",
        metavar="S",
        min=INTERVAL_S_MIN,
        max=INTERVAL_S_MAX,
        help="Seconds between two updates of --watch.",
    ),
]


def looks(output: Output, *, watch: bool, interval_s: float) -> Iterator[int]:
    """Yield once, or with `watch` every `interval_s` seconds until Ctrl-C or SIGTERM."""
    if not watch:
        yield 0
        return
    number = 0
    with sigterm_interrupts():
        while True:
            if sys.stdout.isatty():
                sys.stdout.write(CLEAR)
            elif number and output is Output.TABLE:
                sys.stdout.write("\n")
            yield number
            sys.stdout.flush()
            number += 1
            time.sleep(interval_s)
