"""The quick start of README.md: the blocks of its first section, in their order.

What a command prints is in the comment of its line.
"""

import re
from typing import NamedTuple

SECTION = "## Try it"
SAYS = "# prints "
_BLOCKS = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_FILE_NAME = re.compile(r"`(\w+\.py)`:\s*$")


class Start(NamedTuple):
    """The last line of `install` continues to run. `first` and `run` say what they print."""

    install: str
    first: str
    program_name: str
    program: str
    run: str


def read_start(readme: str) -> Start:
    """Raises `AssertionError` if the section begins with other blocks than these."""
    section = readme[readme.index(SECTION) :]
    section = section[: section.index("\n## ")]
    found = list(_BLOCKS.finditer(section))[:4]
    languages = [block[1] for block in found]
    assert languages == ["sh", "sh", "python", "sh"], f"blocks of {SECTION!r}: {languages}"
    name = _FILE_NAME.search(section[: found[2].start()])
    assert name is not None, f"{SECTION!r} does not name the program's file"
    install, first, program, run = (block[2] for block in found)
    return Start(install, first, name[1], program, run)


def said_to_print(script: str) -> str:
    """The output that the comment in the last line of `script` promises."""
    _, said, printed = script.strip().rpartition(SAYS)
    assert said, f"no comment says what this prints: {script!r}"
    return printed + "\n"
